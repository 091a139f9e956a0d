//! Which session a front works with: a new one, one to resume, or a copy. Combinations that make no sense are refused
//! before anything is opened.

use std::path::PathBuf;
use std::slice;

use crate::catalog;
use crate::error::SessionError;
use crate::layout::{SessionPaths, project_folder};
use crate::session::cut;
use crate::session::{Session, new_id};
use crate::setup::Setup;
use crate::store::{SessionLocation, StoreError};

/// Which session is wanted. `Default` is a new one under a new id, kept in files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChoice {
    /// The id of a new session, or of a copy.
    pub session_id: Option<String>,
    /// The session to resume: its id, or its title.
    pub resume: Option<String>,
    /// Resume the newest session of the directory.
    pub continue_newest: bool,
    /// Work on a copy, under a new id.
    pub fork: bool,
    /// Keep nothing on disk.
    pub forget: bool,
    /// The entry to continue from; what came after it is left out.
    pub resume_at: Option<String>,
    /// The prompt whose turn, and nothing else, may be left out.
    pub drops_turn: Option<String>,
}

/// A combination that makes no sense, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadChoice {
    /// What is wrong, in the words of the command line.
    pub message: &'static str,
    /// What to do.
    pub hint: &'static str,
}

impl SessionChoice {
    /// True when an existing session is wanted.
    #[must_use]
    pub fn resumes(&self) -> bool {
        self.resume.is_some() || self.continue_newest
    }

    /// What is wrong with the combination, if something is.
    #[must_use]
    pub fn complaint(&self) -> Option<BadChoice> {
        let bad = |message, hint| Some(BadChoice { message, hint });
        if self.resume.as_deref() == Some("") {
            return bad(
                "--resume needs a session ID here",
                "`qodercli sessions list` shows them; --continue takes the newest",
            );
        }
        if self.resume.is_some() && self.continue_newest {
            return bad("--resume and --continue exclude each other", "leave one of them out");
        }
        if self.fork && !self.resumes() {
            return bad("--fork-session needs --resume or --continue", "name the session to copy");
        }
        if self.session_id.is_some() && self.resumes() && !self.fork {
            return bad(
                "--session-id cannot be combined with --resume or --continue",
                "add --fork-session to work on a copy under that ID",
            );
        }
        if self.resume_at.as_deref() == Some("") || self.drops_turn.as_deref() == Some("") {
            return bad(
                "--resume-session-at and --resume-drops-turn need the UUID of an entry, and it is empty",
                "take it from the messages of the session",
            );
        }
        if self.resume_at.is_some() && !self.resumes() {
            return bad("--resume-session-at needs --resume or --continue", "name the session to continue");
        }
        if self.drops_turn.is_some() && self.resume_at.is_none() {
            return bad("--resume-drops-turn needs --resume-session-at", "name the last entry to keep");
        }
        if self.forget && self.resumes() {
            return bad(
                "--no-session-persistence cannot be combined with --resume or --continue",
                "leave one of them out",
            );
        }
        None
    }

    /// Opens the session.
    ///
    /// # Errors
    /// When it does not exist, is in use, is damaged, or its id is taken.
    pub fn open(&self, setup: &Setup) -> Result<Session, SessionError> {
        self.open_unobserved(setup).map(|session| setup.adopted(session))
    }

    fn open_unobserved(&self, setup: &Setup) -> Result<Session, SessionError> {
        if let Some(id) = self.session_id.as_ref().filter(|id| !catalog::is_session_id(id)) {
            return Err(StoreError::BadId { id: id.clone() }.into());
        }
        let redactor = setup.redactor();
        let new = || self.session_id.clone().unwrap_or_else(new_id);
        if self.forget && setup.demands_checkpoints() {
            return Err(SessionError::NoPlaceForCheckpoints);
        }
        if self.forget {
            let outputs = forgotten_outputs();
            return Session::open(SessionLocation::in_memory(new(), outputs), redactor, &setup.cwd);
        }
        let folder = project_folder(&setup.config.config_root, &setup.cwd);
        let files = |paths: &SessionPaths| SessionLocation::in_files(paths, setup.durability);
        let Some(source) = self.source(setup)? else {
            let id = new();
            let session = Session::open(files(&SessionPaths::new(&folder, &id)), redactor, &setup.cwd)?;
            // A session whose prompt never reached the log is started now; any other is taken.
            if session.state.prompts > 0 || !session.state.inputs.is_empty() {
                return Err(StoreError::Exists { id }.into());
            }
            return Ok(session);
        };
        let mut paths = catalog::find_session(&setup.config.config_root, &setup.cwd, &source)?;
        let mut id = source;
        if self.fork {
            let source = std::mem::replace(&mut id, new());
            let copy = SessionPaths::new(&folder, &id);
            catalog::fork(&paths, &source, &copy, &id)?;
            paths = copy;
        }
        let mut session = Session::open(files(&paths), redactor, &setup.cwd)?;
        let Some(at) = &self.resume_at else { return Ok(session) };
        match cut::go_on_from(&mut session, at, self.drops_turn.as_deref()) {
            Err(error) if self.fork => {
                drop(session);
                // The caller did not ask for a copy of the whole; one that cannot be removed does no harm.
                let _ = catalog::delete(&paths, &id);
                Err(error)
            }
            cut => cut.map(|()| session),
        }
    }

    fn source(&self, setup: &Setup) -> Result<Option<String>, SessionError> {
        if let Some(id) = &self.resume {
            if catalog::is_session_id(id) {
                return Ok(Some(id.clone()));
            }
            // A title stands for its session, and so does the beginning of its id.
            let mut sessions =
                catalog::newest_of(&setup.config.config_root, Some(slice::from_ref(&setup.cwd)));
            if let Some(titled) = sessions.find(|session| session.title.as_deref() == Some(id)) {
                return Ok(Some(titled.id));
            }
            return match catalog::complete_id(&setup.config.config_root, &setup.cwd, id) {
                Err(StoreError::BadId { id }) => {
                    Err(StoreError::NotFound { id, project: setup.cwd.clone(), elsewhere: None }.into())
                }
                completed => Ok(Some(completed?)),
            };
        }
        if !self.continue_newest {
            return Ok(None);
        }
        let newest = catalog::newest_of(&setup.config.config_root, Some(slice::from_ref(&setup.cwd))).next();
        newest
            .map(|session| Some(session.id))
            .ok_or_else(|| SessionError::NoneToContinue { project: setup.cwd.clone() })
    }
}

impl Setup {
    /// The session, watched by telemetry and with what it learned about servers before.
    pub(crate) fn adopted(&self, mut session: Session) -> Session {
        self.observe(&mut session);
        let learned = &self.model_options().learned;
        session.state.learned.iter().for_each(|(place, compat)| learned.restore(place, compat));
        session
    }
}

fn forgotten_outputs() -> PathBuf {
    std::env::temp_dir().join(format!("qodercli-{}", new_id()))
}
