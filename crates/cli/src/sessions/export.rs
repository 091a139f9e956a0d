//! `qodercli sessions export`: a session as Markdown for people, or its log as it is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

use qoder_types::ContentBlock;
use qoder_types::record::{RecordBody, UserOrigin};

use super::{locate, read};
use crate::exit::{Exit, Fault};
use crate::screen::Document;

/// Writes a session to stdout.
pub fn run(environment: &BTreeMap<String, String>, id: &str, format: &str) -> Result<Exit, Fault> {
    let (id, paths) = locate(environment, id)?;
    let mut out = Document::new();
    let written = |outcome: std::io::Result<()>| match outcome {
        Ok(()) => Ok(Exit::Success),
        Err(_) => Ok(Exit::OutputClosed),
    };
    if format == "jsonl" {
        let unreadable =
            |error: std::io::Error| Fault::input(format!("cannot read {}: {error}", paths.log.display()), "");
        let mut file = BufReader::new(std::fs::File::open(&paths.log).map_err(unreadable)?);
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line).map_err(unreadable)? > 0 {
            if let Err(error) = out.write_log(&line) {
                return written(Err(error));
            }
            line.clear();
        }
        return written(out.flush());
    }
    let mut text = format!("# Session {id}\n");
    read(&paths, |body| text.push_str(&markdown(body)))?;
    written(out.write_data(&text).and_then(|()| out.flush()))
}

fn markdown(body: &RecordBody) -> String {
    match body {
        RecordBody::User(entry) if entry.origin == UserOrigin::Prompt => {
            format!("\n## User\n\n{}\n", entry.message.content.to_text())
        }
        RecordBody::User(entry) => match &entry.message.content {
            qoder_types::MessageContent::Blocks(blocks) => blocks
                .iter()
                .filter_map(|block| match block {
                    ContentBlock::ToolResult { content, .. } => {
                        Some(format!("\n```text\n{}\n```\n", content.to_text().replace("```", "'''")))
                    }
                    _ => None,
                })
                .collect(),
            qoder_types::MessageContent::Text(text) => format!("\n*{text}*\n"),
        },
        RecordBody::Assistant(entry) => {
            let blocks = entry.message.content.iter().filter_map(|block| match block {
                ContentBlock::Text { text } => Some(format!("{text}\n")),
                ContentBlock::ToolUse { id, name, input } => {
                    Some(format!("\n**{name}** `{id}`\n\n```json\n{input:#}\n```\n"))
                }
                _ => None,
            });
            format!("\n## Assistant\n\n{}", blocks.collect::<String>())
        }
        RecordBody::Hooked(hooked) => match (&hooked.updated_input, &hooked.tool_use_id) {
            (Some(input), Some(call)) => changed(call, input, &hooked.changer()),
            _ => String::new(),
        },
        RecordBody::Answered(answer) => match &answer.updated_input {
            Some(input) => changed(&answer.tool_use_id, input, &answer.by.to_string()),
            None => String::new(),
        },
        _ => String::new(),
    }
}

/// What ran is not what the model asked for.
fn changed(call: &str, input: &serde_json::Value, by: &str) -> String {
    format!("\n*Input of `{call}` changed by {by}; the call runs with:*\n\n```json\n{input:#}\n```\n")
}
