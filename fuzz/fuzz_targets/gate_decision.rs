//! Any text is decided as a command under rules of every kind: no panic, and a denial in one mode is a denial in all.
#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use qoder_policy::{Confinement, NoLinks, Policy, Question, Rule, RuleSet, Workspace, decide};
use qoder_core::ports::Access;
use qoder_types::{Behavior, DecisionLayer, PermissionMode, RuleOrigin, RuleSource};

fn policy() -> &'static Policy {
    static POLICY: OnceLock<Policy> = OnceLock::new();
    POLICY.get_or_init(|| {
        let mut rules = RuleSet::default();
        let listed = [
            (Behavior::Deny, "Bash(rm:*)"),
            (Behavior::Deny, "Read(.env)"),
            (Behavior::Deny, "Edit(locked/**)"),
            (Behavior::Ask, "Bash(git push:*)"),
            (Behavior::Allow, "Bash(ls:*)"),
            (Behavior::Allow, "Edit(src/**)"),
        ];
        for (behavior, text) in listed {
            let origin = RuleOrigin { source: RuleSource::UserSettings, file: None, line: None };
            if let Ok(rule) = Rule::parse(text, origin) {
                rules.add(behavior, rule);
            }
        }
        let workspace = Workspace {
            cwd: "/w".into(),
            project_root: "/w".into(),
            home: "/h".into(),
            roots: vec!["/w".into()],
            config_dir: "/h/.qoder".into(),
            protected: Vec::new(),
        };
        Policy::new(&rules, workspace)
    })
}

fuzz_target!(|text: &str| {
    let decided = |mode| {
        let question = Question {
            tool: "Bash",
            accesses: &[Access::Command(text.to_owned())],
            mode,
            trusted: true,
            mode_is_explicit: false,
            policy: policy(),
            cwd: Path::new("/w"),
            confinement: Confinement::None,
            files: &NoLinks,
        };
        decide(&question).ok().map(|ruling| ruling.decision)
    };
    let careful = decided(PermissionMode::Default);
    let bold = decided(PermissionMode::BypassPermissions);
    let denied = |decision: &Option<qoder_types::Decision>| {
        decision
            .as_ref()
            .is_some_and(|it| it.behavior == Behavior::Deny && it.layer == DecisionLayer::Rule)
    };
    assert_eq!(denied(&careful), denied(&bold));
});
