//! Every kind of cell as its lines, at three widths, with and without colours. A change of what people see changes a file of
//! `snapshots/`; `INSTA_UPDATE=always` writes them anew.

use std::fmt::Write;
use std::time::{Duration, Instant};

use qoder_protocol::SessionEvent;
use qoder_protocol::messages::{AssistantMessage, ResultMessage, StreamMessage, UserMessage};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::text::Line;
use serde_json::{Value, json};

use super::render;
use crate::state::{Conversation, Level, Prompt};
use crate::theme::{ColorSupport, Extent, Look, Signs, Theme};

const REPLY: &str = "# A heading\n\nProse with **strong**, *slanted* and `code` words that is long enough to be wrapped in a narrow \
    window.\n\n1. one\n2. two\n   - nested, with a [link](https://example.com/a/long/path)\n\n> a quotation\n\n\
    ```text\nfn main() { println!(\"a line of code that is never broken, however narrow the window is\"); }\n```\n\n\
    | name | figure |\n|---|---:|\n| first | 1 |\n| second, longer | 2345 |\n";
const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -10,4 +10,5 @@\n fn one() {}\n-let answer = 41;\n+let answer = 42;\n\
    +let more = true;\n fn two() {}\n";

struct Story {
    conversation: Conversation,
    now: Instant,
    calls: usize,
}

impl Story {
    fn message(&mut self, message: StreamMessage) {
        self.conversation.fold(&SessionEvent::Message(Box::new(message)), self.now);
    }

    fn says(&mut self, block: &Value) {
        let message: AssistantMessage =
            serde_json::from_value(json!({ "message": { "content": [block] } })).unwrap();
        self.message(StreamMessage::Assistant(Box::new(message)));
    }

    fn calls(&mut self, tool: &str, input: &Value) -> String {
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        self.says(&json!({ "type": "tool_use", "id": id, "name": tool, "input": input }));
        id
    }

    fn result(&mut self, id: &str, text: &str, is_error: bool, structured: &Value) {
        let block =
            json!({ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error });
        let message =
            json!({ "message": { "content": [block] }, "tool_use_result": structured, "duration_ms": 3200 });
        let message: UserMessage = serde_json::from_value(message).unwrap();
        self.message(StreamMessage::User(Box::new(message)));
    }
}

/// One of everything.
fn story() -> Conversation {
    let mut story = Story { conversation: Conversation::holding_all("s"), now: Instant::now(), calls: 0 };
    let text = "Please look at this, which is a prompt that takes more than one row\nand a second line: 漢字 👩‍👩‍👧 e\u{301}".to_owned();
    story.conversation.submitted(Prompt { uuid: "u".to_owned(), text, images: 2 }, story.now);
    story.says(&json!({ "type": "thinking", "thinking": "This may take a while." }));
    story.says(&json!({ "type": "text", "text": REPLY }));
    for file in ["src/lib.rs", "src/a/rather/deep/folder/with/a/file.rs"] {
        let id = story.calls("Read", &json!({ "file_path": format!("/work/{file}") }));
        story.result(&id, "text", false, &json!({ "totalLines": 120 }));
    }
    let id = story.calls("Bash", &json!({ "command": "cargo test --workspace --all-features\necho done" }));
    let output: String = (1..=9).map(|number| format!("line {number}\n")).collect();
    story.result(&id, &output, false, &json!({ "stdout": output, "stderr": "", "exitCode": 0 }));
    let id = story.calls("Bash", &json!({ "command": "false" }));
    let failed = "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}\u{1b}[2Jnot obeyed";
    story.result(&id, failed, true, &json!({ "stdout": failed, "stderr": "", "exitCode": 1 }));
    let id = story
        .calls("Edit", &json!({ "file_path": "/work/src/lib.rs", "old_string": "a", "new_string": "b" }));
    story.result(&id, "ok", false, &json!({ "diff": DIFF }));
    let id = story.calls("mcp__weather__forecast", &json!({ "city": "Ulm", "days": 3 }));
    story.result(&id, "sunny", false, &Value::Null);
    let id = story.calls(
        "Agent",
        &json!({ "subagent_type": "reviewer", "description": "read the change", "prompt": "…" }),
    );
    story.result(&id, "fine", false, &Value::Null);
    story.calls("Bash", &json!({ "command": "sleep 100" }));
    story.conversation.notice(Level::Info, "For information.");
    story
        .conversation
        .notice(Level::Warning, "Something to take care of, in words that need more than a narrow row.");
    story.conversation.notice(Level::Error, "It failed.");
    let failed = json!({ "subtype": "error_during_execution", "is_error": true, "errors": ["the endpoint answered 529: overloaded"],
        "terminal_reason": "api_error" });
    let failed: ResultMessage = serde_json::from_value(failed).unwrap();
    story.message(StreamMessage::Result(Box::new(failed)));
    story.conversation
}

/// Lines as text. Styles are shown in front of what they are for.
fn shown(lines: &[Line<'static>], with_styles: bool) -> String {
    let mut text = String::new();
    for line in lines {
        for span in &line.spans {
            let style = span.style;
            if with_styles && (style.fg.is_some() || !style.add_modifier.is_empty()) {
                let color = style.fg.filter(|color| *color != Color::Reset).map(|color| color.to_string());
                let bold = style.add_modifier.contains(Modifier::BOLD).then_some("bold");
                let words: Vec<&str> = color.as_deref().into_iter().chain(bold).collect();
                if !words.is_empty() {
                    write!(text, "‹{}›", words.join(" ")).unwrap();
                }
            }
            text.push_str(&span.content);
        }
        text.push('\n');
    }
    text
}

fn cells(width: usize, has_colors: bool) -> String {
    let conversation = story();
    let support = if has_colors { ColorSupport::Named } else { ColorSupport::None };
    let theme = Theme::new(None, &serde_json::Map::new(), support);
    let look = Look {
        width,
        theme: &theme,
        signs: Signs::of(true),
        still: true,
        full_thinking: true,
        output_lines: 5,
        cwd: "/work",
        extent: Extent::Short,
        now: Instant::now() + Duration::from_secs(1),
    };
    let mut text = String::new();
    for cell in conversation.cells() {
        let lines = render::lines(cell, &look);
        let live = if cell.is_finished { Vec::new() } else { render::live_lines(cell, &look) };
        text.push_str(&shown(if cell.is_finished { &lines } else { &live }, has_colors));
        text.push('\n');
    }
    text
}

#[test]
fn cells_at_40_columns() {
    insta::assert_snapshot!(cells(40, false));
}

#[test]
fn cells_at_80_columns() {
    insta::assert_snapshot!(cells(80, false));
}

#[test]
fn cells_at_120_columns() {
    insta::assert_snapshot!(cells(120, false));
}

#[test]
fn cells_in_colour() {
    insta::assert_snapshot!(cells(80, true));
}

#[test]
fn rows_of_prose_fit_and_carry_no_escapes() {
    for width in [40, 80, 120] {
        let text = cells(width, false);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
        for row in text.lines().filter(|row| row.contains("wrapped in") || row.contains("take care")) {
            assert!(row.chars().count() <= width, "{width}: {row}");
        }
    }
}
