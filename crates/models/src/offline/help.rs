//! What the offline model says about itself, about what it did not understand, and
//! about calls that did not run. Plain words, and always what the person can do
//! next.

use qoder_types::ToolDefinition;

use super::conversation::Step;

/// What is said to a greeting.
pub(super) fn greeting() -> String {
    "Hello. I am the built-in offline model: a few fixed rules, not a language model.\n\
     Try `what does this repository do?` or `summarize README.md`; `help` lists what I can do, and ANTHROPIC_API_KEY or \
     OPENAI_API_KEY brings a real model."
        .to_owned()
}

/// What is said when a sentence fits no rule: two lines.
pub(super) fn not_understood(prompt: &str) -> String {
    let short: String = prompt.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect();
    let first = match short.is_empty() {
        true => "There is nothing to do.".to_owned(),
        false => format!("I did not understand: \u{201c}{short}\u{201d}"),
    };
    format!(
        "{first}\nI am the built-in offline model: fixed rules, not a language model. `help` lists what I can do; for \
         anything else set ANTHROPIC_API_KEY or OPENAI_API_KEY, or `providers` in the settings."
    )
}

/// What it can do, for a user who asks.
pub(super) fn page(tools: &[ToolDefinition]) -> String {
    let mut text = String::from(
        "I am the built-in offline model: a few fixed rules, not a language model. I can:\n\
         - show files: `show me README.md`, `read the first 5 lines of a.txt`\n\
         - sum up a file: `summarize README.md`, `list the functions in main.rs`\n\
         - search: `find every TODO in src`, `where is main defined?`\n\
         - list files: `list files in src`, `find *.rs files`, `find all files named main.rs`\n\
         - count lines: `how many lines does main.rs have?`\n\
         - replace text: `replace \"foo\" with \"bar\" in a.txt`\n\
         - write a file: `create file notes.txt with \"hello\"`\n\
         - run a command: `run cargo --version`\n\
         - look around: `what does this repository do?`, `how do I run the tests?`, `what changed recently?`\n\
         - call any tool: `call <tool> with {\"argument\": \"value\"}`\n",
    );
    if !tools.is_empty() {
        let names: Vec<&str> = tools.iter().take(40).map(|tool| tool.name.as_str()).collect();
        text.push_str(&format!("\nTools on offer: {}", names.join(", ")));
        if tools.len() > names.len() {
            text.push_str(&format!(" and {} more", tools.len() - names.len()));
        }
        text.push('\n');
    }
    text.push_str(
        "\nFor anything else configure a language model: set ANTHROPIC_API_KEY or OPENAI_API_KEY (with \
         ANTHROPIC_BASE_URL or OPENAI_BASE_URL for a compatible or local server), or add `providers` to the settings, \
         and choose a model with --model.",
    );
    text
}

/// What is said behind an answer to a sentence that was understood only in part.
pub(super) fn partly(words: &str) -> String {
    format!(
        "I understood only a part of what you wrote. I did nothing about: \u{201c}{}\u{201d}",
        words.chars().take(120).collect::<String>()
    )
}

/// What is said when a tool that a rule needs is not on offer.
pub(super) fn missing_tool(name: &str) -> String {
    format!(
        "This needs the tool {name}, which is not on offer in this session: its options or a deny rule leave it out."
    )
}

/// What is said about a call that failed or was not allowed.
pub(super) fn failed(step: &Step) -> String {
    let words = step.output.trim();
    let folded = words.to_ascii_lowercase();
    let mentions = |phrases: &[&str]| phrases.iter().any(|phrase| folded.contains(phrase));
    // What the system or a command refused cannot be allowed here.
    let denied = !mentions(&["exit code", "os error"])
        && mentions(&["denied", "permission", "not allowed", "approval", "rejected", "declined"]);
    let mut text = if denied {
        format!("The call of {} was not allowed: {words}", step.name)
    } else {
        format!("The call of {} failed: {words}", step.name)
    };
    // Nothing else says what would help; the reason of a denial does by itself.
    if denied && !mentions(&["a person can", "by the rule", "not a public host", "never asks", "plan mode"]) {
        text.push_str("\n\nThe session's rules or the person decide what runs; `qodercli permissions explain` prints why.");
    }
    text
}
