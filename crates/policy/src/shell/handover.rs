//! Commands that hand work to a service that outlives the session: schedulers, and terminal multiplexers reached by
//! their socket. The supervisor of a command cannot end what such a service starts, so no mode
//! and no broad rule lets them run unasked.

use super::Word;
use super::reading::SimpleCommand;

/// True for a command that makes another program run something later or elsewhere.
#[must_use]
pub fn hands_over(command: &SimpleCommand) -> bool {
    let Some(base) = command.base_name() else { return false };
    let words = command.words.get(1..).unwrap_or_default();
    match base {
        "at" => !only(words, &["-l", "-c", "-V"]),
        "crontab" => !only(words, &["-l", "-V"]),
        "batch" | "systemd-run" | "fcrontab" | "incrontab" => true,
        "tmux" => names_socket(words, &["-S", "-L"]),
        "screen" => names_socket(words, &["-S", "-r", "-R", "-x", "-X"]),
        _ => false,
    }
}

/// True when the first word is one of these options.
fn only(words: &[Word], options: &[&str]) -> bool {
    words.first().and_then(Word::as_literal).is_some_and(|word| options.contains(&word))
}

/// True when a word is one of these options, alone or with its value attached, or cannot be known.
fn names_socket(words: &[Word], options: &[&str]) -> bool {
    words.iter().any(|word| match word.as_literal() {
        Some(text) => options.iter().any(|option| text.starts_with(option)),
        None => true,
    })
}
