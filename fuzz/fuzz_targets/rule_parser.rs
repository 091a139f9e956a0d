//! Any text is parsed as a permission rule and as a list of rules: no panic, and what parses is a rule or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qoder_policy::{Rule, split_rules};
use qoder_types::{RuleOrigin, RuleSource};

fuzz_target!(|text: &str| {
    for rule in split_rules(text) {
        let origin = RuleOrigin { source: RuleSource::UserSettings, file: None, line: None };
        if let Ok(rule) = Rule::parse(&rule, origin) {
            rule.names("Bash");
        }
    }
});
