//! Going on from an earlier entry of a session. The log is read once more to find how much of the conversation stays; the
//! cut itself is a record, so that every later process sees the same conversation. Nothing is removed.

use std::rc::Rc;

use qoder_core::State;
use qoder_types::record::{Cut, RecordBody, UserEntry, UserOrigin};
use qoder_types::{
    Actor, CallOutcome, ContentBlock, Message, MessageContent, Record, Role, ToolResultContent,
};

use crate::error::SessionError;
use crate::session::{Session, apply_line};
use crate::store::line::Line;

/// What the model reads about a call whose result is left out.
const LEFT_OUT: &str = "The result of this call is not known: the conversation was taken back to this point. What the call \
did, if it ran, was not undone.";

/// An entry of the present conversation.
struct Mark {
    uuid: String,
    /// The prompt of its turn.
    turn: Rc<str>,
    /// How long the prompt is with it.
    messages: usize,
}

impl Mark {
    /// The cut after this entry, and the calls that it leaves without a result. The log is read up to the entry for that:
    /// keeping the results of every entry until one is chosen would take many times the room of the log.
    fn cut(self, session: &Session, by: &Actor) -> Result<(Cut, Vec<String>), SessionError> {
        let (mut state, mut results, mut open, mut found) = (State::default(), Vec::new(), Vec::new(), false);
        session.location().read(|line| {
            if found {
                return;
            }
            found = seen_in(&line).entry() == Some(self.uuid.as_str());
            apply_line(&mut state, line);
            if found {
                results = state.calls.iter().filter_map(|call| call.result.clone()).collect();
                open = state.open_calls().map(|call| call.id.clone()).collect();
            }
        })?;
        let (at, messages) = (Some(self.uuid), self.messages as u64);
        Ok((Cut { at, messages, results, by: by.clone() }, open))
    }
}

/// The entries of the present conversation: without what summaries replaced and earlier cuts left out.
#[derive(Default)]
struct Marks(Vec<Mark>);

/// What a record means for the entries of the conversation.
enum Seen {
    /// A prompt: it opens a turn.
    Prompt(String),
    /// A summary: it replaces everything before it.
    Summary(String),
    /// An entry inside a turn.
    Within(String),
    /// The conversation went on from this entry, or began anew.
    Cut(Option<String>),
    /// No entry.
    Nothing,
}

impl Seen {
    /// The entry, if it is one.
    fn entry(&self) -> Option<&str> {
        match self {
            Self::Prompt(uuid) | Self::Summary(uuid) | Self::Within(uuid) => Some(uuid),
            Self::Cut(_) | Self::Nothing => None,
        }
    }
}

fn seen_in(line: &Line) -> Seen {
    match line {
        Line::Record(Record { body, .. }) | Line::Foreign(body) => seen(body),
    }
}

fn seen(body: &RecordBody) -> Seen {
    match body {
        RecordBody::User(entry) => match entry.origin {
            UserOrigin::Prompt => Seen::Prompt(entry.uuid.clone()),
            UserOrigin::Summary => Seen::Summary(entry.uuid.clone()),
            UserOrigin::ToolResult | UserOrigin::Notice => Seen::Within(entry.uuid.clone()),
        },
        RecordBody::Assistant(entry) => Seen::Within(entry.uuid.clone()),
        RecordBody::Cut(cut) => Seen::Cut(cut.at.clone()),
        RecordBody::SessionStarted(_)
        | RecordBody::Epoch(_)
        | RecordBody::InputAdmitted(_)
        | RecordBody::InputWithdrawn(_)
        | RecordBody::System(_)
        | RecordBody::ModelRequested(_)
        | RecordBody::ModelFailed(_)
        | RecordBody::ModelNoticed(_)
        | RecordBody::Decided(_)
        | RecordBody::Asked(_)
        | RecordBody::Answered(_)
        | RecordBody::Elicited(_)
        | RecordBody::ElicitationAnswered(_)
        | RecordBody::PermissionsChanged(_)
        | RecordBody::SideCalled(_)
        | RecordBody::ToolStarted(_)
        | RecordBody::TaskStarted(_)
        | RecordBody::TaskParked(_)
        | RecordBody::TaskEnded(_)
        | RecordBody::Hooked(_)
        | RecordBody::Interrupted(_)
        | RecordBody::TurnEnded(_)
        | RecordBody::FileKept(_)
        | RecordBody::FilesRewound(_)
        | RecordBody::Unknown(_) => Seen::Nothing,
    }
}

impl Marks {
    fn take(&mut self, seen: Seen, after: &State) {
        let mut turn = self.0.last().map_or_else(|| Rc::from(""), |mark| Rc::clone(&mark.turn));
        let uuid = match seen {
            Seen::Prompt(uuid) => {
                turn = Rc::from(uuid.as_str());
                uuid
            }
            Seen::Summary(uuid) => {
                self.0.clear();
                uuid
            }
            Seen::Within(uuid) => uuid,
            Seen::Cut(at) => {
                let place = |at: &String| self.0.iter().position(|mark| mark.uuid == *at);
                let end = at.as_ref().and_then(place).map_or(0, |place| place + 1);
                self.0.truncate(end);
                return;
            }
            Seen::Nothing => return,
        };
        self.0.push(Mark { uuid, turn, messages: after.prompt.len() });
    }
}

/// The entries of a session's conversation, from its log.
fn marks(session: &Session) -> Result<Marks, SessionError> {
    let mut marks = Marks::default();
    let mut state = State::default();
    session.location().read(|line| {
        let seen = seen_in(&line);
        apply_line(&mut state, line);
        marks.take(seen, &state);
    })?;
    Ok(marks)
}

/// The conversation as it was before a prompt.
pub(crate) struct BeforePrompt {
    cut: Cut,
    /// Calls of its last reply that have no result by then.
    open: Vec<String>,
    /// Messages that would be left out.
    pub(crate) removed: u64,
}

/// The conversation as it was before the prompt `id`; `None` when it has no such prompt.
pub(crate) fn before_prompt(session: &Session, id: &str) -> Result<Option<BeforePrompt>, SessionError> {
    let mut marks = marks(session)?;
    let is_prompt = |mark: &Mark| mark.uuid == id && *mark.turn == *id;
    let Some(place) = marks.0.iter().position(is_prompt) else { return Ok(None) };
    marks.0.truncate(place);
    let (cut, open) = match marks.0.pop() {
        Some(last) => last.cut(session, &Actor::Resume)?,
        None => (Cut { at: None, messages: 0, results: Vec::new(), by: Actor::Resume }, Vec::new()),
    };
    let removed = (session.state.prompt.len() as u64).saturating_sub(cut.messages);
    Ok(Some(BeforePrompt { cut, open, removed }))
}

/// Takes the conversation back.
pub(crate) fn go_back(session: &mut Session, back: BeforePrompt, by: &Actor) -> Result<(), SessionError> {
    keep(session, Cut { by: by.clone(), ..back.cut }, back.open)
}

/// Continues from the entry `at`. With `drops_turn`, everything that this leaves out has to belong to the turn of that
/// prompt.
pub(crate) fn go_on_from(
    session: &mut Session,
    at: &str,
    drops_turn: Option<&str>,
) -> Result<(), SessionError> {
    let mut marks = marks(session)?;
    let missing = || SessionError::NoSuchEntry { id: session.id.clone(), at: at.to_owned() };
    let place = marks.0.iter().position(|mark| mark.uuid == at).ok_or_else(missing)?;
    let left_out = marks.0.split_off(place + 1);
    if let Some(turn) = drops_turn.filter(|turn| left_out.iter().any(|mark| &*mark.turn != *turn)) {
        return Err(SessionError::DropsMore { at: at.to_owned(), turn: turn.to_owned() });
    }
    let Some(last) = marks.0.pop().filter(|_| !left_out.is_empty()) else { return Ok(()) };
    let (cut, open) = last.cut(session, &Actor::Resume)?;
    keep(session, cut, open)
}

/// Puts a cut on record. The results that it makes necessary are kept with it or not at all.
fn keep(session: &mut Session, cut: Cut, open: Vec<String>) -> Result<(), SessionError> {
    let mut parent = cut.at.clone();
    let mut bodies = vec![RecordBody::Cut(Box::new(cut))];
    for tool_use_id in open {
        let entry = left_out_result(session, tool_use_id, parent);
        parent = Some(entry.uuid.clone());
        bodies.push(RecordBody::User(Box::new(entry)));
    }
    session.append_all(bodies)?;
    Ok(())
}

/// No call is without a result, whatever was left out.
fn left_out_result(session: &Session, tool_use_id: String, parent: Option<String>) -> UserEntry {
    let content = ToolResultContent::Text(LEFT_OUT.to_owned());
    let block = ContentBlock::ToolResult { tool_use_id, content, is_error: true };
    let message = Message { role: Role::User, content: MessageContent::Blocks(vec![block]) };
    UserEntry {
        parent_uuid: parent,
        outcome: Some(CallOutcome::Unknown),
        ..session.user_entry(UserOrigin::ToolResult, message)
    }
}
