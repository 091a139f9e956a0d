//! What each front may use of the runtime: a session's handle, what it is opened with, and the nouns in their signatures.
//! The engine, the driver and a session's log are not among them. Cargo's metadata cannot say this, since a crate that is
//! used is used as a whole.

use super::sources::Source;
use super::{Verdict, items};

/// The runtime, as code names it.
const RUNTIME: &str = "qoder_runtime";

/// Where a front's sources are, and the names at the top of the runtime that it may use.
const VIEWS: &[(&str, &[&str])] = &[
    ("crates/stdio/src/", &["VERSION", "callbacks", "config", "events", "mcp", "sessions", "setup"]),
    (
        "crates/sdk/src/",
        &[
            "Cancelled",
            "Interrupt",
            "callbacks",
            // The functions on stored sessions read logs without opening a session.
            "catalog",
            "config",
            "error",
            "events",
            "layout",
            "mcp",
            "sessions",
            "setup",
            "store",
        ],
    ),
    (
        "crates/server/src/",
        // Environments of sessions start and confine the processes that run their tools.
        &[
            "ServerProcess",
            "callbacks",
            "config",
            "confinement",
            "error",
            "events",
            "sessions",
            "setup",
            "tool_host",
        ],
    ),
    ("crates/terminal/src/", &[]),
    ("crates/acp/src/", &["callbacks", "events", "sessions", "setup"]),
];

/// Judges the fronts.
pub(super) fn judge(sources: &[Source]) -> Verdict {
    let mut violations = Vec::new();
    for source in sources {
        let Some((_, allowed)) = VIEWS.iter().find(|(folder, _)| source.path.starts_with(folder)) else {
            continue;
        };
        for (line, name) in used(&source.product) {
            if !allowed.contains(&name) {
                violations.push(format!("{}:{line}: a front must not use {RUNTIME}::{name}", source.path));
            }
        }
    }
    Verdict { rule: "fronts use the runtime through the seam", violations }
}

/// The names at the top of the runtime that code uses, each with its line; the name of the crate when it is used as a whole.
fn used(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (start, word) in items::words(code).filter(|(_, word)| *word == RUNTIME) {
        let line = 1 + code[..start].matches('\n').count();
        let rest = code[start + word.len()..].trim_start();
        let Some(rest) = rest.strip_prefix("::") else {
            found.push((line, word));
            continue;
        };
        match rest.trim_start().strip_prefix('{') {
            Some(group) => found.extend(top_of(group).map(|name| (line, name))),
            None => found.extend(items::words(rest).next().map(|(_, name)| (line, name))),
        }
    }
    found
}

/// The first name of each entry of a group whose opening brace is just in front of `text`.
fn top_of(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let mut begins = true;
    let mut names = Vec::new();
    let mut words = items::words(text).peekable();
    for (index, character) in text.char_indices() {
        if let Some((start, name)) = words.peek().copied()
            && start == index
        {
            if begins && depth == 0 {
                names.push(name);
            }
            begins = false;
            words.next();
        }
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            _ => {}
        }
    }
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        judge(&[Source::new(path, text)]).violations
    }

    #[test]
    fn what_a_row_does_not_have_is_named_with_its_place() {
        assert_eq!(
            found(
                "crates/stdio/src/a.rs",
                "use qoder_runtime::setup::Setup;\nuse qoder_runtime::engine::Engine;\n"
            ),
            ["crates/stdio/src/a.rs:2: a front must not use qoder_runtime::engine"]
        );
        assert_eq!(found("crates/sdk/src/a.rs", "fn a() { qoder_runtime::session::open(); }\n").len(), 1);
        assert_eq!(
            found("crates/terminal/src/a.rs", "use qoder_runtime::sessions::SessionHandle;\n").len(),
            1
        );
        assert_eq!(found("crates/stdio/src/a.rs", "use qoder_runtime as runtime;\n").len(), 1);
    }

    #[test]
    fn groups_are_read_at_their_top() {
        let group = "use qoder_runtime::{events::{Event, session}, engine::Engine, sessions};\n";
        assert_eq!(
            found("crates/server/src/a.rs", group),
            ["crates/server/src/a.rs:1: a front must not use qoder_runtime::engine"]
        );
    }

    #[test]
    fn tests_other_crates_and_listed_names_pass() {
        for (path, text) in [
            ("crates/stdio/src/a.rs", "#[cfg(test)]\nmod tests { use qoder_runtime::engine::Engine; }\n"),
            ("crates/cli/src/a.rs", "use qoder_runtime::session::Session;\n"),
            ("crates/sdk/src/a.rs", "use qoder_runtime::sessions::{SessionHandle, requests};\n"),
            ("crates/sdk/src/a.rs", "// qoder_runtime::engine\nfn a() {}\n"),
        ] {
            assert_eq!(found(path, text), [""; 0], "{text}");
        }
    }
}
