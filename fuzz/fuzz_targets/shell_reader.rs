//! Any text is read as a shell command: no panic, no hang, bounded result, and the same result the second time, unless the
//! second grammar ran out of time on a busy machine.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qoder_policy::shell::{DoubtKind, Reading, read};
use qoder_types::display::escaped_for_display;

fuzz_target!(|text: &str| {
    let reading = read(text);
    assert!(reading.commands.len() <= 4096);
    for command in &reading.commands {
        assert!(!command.directories.is_empty());
        assert!(command.wrapped.is_none_or(|wrapped| wrapped.outer < reading.commands.len()));
    }
    let again = read(text);
    let is_complete = |reading: &Reading| !reading.doubts.iter().any(|doubt| doubt.kind == DoubtKind::TooMany);
    if is_complete(&reading) && is_complete(&again) {
        assert_eq!(reading, again);
    }
    escaped_for_display(text);
});
