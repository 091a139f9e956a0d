//! `qodercli sessions export`: a session as Markdown for people, or its log as it is.

use std::collections::BTreeMap;
use std::io::Write;

use qoder_types::ContentBlock;
use qoder_types::record::{RecordBody, UserOrigin};

use super::{locate, read};
use crate::exit::{Exit, Fault};

/// Writes a session to stdout.
pub fn run(environment: &BTreeMap<String, String>, id: &str, format: &str) -> Result<Exit, Fault> {
    let paths = locate(environment, id)?;
    let mut out = std::io::stdout().lock();
    if format == "jsonl" {
        let mut file = std::fs::File::open(&paths.log)
            .map_err(|error| Fault::input(format!("cannot read {}: {error}", paths.log.display()), ""))?;
        return Ok(if std::io::copy(&mut file, &mut out).is_ok() {
            Exit::Success
        } else {
            Exit::OutputClosed
        });
    }
    let mut text = format!("# Session {id}\n");
    read(&paths, |body| text.push_str(&markdown(body)))?;
    Ok(if out.write_all(text.as_bytes()).is_ok() { Exit::Success } else { Exit::OutputClosed })
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
                ContentBlock::ToolUse { name, input, .. } => {
                    Some(format!("\n**{name}**\n\n```json\n{input:#}\n```\n"))
                }
                _ => None,
            });
            format!("\n## Assistant\n\n{}", blocks.collect::<String>())
        }
        _ => String::new(),
    }
}
