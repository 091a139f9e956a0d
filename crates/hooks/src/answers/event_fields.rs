//! What single events let a hook say besides a verdict and context: another attempt, paths to watch, a title, a first
//! prompt, an answer to a server. Read strictly, and joined like everything else.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::answers::output::text;
use qoder_config::hooks::HookEvent;
use qoder_config::sources::kind_of;

/// The most paths that one hook may watch.
const MOST_WATCHED: usize = 1_000;

/// An answer to a question of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationWord {
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// The answer itself, when it is accepted.
    pub content: Option<Map<String, Value>>,
}

/// What a hook said beyond a verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EventFields {
    /// A denied call may be tried again.
    pub retry: bool,
    /// Absolute paths whose changes are events from now on.
    pub watch_paths: Vec<PathBuf>,
    /// A title for the session.
    pub session_title: Option<String>,
    /// A prompt that goes first.
    pub initial_user_message: Option<String>,
    /// The conversation so far is to be forgotten.
    pub clear_context: bool,
    /// Skills are to be read again.
    pub reload_skills: bool,
    /// Where a worktree was made.
    pub worktree_path: Option<PathBuf>,
    /// An answer to a server's question.
    pub elicitation: Option<ElicitationWord>,
}

impl EventFields {
    /// Reads what belongs to the event.
    pub(crate) fn read(event: HookEvent, part: &Map<String, Value>) -> Result<Self, String> {
        let mut more = Self::default();
        match event {
            HookEvent::PermissionDenied => more.retry = flag(part, "retry")?,
            HookEvent::SessionStart => {
                more.watch_paths = paths(part)?;
                more.session_title = text(part, "sessionTitle")?;
                more.initial_user_message = text(part, "initialUserMessage")?;
                more.reload_skills = flag(part, "reloadSkills")?;
            }
            HookEvent::UserPromptSubmit => more.session_title = text(part, "sessionTitle")?,
            HookEvent::Stop | HookEvent::SubagentStop => more.clear_context = flag(part, "clearContext")?,
            HookEvent::CwdChanged | HookEvent::FileChanged => more.watch_paths = paths(part)?,
            HookEvent::WorktreeCreate => {
                more.worktree_path = text(part, "worktreePath")?.map(PathBuf::from);
            }
            HookEvent::Elicitation | HookEvent::ElicitationResult => {
                more.elicitation = elicitation(part)?;
            }
            HookEvent::PreToolUse
            | HookEvent::PostToolUse
            | HookEvent::PostToolUseFailure
            | HookEvent::SessionEnd
            | HookEvent::StopFailure
            | HookEvent::SubagentStart
            | HookEvent::PreCompact
            | HookEvent::PostCompact
            | HookEvent::InstructionsLoaded
            | HookEvent::PermissionRequest
            | HookEvent::Notification
            | HookEvent::ConfigChange
            | HookEvent::WorktreeRemove
            | HookEvent::TaskCreated
            | HookEvent::TaskCompleted
            | HookEvent::TeammateIdle
            | HookEvent::Setup => {}
        }
        Ok(more)
    }

    /// Adds what another hook said; of single values the last one counts, of answers to servers the stricter.
    pub(crate) fn add(&mut self, other: Self) {
        self.retry |= other.retry;
        self.watch_paths.extend(other.watch_paths);
        self.session_title = other.session_title.or(self.session_title.take());
        self.initial_user_message = other.initial_user_message.or(self.initial_user_message.take());
        self.clear_context |= other.clear_context;
        self.reload_skills |= other.reload_skills;
        self.worktree_path = other.worktree_path.or(self.worktree_path.take());
        let strict =
            |word: &Option<ElicitationWord>| word.as_ref().is_some_and(|word| word.action != "accept");
        if other.elicitation.is_some() && !strict(&self.elicitation) {
            self.elicitation = other.elicitation;
        }
    }
}

fn elicitation(part: &Map<String, Value>) -> Result<Option<ElicitationWord>, String> {
    let Some(action) = text(part, "action")? else { return Ok(None) };
    if !matches!(action.as_str(), "accept" | "decline" | "cancel") {
        return Err(format!("its action is `{action}`; accepted are accept, decline and cancel"));
    }
    let content = match part.get("content") {
        None | Some(Value::Null) => None,
        Some(Value::Object(content)) => Some(content.clone()),
        Some(other) => return Err(format!("its content is {} and not an object", kind_of(other))),
    };
    Ok(Some(ElicitationWord { action, content }))
}

fn flag(part: &Map<String, Value>, name: &str) -> Result<bool, String> {
    match part.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(format!("its {name} is {} and not true or false", kind_of(other))),
    }
}

fn paths(part: &Map<String, Value>) -> Result<Vec<PathBuf>, String> {
    let list = match part.get("watchPaths") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(format!("its watchPaths is {} and not a list", kind_of(other))),
    };
    if list.len() > MOST_WATCHED {
        return Err(format!("its watchPaths has {} entries; at most {MOST_WATCHED} are watched", list.len()));
    }
    list.iter()
        .map(|path| match path.as_str().map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(path) => Ok(path),
            None => Err(format!("its watchPaths holds {path}, which is no absolute path")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(event: HookEvent, part: &Value) -> Result<EventFields, String> {
        EventFields::read(event, part.as_object().unwrap())
    }

    #[test]
    fn each_field_counts_for_its_event_alone() {
        let all = json!({"retry": true, "watchPaths": ["/a"], "sessionTitle": "t", "initialUserMessage": "m",
            "clearContext": true, "reloadSkills": true, "worktreePath": "/w", "action": "accept"});
        for event in HookEvent::ALL {
            let more = read(event, &all).unwrap();
            assert_eq!(more.retry, event == HookEvent::PermissionDenied, "{event:?}");
            assert_eq!(
                more.clear_context,
                matches!(event, HookEvent::Stop | HookEvent::SubagentStop),
                "{event:?}"
            );
            assert_eq!(more.worktree_path.is_some(), event == HookEvent::WorktreeCreate, "{event:?}");
            let answers = matches!(event, HookEvent::Elicitation | HookEvent::ElicitationResult);
            assert_eq!(more.elicitation.is_some(), answers, "{event:?}");
        }
    }

    #[test]
    fn nonsense_is_named() {
        for (event, part) in [
            (HookEvent::CwdChanged, json!({"watchPaths": ["relative"]})),
            (HookEvent::CwdChanged, json!({"watchPaths": "/a"})),
            (HookEvent::PermissionDenied, json!({"retry": "yes"})),
            (HookEvent::Elicitation, json!({"action": "maybe"})),
            (HookEvent::Elicitation, json!({"action": "accept", "content": 1})),
        ] {
            assert!(read(event, &part).is_err(), "{part}");
        }
    }

    #[test]
    fn the_stricter_answer_to_a_server_counts() {
        let word = |action: &str| EventFields {
            elicitation: Some(ElicitationWord { action: action.to_owned(), content: None }),
            ..EventFields::default()
        };
        for (first, second) in [("accept", "decline"), ("decline", "accept")] {
            let mut joined = word(first);
            joined.add(word(second));
            assert_eq!(joined.elicitation.unwrap().action, "decline");
        }
    }
}
