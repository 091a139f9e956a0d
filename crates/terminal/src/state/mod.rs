//! The fold of a session's events into what a screen shows: cells in order, the todo list, tasks, open questions and figures. A
//! resumed session is folded by the same code as a live one; pieces of replies only ever change the cell that is not finished.

mod calls;
mod cell;
mod facts;
mod fold;
mod partial;
mod results;
mod tasks;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use qoder_protocol::{ActionId, Elicitation, Question, SessionEvent, SessionState};
use qoder_types::Actor;

#[cfg(test)]
pub(crate) use cell::CallResult;
pub(crate) use cell::{AgentProgress, Call, CallProgress, Cell, CellBody, Level, Notice, Prompt, TurnEnd};
pub(crate) use facts::Facts;
pub(crate) use tasks::{Task, Tasks};

/// How many finished cells are held while a long session is read again.
const MOST_REPLAYED: usize = 256;
/// How many denials are remembered.
const MOST_DENIALS: usize = 50;
/// How many changes of files are remembered.
const MOST_CHANGES: usize = 500;

/// An input that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queued {
    /// Its id.
    pub(crate) id: String,
    /// What the person wrote.
    pub(crate) text: String,
}

/// A call that was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    /// The tool.
    pub(crate) tool: String,
    /// The call.
    pub(crate) tool_use_id: String,
    /// Why.
    pub(crate) reason: String,
}

/// One step of the model's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TodoItem {
    /// What is to be done.
    pub(crate) text: String,
    /// What is shown while it is being done.
    pub(crate) active: String,
    /// How far it is.
    pub(crate) progress: TodoProgress,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TodoProgress {
    /// Not begun.
    Open,
    /// Begun.
    Active,
    /// Done.
    Done,
}

/// A change of a file by a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChange {
    /// The file.
    pub(crate) path: String,
    /// The difference in unified form.
    pub(crate) diff: String,
}

/// What a screen shows of a session.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// Model, mode, cost and the like.
    pub(crate) facts: Facts,
    /// The model's list of steps.
    pub(crate) todo: Vec<TodoItem>,
    /// Background commands and agents.
    pub(crate) tasks: Tasks,
    /// Inputs that wait.
    pub(crate) queued: Vec<Queued>,
    /// Questions that are open, oldest first.
    pub(crate) questions: Vec<Arc<Question>>,
    /// Questions of servers that are open, oldest first.
    pub(crate) elicitations: Vec<Arc<Elicitation>>,
    /// The last denials.
    pub(crate) denials: VecDeque<Denial>,
    /// Prompts of the conversation, oldest first.
    pub(crate) prompts: Vec<Prompt>,
    /// The last complete reply.
    pub(crate) last_reply: String,
    /// Questions that this front answered, and as whom.
    own_answers: HashMap<ActionId, Actor>,
    /// Changes of files, oldest first.
    pub(crate) changes: VecDeque<FileChange>,
    /// True once everything that was on record has been read.
    pub(crate) is_caught_up: bool,
    /// Set when the session is over, with the reason when it is not an ordinary one.
    pub(crate) ended: Option<Option<String>>,
    /// Cells of a long session that are not held.
    pub(crate) dropped: usize,
    /// The first cell that was not on record when the session was opened.
    pub(crate) first_live: u64,
    cells: VecDeque<Cell>,
    next_id: u64,
    partial: partial::Partial,
    shown_prompts: HashSet<String>,
    reported_servers: BTreeSet<(String, String)>,
    todo_changed: bool,
    /// True when something was said in the running turn: a reply or the output of a command.
    turn_spoke: bool,
    holds_all: bool,
    /// The entry that cells made now belong to.
    entry: String,
}

impl Conversation {
    /// Of a session that nothing is known of.
    pub(crate) fn new(session_id: &str) -> Self {
        Self {
            facts: Facts::new(session_id),
            todo: Vec::new(),
            tasks: Tasks::default(),
            queued: Vec::new(),
            questions: Vec::new(),
            elicitations: Vec::new(),
            denials: VecDeque::new(),
            prompts: Vec::new(),
            last_reply: String::new(),
            own_answers: HashMap::new(),
            changes: VecDeque::new(),
            is_caught_up: false,
            ended: None,
            dropped: 0,
            first_live: 0,
            cells: VecDeque::new(),
            next_id: 0,
            partial: partial::Partial::default(),
            shown_prompts: HashSet::new(),
            reported_servers: BTreeSet::new(),
            todo_changed: false,
            turn_spoke: false,
            holds_all: false,
            entry: String::new(),
        }
    }

    /// The same, for a reader that wants every cell of the session.
    pub(crate) fn holding_all(session_id: &str) -> Self {
        Self { holds_all: true, ..Self::new(session_id) }
    }

    /// Takes an event.
    pub(crate) fn fold(&mut self, event: &SessionEvent, now: Instant) {
        match event {
            SessionEvent::Message(message) => self.fold_message(message, now),
            SessionEvent::Partial { event, parent_tool_use_id: None } => self.fold_partial(event, now),
            SessionEvent::Partial { parent_tool_use_id: Some(_), .. } | SessionEvent::Lagged(_) => {}
            SessionEvent::ToolOutput { tool_use_id, text } => self.fold_output(tool_use_id, text),
            // A warning comes as a notice, too.
            SessionEvent::Warning(_) => {}
            SessionEvent::Asked(question) => self.fold_asked(question),
            SessionEvent::Resolved { action, resolution } => self.fold_resolved(action, resolution, now),
            SessionEvent::Elicited(elicitation) => {
                let id = &elicitation.elicitation_id;
                if !self.elicitations.iter().any(|open| open.elicitation_id == *id) {
                    self.elicitations.push(Arc::clone(elicitation));
                }
            }
            SessionEvent::ElicitationClosed { elicitation_id } => {
                self.elicitations.retain(|open| open.elicitation_id != *elicitation_id);
            }
            SessionEvent::CaughtUp => {
                self.is_caught_up = true;
                self.first_live = self.next_id;
            }
            SessionEvent::Ended { problem } => {
                self.close_open(now);
                self.facts.turn = None;
                self.ended = Some(problem.clone());
            }
        }
        if !self.is_caught_up && !self.holds_all {
            self.drop_old();
        }
    }

    /// The person submitted a prompt: it is shown at once, or waits behind the turn that runs.
    pub(crate) fn submitted(&mut self, prompt: Prompt, now: Instant) {
        if self.facts.is_running() {
            self.queued.push(Queued { id: prompt.uuid, text: prompt.text });
            return;
        }
        self.show_prompt(prompt);
        self.facts.begin_turn(now);
    }

    /// A prompt that was shown did not reach the session: no turn runs for it.
    pub(crate) fn undelivered(&mut self, id: &str) {
        self.queued.retain(|queued| queued.id != id);
        let is_last = self.prompts.last().is_some_and(|prompt| prompt.uuid == id);
        if is_last && self.facts.turn.as_ref().is_some_and(|turn| !turn.has_answer) {
            self.prompts.pop();
            self.facts.turn = None;
            self.facts.state = SessionState::Idle;
        }
    }

    /// An input that waited was taken back.
    pub(crate) fn withdrawn(&mut self, id: &str) -> Option<Queued> {
        let place = self.queued.iter().position(|queued| queued.id == id)?;
        Some(self.queued.remove(place))
    }

    /// Shows a cell that was made before this session was open.
    pub(crate) fn adopt(&mut self, cell: Cell) {
        self.push(cell.body, true);
    }

    /// Shows something that the front itself has to say.
    pub(crate) fn notice(&mut self, level: Level, text: impl Into<String>) {
        let notice = Notice { level, text: text.into() };
        self.push(CellBody::Notice(notice), true);
    }

    /// Shows the output of a command of the front.
    pub(crate) fn command_output(&mut self, text: impl Into<String>) {
        self.push(CellBody::CommandOutput(text.into()), true);
    }

    /// Shows a line across the screen.
    pub(crate) fn rule(&mut self, text: impl Into<String>) {
        self.push(CellBody::Rule(text.into()), true);
    }

    /// The cells that are held, oldest first.
    pub(crate) fn cells(&self) -> impl DoubleEndedIterator<Item = &Cell> {
        self.cells.iter()
    }

    /// The oldest cell.
    pub(crate) fn front(&self) -> Option<&Cell> {
        self.cells.front()
    }

    /// Takes the oldest cell if it is finished.
    pub(crate) fn take_finished(&mut self) -> Option<Cell> {
        self.cells.front().filter(|cell| cell.is_finished)?;
        self.cells.pop_front()
    }

    /// The call of an id, among the cells that are held.
    pub(crate) fn call(&self, tool_use_id: &str) -> Option<&Call> {
        self.cells.iter().rev().find_map(|cell| match &cell.body {
            CellBody::Calls(calls) => calls.iter().find(|call| call.id == tool_use_id),
            CellBody::Prompt(_)
            | CellBody::Reply { .. }
            | CellBody::Thinking { .. }
            | CellBody::CommandOutput(_)
            | CellBody::Notice(_)
            | CellBody::End(_)
            | CellBody::Todo(_)
            | CellBody::Rule(_) => None,
        })
    }

    fn show_prompt(&mut self, prompt: Prompt) {
        if !prompt.uuid.is_empty() && !self.shown_prompts.insert(prompt.uuid.clone()) {
            return;
        }
        self.queued.retain(|queued| queued.id != prompt.uuid);
        self.entry.clone_from(&prompt.uuid);
        self.prompts.push(prompt.clone());
        self.push(CellBody::Prompt(prompt), true);
    }

    /// Adds a cell behind all others. What only looked at files is one cell no longer.
    fn push(&mut self, body: CellBody, is_finished: bool) -> u64 {
        self.close_groups();
        let id = self.next_id;
        self.next_id += 1;
        self.cells.push_back(Cell { id, body, is_finished, entry: self.entry.clone() });
        id
    }

    fn cell_mut(&mut self, id: u64) -> Option<&mut Cell> {
        self.cells.iter_mut().rev().find(|cell| cell.id == id)
    }

    /// Finishes whatever is open: the turn is over.
    fn close_open(&mut self, now: Instant) {
        self.abandon_partial(now);
        for cell in &mut self.cells {
            cell.is_finished = true;
        }
    }

    fn drop_old(&mut self) {
        while self.cells.len() > MOST_REPLAYED && self.cells.front().is_some_and(|cell| cell.is_finished) {
            self.cells.pop_front();
            self.dropped += 1;
        }
    }
}
