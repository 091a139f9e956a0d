//! Any text is read as a shell command: no panic, no hang, bounded result, and the same result the second time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use qoder_core::shell::{escaped_for_display, read};

fuzz_target!(|text: &str| {
    let reading = read(text);
    assert!(reading.commands.len() <= 4096);
    for command in &reading.commands {
        assert!(!command.directories.is_empty());
        assert!(command.wrapped.is_none_or(|wrapped| wrapped.outer < reading.commands.len()));
    }
    assert_eq!(reading, read(text));
    escaped_for_display(text);
});
