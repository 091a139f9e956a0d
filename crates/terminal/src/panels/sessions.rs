//! Sessions to resume, and messages to go back to.

use std::collections::HashMap;
use std::time::Duration;

use super::{Panel, PanelRow};
use crate::front::SessionRow;
use crate::state::Prompt;
use crate::text::one_line;

/// Sessions, newest first.
pub(crate) fn sessions_panel(sessions: &[SessionRow]) -> Panel {
    let mut panel = Panel::new("Sessions", "no earlier sessions in this folder");
    for session in sessions {
        let title =
            session.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&session.first_prompt);
        let title = if title.is_empty() { session.id.as_str() } else { title };
        let mut facts = vec![age(session.age)];
        facts.extend(session.branch.clone());
        facts.extend(session.doing.clone());
        let mut row = PanelRow::new(one_line(title), one_line(&facts.join(" · ")))
            .with_detail(if title == session.first_prompt {
                String::new()
            } else {
                one_line(&session.first_prompt)
            })
            .with_detail(one_line(&session.folder))
            .offering("Resume it", format!("/resume {}", session.id))
            .offering("Resume a copy of it", format!("/branch {}", session.id));
        row.session = Some(session.id.clone());
        panel.rows.push(row);
    }
    panel
}

/// Messages of the conversation, newest first. `figures` says what going back to one would change.
pub(crate) fn rewind_panel(prompts: &[Prompt], figures: &HashMap<String, String>) -> Panel {
    let mut panel = Panel::new("Go back to a message", "there is no message to go back to");
    for prompt in prompts.iter().rev() {
        let first = prompt.text.lines().next().unwrap_or_default();
        let about = figures.get(&prompt.uuid).cloned().unwrap_or_default();
        let row = PanelRow::new(one_line(first), about)
            .offering("What would change", format!("/rewind {} dry", prompt.uuid))
            .offering("Files and conversation", format!("/rewind {} both", prompt.uuid))
            .offering("Conversation only", format!("/rewind {} conversation", prompt.uuid))
            .offering("Files only", format!("/rewind {} files", prompt.uuid));
        panel.rows.push(row);
    }
    panel
}

/// How long ago something was.
pub(crate) fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..=59 => "now".to_owned(),
        60..=3_599 => format!("{} min ago", seconds / 60),
        3_600..=86_399 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let texts = [5, 90, 7_300, 200_000].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(texts, ["now", "1 min ago", "2 h ago", "2 d ago"]);
    }
}
