//! A conversation as Markdown, for a file: what was asked and said, which calls were made and what came of them.

use std::fmt::Write;

use super::summary::{call_about, call_outcome, tool_name};
use crate::state::{Cell, CellBody, TodoProgress, TurnEnd};

/// Output of a call beyond this many lines is left out.
const MOST_OUTPUT: usize = 200;

/// The cells as Markdown.
pub(crate) fn markdown<'a>(cells: impl Iterator<Item = &'a Cell>, cwd: &str) -> String {
    let mut text = String::new();
    for cell in cells {
        add(&mut text, cell, cwd);
    }
    text
}

/// Writing into a text cannot fail.
fn add(out: &mut String, cell: &Cell, cwd: &str) {
    let _ = match &cell.body {
        CellBody::Prompt(prompt) => writeln!(out, "## {}\n", prompt.text.replace('\n', "\n> ")),
        CellBody::Reply { text } => writeln!(out, "{}\n", text.trim_end()),
        CellBody::Thinking { .. } => Ok(()),
        CellBody::Calls(calls) => {
            for call in calls {
                let about = call_about(call, cwd);
                let outcome = call_outcome(call);
                let _ =
                    writeln!(out, "**{}** `{}` {outcome}\n", tool_name(&call.tool), about.replace('`', "'"));
                let Some(result) = call.result() else { continue };
                let lines: Vec<&str> = result.text.trim_end().lines().collect();
                if lines.is_empty() {
                    continue;
                }
                let fence = if result.text.contains("```") { "````" } else { "```" };
                let shown = lines.iter().take(MOST_OUTPUT).copied().collect::<Vec<_>>().join("\n");
                let rest = lines.len().saturating_sub(MOST_OUTPUT);
                let more = if rest > 0 { format!("\n… {rest} more lines") } else { String::new() };
                let _ = writeln!(out, "{fence}\n{shown}{more}\n{fence}\n");
            }
            Ok(())
        }
        CellBody::CommandOutput(text) => writeln!(out, "```\n{}\n```\n", text.trim_end()),
        CellBody::Notice(notice) => writeln!(out, "> {}\n", notice.text.replace('\n', "\n> ")),
        CellBody::End(TurnEnd::Interrupted) => writeln!(out, "*interrupted*\n"),
        CellBody::End(TurnEnd::Failed(errors)) => writeln!(out, "*failed: {}*\n", errors.join("; ")),
        CellBody::End(TurnEnd::Limit(text)) => writeln!(out, "*{text}*\n"),
        CellBody::End(TurnEnd::Done { .. }) => Ok(()),
        CellBody::Todo(items) => {
            for item in items {
                let sign = if item.progress == TodoProgress::Done { "x" } else { " " };
                let _ = writeln!(out, "- [{sign}] {}", item.text);
            }
            writeln!(out)
        }
        CellBody::Rule(text) => writeln!(out, "---\n\n*{text}*\n"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Conversation, Level, Prompt};
    use std::time::Instant;

    #[test]
    fn a_conversation_is_readable_markdown() {
        let mut conversation = Conversation::new("s");
        let prompt = Prompt { uuid: "u".to_owned(), text: "fix it".to_owned(), images: 0 };
        conversation.submitted(prompt, Instant::now());
        conversation.command_output("done");
        conversation.notice(Level::Info, "careful");
        let text = markdown(conversation.cells(), "/p");
        assert_eq!(text, "## fix it\n\n```\ndone\n```\n\n> careful\n\n");
    }
}
