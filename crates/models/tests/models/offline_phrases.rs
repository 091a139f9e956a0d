//! The offline model: which sentences it understands, which tools it calls for them, what
//! it says about results, failures and denials, and how it says that it does not
//! understand.

use std::sync::Arc;

use qoder_core::ports::{Model, ModelRequest, PromptMessage};
use qoder_models::{ModelOptions, resolve};
use qoder_types::{ContentBlock, Purpose, Role, StopReason, ToolResultContent};
use serde_json::{Value, json};

use crate::support::{Collected, ask, assert_well_ordered, message, request, tool, user};

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

    async fn ask(&self) -> Collected {
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
async fn more_ways_to_say_the_same() {
    let todo = json!({"pattern": "TODO", "output_mode": "content", "-n": true, "path": "src"});
    let defined = json!({"pattern": r"\b(fn|def|function|class|struct)\s+main\b", "output_mode": "content", "-n": true});
    let cases = [
        ("Find all TODOs in src", "Grep", todo.clone()),
        ("find all TODO comments in src, please", "Grep", todo.clone()),
        ("grep TODO src", "Grep", todo.clone()),
        ("search for TODO in src", "Grep", todo.clone()),
        ("search for TODO in the src folder", "Grep", todo),
        ("find \"TODOs\"", "Grep", json!({"pattern": "TODOs", "output_mode": "content", "-n": true})),
        ("where is main defined?", "Grep", defined.clone()),
        ("Find the definition of main()", "Grep", defined.clone()),
        ("find where the function `main` is defined", "Grep", defined),
        ("find all files named main.rs", "Glob", json!({"pattern": "**/main.rs"})),
        ("list files called main.rs in crates", "Glob", json!({"pattern": "**/main.rs", "path": "crates"})),
        ("where is main.rs?", "Glob", json!({"pattern": "**/main.rs"})),
        ("what files are in src?", "Glob", json!({"pattern": "*", "path": "src"})),
        ("change qux to zed in a.txt please", "Read", json!({"file_path": "a.txt"})),
        ("show me the readme", "Glob", json!({"pattern": "README*"})),
        ("read the first 2 lines of README.md", "Read", json!({"file_path": "README.md", "limit": 2})),
        (
            "show lines 3 to 5 of a.txt, thanks!",
            "Read",
            json!({"file_path": "a.txt", "offset": 3, "limit": 3}),
        ),
        (
            "how many lines are in src/main.rs, please?",
            "Grep",
            json!({"pattern": "^", "path": "src/main.rs", "output_mode": "count"}),
        ),
        ("run echo please", "Bash", json!({"command": "echo please", "description": "Run echo please"})),
    ];
    for (prompt, name, input) in cases {
        assert_eq!(Session::new(prompt).call().await, (name.to_owned(), input), "{prompt}");
    }
}

#[tokio::test]
async fn a_polite_change_changes_what_was_named() {
    let mut session = Session::new("change qux to zed in a.txt please");
    session.call().await;
    session.results(&[("     1\tqux", false)]);
    let (name, input) = session.call().await;
    assert_eq!(
        (name.as_str(), &input["old_string"], &input["new_string"]),
        ("Edit", &json!("qux"), &json!("zed"))
    );
    session.results(&[("updated", false)]);
    assert!(session.text().await.starts_with("Replaced `qux` with `zed` in a.txt."));
    let text = Session::new("replace a with b in a.txt and b.txt").text().await;
    assert!(text.contains("nothing was changed") && text.contains("and b.txt"), "{text}");
}

#[tokio::test]
async fn several_files_are_shown_together() {
    let mut session = Session::new("show me README.md and a.txt");
    let calls = session.calls().await;
    assert_eq!(
        calls,
        [
            ("Read".to_owned(), json!({"file_path": "README.md"})),
            ("Read".to_owned(), json!({"file_path": "a.txt"}))
        ]
    );
    session.results(&[("     1\t# Title", false), ("File does not exist: a.txt", true)]);
    let text = session.text().await;
    assert!(text.contains("README.md:\n\n```\n# Title\n```"), "{text}");
    assert!(text.contains("a.txt: The call of Read failed: File does not exist"), "{text}");
}

#[tokio::test]
async fn the_readme_is_found_by_its_beginning() {
    let mut session = Session::new("Show me the readme, please");
    session.call().await;
    session.results(&[("/w/README.txt\n/w/README.md", false)]);
    assert_eq!(session.call().await, ("Read".into(), json!({"file_path": "/w/README.md"})));
    session.results(&[("     1\t# Title", false)]);
    assert!(session.text().await.contains("# Title"));
    let mut session = Session::new("show me the readme");
    session.call().await;
    session.results(&[("No files found.", false)]);
    assert_eq!(session.text().await, "No file here has a name that begins with README.");
}

#[tokio::test]
async fn what_was_understood_in_part_is_answered_in_part_and_says_so() {
    for (prompt, output, left_over) in [
        ("find TODO in src and fix them", "src/a.rs:1:TODO", "and fix them"),
        ("list files in src sorted by size", "/w/src/a.rs", "sorted by size"),
        ("show me README.md and explain it", "     1\t# Title", "explain it"),
        ("how many lines does src/a.rs have without comments?", "3", "without comments?"),
        ("grep -i TODO src", "src/a.rs:1:TODO", "-i"),
    ] {
        let mut session = Session::new(prompt);
        session.call().await;
        session.results(&[(output, false)]);
        let text = session.text().await;
        assert!(text.contains("understood only a part"), "{prompt}: {text}");
        assert!(text.ends_with(&format!("\u{201c}{left_over}\u{201d}")), "{prompt}: {text}");
    }
    let mut session = Session::new("find TODO in src");
    session.call().await;
    session.results(&[("src/a.rs:1:TODO", false)]);
    assert!(!session.text().await.contains("only a part"));
}

#[tokio::test]
async fn nothing_is_claimed_that_was_not_looked_at() {
    let said = async |prompt: &str, output: &str| {
        let mut session = Session::new(prompt);
        session.call().await;
        session.results(&[(output, false)]);
        session.text().await
    };
    let text = said("find the old parser", "No matches found.").await;
    assert!(text.contains("exactly these words"), "{text}");
    let text = said("where is main defined?", "No matches found.").await;
    assert!(text.contains("may be defined in a form that I do not know"), "{text}");
    let text = said("how many lines does src/logo.png have?", "No files found.").await;
    assert!(text.contains("empty, or not text") && !text.contains("0 lines"), "{text}");
    let remark = "[The 1 most recently changed of 9 files are listed. Use a narrower pattern or path.]";
    let text = said("list files in src", &format!("/w/src/a.rs\n\n{remark}")).await;
    assert!(text.starts_with("More than 1 files match") && text.ends_with(remark), "{text}");
    assert!(said("list files in src", "/w/src/a.rs").await.starts_with("1 file matches"));
    let text = said("show a.txt", &format!("     1\tx\n\n{remark}")).await;
    assert_eq!(text, format!("a.txt:\n\n```\nx\n```\n\n{remark}"));
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
async fn denials_are_told_with_their_own_advice_and_no_other() {
    let mut session = Session::new("run rm -r build");
    session.call().await;
    let reason = "Permission to use Bash was denied: no. A person can run it by hand.";
    session.results(&[(reason, true)]);
    assert_eq!(session.text().await, format!("The call of Bash was not allowed: {reason}"));
    let mut session = Session::new("create x.txt with hello");
    session.call().await;
    session.results(&[("The user rejected this.", true)]);
    let text = session.text().await;
    assert!(text.contains("was not allowed") && text.contains("`qodercli permissions explain`"), "{text}");
    assert!(!text.contains("--"), "what would help is not known here: {text}");
    let mut session = Session::new("run false");
    session.call().await;
    session.results(&[("Exit code 1", true)]);
    assert_eq!(session.text().await, "The call of Bash failed: Exit code 1");
    let mut session = Session::new("run cat secret");
    session.call().await;
    session.results(&[("cat: secret: Permission denied\nExit code 1", true)]);
    assert!(!session.text().await.contains("--allowed-tools"), "no rule of ours refused this");
}

#[tokio::test]
async fn a_repository_is_described_from_its_files() {
    let mut session = Session::new("What does this repository do?");
    assert_eq!(session.calls().await.len(), 3);
    session.results(&[
        ("/w/Cargo.toml\n/w/README.md\n/w/LICENSE", false),
        ("/w/src/main.rs\n/w/docs/a.md", false),
        ("/w/crates/one/Cargo.toml", false),
    ]);
    let reads = session.calls().await;
    assert_eq!(reads[0].1, json!({"file_path": "/w/README.md"}));
    assert_eq!(reads[1].1, json!({"file_path": "/w/Cargo.toml"}));
    session.results(&[
        ("     1\t# Thing\n     2\t\n     3\tDoes a thing.", false),
        ("     1\t[package]", false),
    ]);
    let text = session.text().await;
    for expected in
        ["> # Thing", "> Does a thing.", "[package]", "- src/", "- docs/", "- crates/", "- LICENSE"]
    {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
}

#[tokio::test]
async fn what_it_does_not_understand_it_says() {
    let text = Session::new("Write me a sonnet about the sea").text().await;
    for expected in ["did not understand", "not a language model", "ANTHROPIC_API_KEY", "`help`"] {
        assert!(text.contains(expected), "{expected} is missing in {text}");
    }
    assert_eq!(text.lines().count(), 2, "{text}");
    for prompt in ["help", "What can you do?"] {
        let text = Session::new(prompt).text().await;
        for expected in ["show me README.md", "--model", "Tools on offer: Read"] {
            assert!(text.contains(expected), "{prompt}: {expected} is missing in {text}");
        }
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
