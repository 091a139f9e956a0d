//! The inline view: finished text goes to the terminal's own scrollback, a small area below it lives. One task folds events,
//! takes keys and makes frames; a thread reads keys, another writes. Nothing on the way of a key waits for the model, the disk
//! or the terminal.

mod attention;
mod bindings;
mod command;
mod commit;
mod editor;
mod event_loop;
mod frame;
mod keys;
mod list_rows;
mod overlay;
mod popups;
mod question;
mod question_rows;
mod session;
mod status;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use qoder_protocol::{ActionId, InterruptReceipt, RequestError};
use ratatui_core::text::Line;
use tokio::sync::mpsc;

use crate::commands::Outcome;
use crate::composer::{Composer, Draft, ImageContent};
use crate::front::{self, Front, OpenFailure, Opened, SessionRow, TerminalTraits, UiSettings};
use crate::input::{Reader, Signals};
use crate::panels::Panel;
use crate::popup::{Candidate, Popup, Trigger};
use crate::screen::{Recording, Sheet, Surface, Writer, terminal_size};
use crate::state::Conversation;
use crate::theme::{ColorSupport, Signs, Theme};
use attention::Announced;
use bindings::Bindings;
use commit::Printed;
use editor::Edit;
use overlay::Overlay;
use popups::{Choices, Search};
use question::QuestionView;

pub(crate) use event_loop::run;

/// What a task of the front came to.
enum Update {
    /// A session was opened, or not.
    Opened(Result<Opened, OpenFailure>),
    /// Sessions to choose from.
    Sessions(Vec<SessionRow>),
    /// Something that was sent did not arrive.
    Problem(String),
    /// The prompt with this id did not arrive: its text returns to the composer.
    Undelivered {
        /// Its id.
        uuid: String,
        /// What the person wrote.
        text: String,
        /// Why.
        problem: String,
    },
    /// An answer was not the first, or did not arrive.
    NotAnswered(ActionId, String),
    /// An interrupt was taken.
    Interrupted(Result<InterruptReceipt, RequestError>),
    /// A queued message was taken back, or it was too late.
    Withdrawn(String, bool),
    /// What a command came to.
    Command(Box<Outcome>),
    /// A word for the person.
    Hint(String),
    /// The terminal is to put this into the clipboard.
    CopyByTerminal(String),
    /// Files of the folder.
    Paths(Vec<String>),
    /// What may follow a word.
    Candidates(Trigger, Vec<Candidate>),
    /// Commands of the session.
    Commands(Vec<(String, String, String)>),
    /// Earlier prompts.
    History(Vec<String>),
    /// An image to be sent.
    Image(ImageContent),
    /// Text of the clipboard.
    Pasted(String),
    /// The branch of the folder.
    Branch(Option<String>),
    /// What the status line command printed.
    StatusLine(Option<String>),
    /// The folder is trusted, or could not be.
    Trusted(Result<Box<UiSettings>, String>),
}

/// A word for the person that vanishes by itself.
#[derive(Debug)]
struct Hint {
    text: String,
    until: Instant,
}

impl Hint {
    fn text(&self) -> &str {
        &self.text
    }
}

/// How often frames are drawn and the sign of life moves.
#[derive(Debug, Clone, Copy)]
struct Pace {
    frame: Duration,
    spinner: Duration,
    /// Finished lines that one frame may print: a key waits for no more than these.
    lines: usize,
}

impl Pace {
    /// Over a network everything is slower.
    fn of(over_network: bool) -> Self {
        if over_network {
            Self { frame: Duration::from_millis(100), spinner: Duration::from_millis(500), lines: 20 }
        } else {
            Self { frame: Duration::from_millis(33), spinner: Duration::from_millis(125), lines: 200 }
        }
    }
}

/// What is to be drawn, and how soon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Dirty {
    #[default]
    No,
    /// With the next frame.
    Soon,
    /// At once: the person typed.
    Now,
}

/// The front.
struct App {
    front: Front,
    theme: Theme,
    signs: Signs,
    pace: Pace,
    surface: Surface,
    writer: Writer,
    reader: Reader,
    signals: Signals,
    session: Option<Opened>,
    is_opening: bool,
    /// The session that another process drives, while it is offered to attach to it.
    held: Option<OpenFailure>,
    /// True when the session itself has ended, and not only this front.
    is_over: bool,
    /// True when a question waited when the front was left.
    leaves_question: bool,
    conversation: Conversation,
    printed: Printed,
    /// Finished lines that the terminal has not got yet.
    unprinted: VecDeque<Line<'static>>,
    composer: Composer,
    bindings: Bindings,
    question: Option<QuestionView>,
    /// Questions that were answered here and are not confirmed yet.
    answered: Vec<ActionId>,
    /// Prompts that were sent before the session was open.
    waiting: Vec<Draft>,
    /// The last prompt that was sent, until an answer arrives.
    last_sent: Option<(String, Draft)>,
    /// Prompts that are being kept for later, one after another.
    keeping: Option<tokio::task::JoinHandle<()>>,
    hint: Option<Hint>,
    branch: Option<String>,
    spinner: usize,
    spinner_due: Instant,
    has_focus: bool,
    last_key: Instant,
    last_escape: Option<Instant>,
    last_cancel: Option<Instant>,
    dirty: Dirty,
    frame_due: Instant,
    /// The terminal has another size since then.
    resized: Option<Instant>,
    updates: mpsc::UnboundedSender<Update>,
    arrived: mpsc::UnboundedReceiver<Update>,
    /// Set when the front is to end.
    ended: Option<front::Outcome>,
    colors: ColorSupport,
    over_network: bool,
    /// The session that was left for another, until that is open.
    leaving: Option<Opened>,
    /// What is said about the session that is being opened in place of another.
    opened_by: Option<String>,
    /// Panels, the one that is shown last.
    panels: Vec<Panel>,
    popup: Option<Popup>,
    /// The word whose popup was closed.
    dismissed: Option<Trigger>,
    choices: Choices,
    search: Option<Search>,
    overlay: Option<(Overlay, Sheet)>,
    edit: Option<Edit>,
    /// A key that is being entered, and the provider that it is for.
    secret: Option<(String, String)>,
    /// The address of a sign-in that is offered.
    sign_in: Option<String>,
    wants_to_leave: bool,
    /// Stops that this program sent to its own process group.
    ignored_suspends: usize,
    last_bypass: Option<Instant>,
    announced: Announced,
    /// Bytes that are written before the next frame.
    raw: Vec<u8>,
    background: Background,
}

/// What is looked up beside the session: the branch, and the status line of a command.
#[derive(Debug, Default)]
struct Background {
    /// When the branch was looked up last.
    branch: Option<Instant>,
    /// What the status line command printed.
    status: Option<String>,
    /// What it was given, and when.
    status_for: Option<(serde_json::Value, Instant)>,
    is_asking: bool,
}

impl App {
    fn new(front: Front) -> std::io::Result<Self> {
        let traits = TerminalTraits::of(&front.environment);
        let theme = Theme::new(front.settings.theme.as_deref(), &front.settings.custom_themes, traits.colors);
        let (width, height) = terminal_size();
        let recording = match front.environment.get("QODER_TUI_RECORD").filter(|path| !path.is_empty()) {
            Some(path) => Some(Recording::start(path, width, height)?),
            None => None,
        };
        let (updates, arrived) = mpsc::unbounded_channel();
        let now = Instant::now();
        Ok(Self {
            theme,
            signs: Signs::of(traits.unicode),
            pace: Pace::of(traits.over_network),
            surface: Surface::new(width, height, traits.reflows),
            writer: Writer::start(recording)?,
            reader: Reader::start(traits.over_network)?,
            signals: Signals::new(),
            session: None,
            is_opening: false,
            held: None,
            is_over: false,
            leaves_question: false,
            conversation: Conversation::new(""),
            printed: Printed::default(),
            unprinted: VecDeque::new(),
            composer: Composer::default(),
            bindings: Bindings::default(),
            question: None,
            answered: Vec::new(),
            waiting: Vec::new(),
            last_sent: None,
            keeping: None,
            hint: None,
            branch: None,
            spinner: 0,
            spinner_due: now,
            has_focus: true,
            last_key: now,
            last_escape: None,
            last_cancel: None,
            dirty: Dirty::Now,
            frame_due: now,
            resized: None,
            updates,
            arrived,
            ended: None,
            colors: traits.colors,
            over_network: traits.over_network,
            leaving: None,
            opened_by: None,
            panels: Vec::new(),
            popup: None,
            dismissed: None,
            choices: Choices::default(),
            search: None,
            overlay: None,
            edit: None,
            secret: None,
            sign_in: None,
            wants_to_leave: false,
            ignored_suspends: 0,
            last_bypass: None,
            announced: Announced::default(),
            raw: Vec::new(),
            background: Background::default(),
            front,
        })
    }

    /// Shows a word for a while.
    fn hint(&mut self, text: impl Into<String>, time: Duration) {
        self.hint = Some(Hint { text: text.into(), until: Instant::now() + time });
        self.touch(Dirty::Now);
    }

    /// Something is to be drawn.
    fn touch(&mut self, dirty: Dirty) {
        match (self.dirty, dirty) {
            (Dirty::Now, _) | (Dirty::Soon, Dirty::No) => {}
            (Dirty::No | Dirty::Soon, _) => self.dirty = dirty,
        }
    }
}
