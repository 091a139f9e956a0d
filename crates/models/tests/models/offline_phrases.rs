//! The offline model: which sentences it understands, which tools it calls for them, what
//! it says about results, failures and denials, and how it says that it does not
//! understand.

use std::sync::Arc;

use qoder_core::ports::{Model, ModelRequest, PromptMessage};
use qoder_models::{ModelOptions, resolve};
use qoder_types::{ContentBlock, Purpose, Role, StopReason, ToolResultContent};
use serde_json::{Value, json};

use crate::support::{Told, ask, assert_well_ordered, message, request, tool, user};

struct Session {
    model: Arc<dyn Model>,
    messages: Vec<Arc<PromptMessage>>,
}

impl Session {
    fn new(prompt: &str) -> Self {
        let options = ModelOptions { model: Some("offline".into()), ..ModelOptions::default() };
        Self { model: resolve(&options).unwrap(), messages: vec![user(prompt)] }
    }

    fn request(&self) -> ModelRequest {
        let mut asked = request(self.messages.clone());
        asked.tools = vec![
            tool("Read", &["file_path"]),
            tool("Grep", &["pattern"]),
            tool("Glob", &["pattern"]),
            tool("Edit", &["file_path", "old_string", "new_string"]),
            tool("Write", &["file_path", "content"]),
            tool("Bash", &["command"]),
            tool("mcp__notes__remember", &["title", "text"]),
        ]
        .into();
        asked
    }

    async fn ask(&self) -> Told {
        ask(&self.model, self.request()).await
    }

    /// The calls of the next turn, as name and input.
    async fn calls(&mut self) -> Vec<(String, Value)> {
        let told = self.ask().await;
        assert_well_ordered(&told.partials);
        assert_eq!(told.reply().stop_reason, StopReason::ToolUse, "{:?}", told.reply().content);
        self.messages.push(message(Role::Assistant, told.reply().content.clone()));
        told.reply()
            .content
            .iter()
            .map(|block| match block {
                ContentBlock::ToolUse { name, input, .. } => (name.clone(), input.clone()),
                other => panic!("not a call: {other:?}"),
            })
            .collect()
    }

    /// The single call of the next turn.
    async fn call(&mut self) -> (String, Value) {
        let mut calls = self.calls().await;
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls.remove(0)
    }

    /// Gives results to the calls of the last turn.
    fn results(&mut self, results: &[(&str, bool)]) {
        let last = self.messages.last().unwrap().message.content.clone().into_blocks();
        let blocks = last
            .iter()
            .zip(results)
            .map(|(block, (text, is_error))| match block {
                ContentBlock::ToolUse { id, .. } => ContentBlock::ToolResult {
                    tool_use_id: id.clone(),
                    content: ToolResultContent::Text((*text).to_owned()),
                    is_error: *is_error,
                },
                other => panic!("not a call: {other:?}"),
            })
            .collect();
        self.messages.push(message(Role::User, blocks));
    }

    /// What is said next.
    async fn text(&self) -> String {
        let told = self.ask().await;
        assert_eq!(told.reply().stop_reason, StopReason::EndTurn);
        let [ContentBlock::Text { text }] = &told.reply().content[..] else {
            panic!("not text: {:?}", told.reply().content)
        };
        assert_eq!(&told.partial_text(), text);
        text.clone()
    }
}

#[tokio::test]
async fn sentences_become_calls() {
    let cases = [
        ("Show me README.md", "Read", json!({"file_path": "README.md"})),
        ("please read the file `my notes.txt`", "Read", json!({"file_path": "my notes.txt"})),
        ("what's in src/main.rs?", "Read", json!({"file_path": "src/main.rs"})),
        (
            "find every TODO in src",
            "Grep",
            json!({"pattern": "TODO", "output_mode": "content", "-n": true, "path": "src"}),
        ),
        (
            "search for \"foo(bar)\" in this repository",
            "Grep",
            json!({"pattern": "foo\\(bar\\)", "output_mode": "content", "-n": true}),
        ),
        ("replace foo with bar in a.txt", "Read", json!({"file_path": "a.txt"})),
        (
            "create file x.txt with hello world.",
            "Write",
            json!({"file_path": "x.txt", "content": "hello world."}),
        ),
        ("write \"one two\" to x.txt", "Write", json!({"file_path": "x.txt", "content": "one two"})),
        (
            "run cargo --version",
            "Bash",
            json!({"command": "cargo --version", "description": "Run cargo --version"}),
        ),
        (
            "Could you run `echo 'a b'`",
            "Bash",
            json!({"command": "echo 'a b'", "description": "Run echo 'a b'"}),
        ),
        ("list files in src", "Glob", json!({"pattern": "*", "path": "src"})),
        ("find *.rs files", "Glob", json!({"pattern": "**/*.rs"})),
        ("list all Rust files in crates", "Glob", json!({"pattern": "**/*.rs", "path": "crates"})),
        (
            "how many lines does src/main.rs have?",
            "Grep",
            json!({"pattern": "^", "path": "src/main.rs", "output_mode": "count"}),
        ),
        (
            "call bash with {\"command\": \"ls\", \"timeout\": 5}",
            "Bash",
            json!({"command": "ls", "timeout": 5}),
        ),
        (
            "use mcp__notes__remember with 'groceries' and 'milk'",
            "mcp__notes__remember",
            json!({"title": "groceries", "text": "milk"}),
        ),
    ];
    for (prompt, name, input) in cases {
        assert_eq!(Session::new(prompt).call().await, (name.to_owned(), input), "{prompt}");
    }
}

#[tokio::test]
async fn a_shown_file_comes_without_line_numbers() {
    let mut session = Session::new("Show me README.md");
    session.call().await;
    session.results(&[("     1\t# Title\n     2\t\n     3\tText", false)]);
    let text = session.text().await;
    assert!(text.contains("# Title\n\nText"), "{text}");
}

#[tokio::test]
async fn a_bare_name_is_looked_for() {
    let mut session = Session::new("show me lib.rs");
    session.call().await;
    session.results(&[("File does not exist: lib.rs", true)]);
    assert_eq!(session.call().await, ("Glob".into(), json!({"pattern": "**/lib.rs"})));
    session.results(&[("/w/crates/a/src/lib.rs", false)]);
    assert_eq!(session.call().await.1, json!({"file_path": "/w/crates/a/src/lib.rs"}));
}

#[tokio::test]
async fn lines_are_counted_in_every_file_of_that_name() {
    let mut session = Session::new("how many lines does main.rs have");
    assert_eq!(session.call().await, ("Glob".into(), json!({"pattern": "**/main.rs"})));
    session.results(&[("/w/a/main.rs\n/w/b/main.rs", false)]);
    let calls = session.calls().await;
    assert_eq!(calls.len(), 2);
    session.results(&[("/w/a/main.rs:42", false), ("7", false)]);
    assert_eq!(session.text().await, "/w/a/main.rs has 42 lines.\n/w/b/main.rs has 7 lines.");
}

#[tokio::test]
async fn a_replacement_reads_then_edits_then_reports() {
    let mut session = Session::new("replace \"foo with\" with 'bar' in a.txt");
    assert_eq!(session.call().await.0, "Read");
    session.results(&[("     1\tfoo with x", false)]);
    assert_eq!(
        session.call().await,
        (
            "Edit".into(),
            json!({"file_path": "a.txt", "old_string": "foo with", "new_string": "bar", "replace_all": true})
        )
    );
    session.results(&[("The file a.txt has been updated.", false)]);
    assert!(session.text().await.starts_with("Replaced `foo with` with `bar` in a.txt."));
}

#[tokio::test]
async fn denials_say_what_would_allow_the_call() {
    let mut session = Session::new("run rm -r build");
    session.call().await;
    session.results(&[("Permission to use Bash was denied.", true)]);
    let text = session.text().await;
    assert!(
        text.contains("was not allowed") && text.contains("--allowed-tools 'Bash(rm -r build)'"),
        "{text}"
    );
    let mut session = Session::new("create x.txt with hello");
    session.call().await;
    session.results(&[("This needs approval and nobody can answer.", true)]);
    assert!(session.text().await.contains("--permission-mode acceptEdits"));
    let mut session = Session::new("run false");
    session.call().await;
    session.results(&[("Exit code 1", true)]);
    assert_eq!(session.text().await, "The call of Bash failed: Exit code 1");
}

#[tokio::test]
async fn a_repository_is_described_from_its_files() {
    let mut session = Session::new("What does this repository do?");
    assert_eq!(session.calls().await.len(), 2);
    session.results(&[
        ("/w/Cargo.toml\n/w/README.md\n/w/LICENSE", false),
        ("/w/src/main.rs\n/w/docs/a.md", false),
    ]);
    let reads = session.calls().await;
    assert_eq!(reads[0].1, json!({"file_path": "/w/README.md"}));
    assert_eq!(reads[1].1, json!({"file_path": "/w/Cargo.toml"}));
    session.results(&[
        ("     1\t# Thing\n     2\t\n     3\tDoes a thing.", false),
        ("     1\t[package]", false),
    ]);
    let text = session.text().await;
    for expected in ["> # Thing", "> Does a thing.", "[package]", "- src/", "- docs/", "- LICENSE"] {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
}

#[tokio::test]
async fn what_it_does_not_understand_it_says() {
    let text = Session::new("Write me a sonnet about the sea").text().await;
    for expected in
        ["did not understand", "not a language model", "ANTHROPIC_API_KEY", "--model", "Tools on offer: Read"]
    {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
    let text = Session::new("call Nothing with {}").text().await;
    assert!(text.contains("no tool `Nothing`"), "{text}");
    let text = Session::new("call Bash with {\"command\": }").text().await;
    assert!(text.contains("not valid JSON"), "{text}");
}

#[tokio::test]
async fn odd_sentences_never_break_it() {
    for prompt in [
        "",
        "   ",
        "\"",
        "`'\"",
        "replace",
        "replace é with",
        "find",
        "run",
        "call",
        "İstanbul ıçin",
        "find 'a in b",
        "🦀🦀 in 🦀",
        "create file",
        "list",
        "how many lines",
    ] {
        let told = Session::new(prompt).ask().await;
        assert!(!told.reply().content.is_empty(), "{prompt:?}");
    }
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer_and_ids_differ_between_turns() {
    let mut session = Session::new("run ls");
    let first = session.ask().await;
    assert_eq!(first.reply().content, session.ask().await.reply().content);
    session.call().await;
    session.results(&[("a.txt", false)]);
    session.messages.push(message(Role::Assistant, vec![ContentBlock::text("done")]));
    session.messages.push(user("run ls"));
    let later = session.ask().await;
    assert_ne!(first.reply().content, later.reply().content);
    assert!(later.reply().usage.output_tokens > 0 && later.reply().usage.input_tokens > 0);
    assert!(later.reply().cost_usd.abs() < f64::EPSILON);
}

#[tokio::test]
async fn compacting_quotes_what_happened() {
    let mut session = Session::new("run ls");
    session.call().await;
    session.results(&[("a.txt", false)]);
    let mut asked = session.request();
    asked.purpose = Purpose::Compact;
    let told = ask(&session.model, asked).await;
    let [ContentBlock::Text { text }] = &told.reply().content[..] else { panic!("no text") };
    assert!(text.contains("The user said: run ls") && text.contains("The tool Bash was called"), "{text}");
}
