//! Names of items use the words of docs/glossary.md: a word that it lists as avoided is not part of the name of a
//! type, a function, a constant or a module. Words that also mean something else here are listed with that meaning.

use std::path::Path;

use anyhow::{Context, Result};

use super::known::{Counted, Finding};
use super::sources::Source;
use super::{glossary, items};

/// Words to avoid for a term of the glossary that have a meaning of their own beside it.
const ORDINARY: &[(&str, &str)] = &[
    ("action", "what a person does in an elicitation; a subcommand"),
    ("backup", "a command of the server"),
    ("callback", "the address that OAuth returns to; a function of a host"),
    ("chat", "a wire protocol's name"),
    ("checkout", "a git command"),
    ("client", "of HTTP and MCP"),
    ("clone", "a git command; a Rust trait"),
    ("confirmation", "the documented name of an event"),
    ("connection", "of a server"),
    ("context", "what a call is given; a hook's text for the model"),
    ("conversation", "what a wire protocol sends"),
    ("dialect", "of the server's clients, who speak one of two"),
    ("event", "of a stream; what a hook is called for"),
    ("flush", "a method of Rust's traits"),
    ("function", "of a language or a wire protocol"),
    ("generation", "of a key"),
    ("memory", "of a process; a memory file"),
    ("parent", "of a folder, process or span"),
    ("permission", "what the documented interface calls it"),
    ("policy", "the crate; the rules in force"),
    ("profile", "a compatibility profile; of a sandbox"),
    ("query", "of a URL; the documented entry point"),
    ("remote", "of a server"),
    ("replay", "what may be done with a call that never finished; of a recording"),
    ("repository", "of git"),
    ("response", "of HTTP and of the control protocol"),
    ("root", "of a file system, project or certificate chain"),
    ("roots", "of a workspace in MCP; of certificates"),
    ("safe", "git's own word for a configuration"),
    ("sink", "of a library that searches"),
    ("source", "of an image, a rule or an error"),
    ("stage", "of starting a confined process"),
    ("status", "of HTTP, of a process, of a server"),
    ("thread", "of the operating system"),
    ("token", "of a model, of OAuth, of a grammar"),
    ("tool use", "the documented name of hook events and content blocks"),
];

/// Judges the names that crates declare.
pub(super) fn judge(root: &Path, sources: &[Source]) -> Result<Counted> {
    let path = root.join("docs/glossary.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let avoided = glossary::avoided(&text);
    let findings = sources
        .iter()
        .filter(|source| source.is_of_crate())
        .flat_map(|source| misnamed(source, &avoided))
        .collect();
    Ok(Counted { name: "names", rule: "names avoid the words that the glossary avoids", findings })
}

fn misnamed(source: &Source, avoided: &[String]) -> Vec<Finding> {
    let judged: Vec<(&str, Vec<&str>)> = avoided
        .iter()
        .filter(|phrase| !ORDINARY.iter().any(|(ordinary, _)| ordinary == phrase))
        .map(|phrase| (phrase.as_str(), phrase.split([' ', '-']).collect()))
        .collect();
    let mut found = Vec::new();
    for (line, name) in items::declared_names(&source.product) {
        let parts = parts(name);
        for (phrase, words) in &judged {
            if parts.windows(words.len()).any(|window| window == words.as_slice()) {
                let text = format!("line {line}: {name} has {phrase:?}, which the glossary avoids");
                found.push(Finding { path: source.path.clone(), text });
            }
        }
    }
    found
}

/// The words of a name in lower case, whichever way they are joined.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut after_small = false;
    for character in name.chars() {
        if character == '_' || (character.is_uppercase() && after_small) {
            parts.push(String::new());
        }
        after_small = character.is_lowercase() || character.is_numeric();
        if character != '_'
            && let Some(last) = parts.last_mut()
        {
            last.extend(character.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let avoided = ["worker".to_owned(), "child process".to_owned(), "event".to_owned()];
        misnamed(&Source::new("crates/a/src/lib.rs", text), &avoided)
            .into_iter()
            .map(|one| one.text)
            .collect()
    }

    #[test]
    fn a_word_is_found_in_every_kind_of_name() {
        for text in [
            "struct MyWorker;",
            "fn start_worker() {}",
            "const WORKER_COUNT: u8 = 1;",
            "mod child_process {}",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
        assert_eq!(found("enum Worker {}"), ["line 1: Worker has \"worker\", which the glossary avoids"]);
    }

    #[test]
    fn whole_words_of_declared_names_count_and_ordinary_ones_do_not() {
        for text in [
            "struct Coworkers;",
            "fn child() { let worker = process; }",
            "struct Event;",
            "// struct Worker;",
            "#[cfg(test)]\nmod tests { fn worker() {} }",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn ordinary_words_are_words_that_the_glossary_avoids() {
        let glossary = include_str!("../../../docs/glossary.md");
        let avoided = glossary::avoided(glossary);
        for (word, _) in ORDINARY {
            assert!(avoided.iter().any(|avoided| avoided == word), "{word} needs no entry");
        }
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(parts("MCPToolUse"), ["mcptool", "use"]);
        assert_eq!(parts("tool_use_2"), ["tool", "use", "2"]);
        assert_eq!(parts("HTTP_STATUS"), ["http", "status"]);
    }
}
