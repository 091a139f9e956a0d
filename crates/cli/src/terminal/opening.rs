//! Opening sessions for the terminal: in this process, on the thread of sessions.

use std::sync::{Arc, Mutex, PoisonError};

use qoder_protocol::{BoxFuture, SessionClient};
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::callbacks::Elicitations;
use qoder_runtime::error::{DriveError, SessionError};
use qoder_runtime::events::{Event, Sink};
use qoder_runtime::sessions::{FirstPrompt, OpenError, OpenRequest, OpenedSession, SessionChoice, Sessions};
use qoder_runtime::store::StoreError;
use qoder_store::{catalog, lease};
use qoder_terminal::{Driven, Machine, Open, OpenFailure, Opened};
use qoder_types::PermissionMode;
use tokio::runtime::Handle;
use tokio::task::JoinError;

use super::attached::AttachedSession;
use super::driven::DrivenSession;
use super::machine::LocalMachine;
use super::remote::{Address, RemoteSession};
use crate::exit::{Exit, Fault};
use crate::run::agents_flag;
use crate::run::server_flags;
use crate::sessions::locate;

impl LocalMachine {
    fn choice(&self, what: &Open) -> SessionChoice {
        let forget = self.given.forget;
        let plain = SessionChoice { forget, ..SessionChoice::default() };
        match what {
            Open::New | Open::Choose => plain,
            Open::Given => self.given.clone(),
            Open::Resume(id) | Open::Attach(id) => SessionChoice { resume: Some(id.clone()), ..plain },
            Open::Fork(id) => SessionChoice { resume: Some(id.clone()), fork: true, ..plain },
        }
    }

    /// Attaches to a session that another process drives.
    pub(super) fn attach(&self, id: &str) -> BoxFuture<'static, Result<Opened, OpenFailure>> {
        let found = locate(self.environment(), id);
        let (root, person) = (self.config_root().to_path_buf(), self.person());
        Box::pin(async move {
            let (id, paths) = found.map_err(|fault| failure(fault, None))?;
            if lease::holder(&paths).is_none() {
                return Err(OpenFailure {
                    message: format!("no process drives session {id}"),
                    hint: format!("`qodercli --resume {id}` continues it here"),
                    driven_elsewhere: None,
                });
            }
            let info = catalog::info(&root, None, &id);
            let client = AttachedSession::new(id, paths, person);
            let (events, facts) = (client.events(), client.facts().await);
            Ok(Opened {
                client: Arc::new(client),
                events,
                driven: Driven::Elsewhere,
                folder: info.and_then(|info| info.cwd).unwrap_or_default(),
                offline: facts.model == "offline",
                model: facts.model,
                mode: facts.mode,
                notices: Vec::new(),
            })
        })
    }

    /// Attaches to a session on a server.
    pub(super) fn attach_to_server(&self, address: &str) -> BoxFuture<'static, Result<Opened, OpenFailure>> {
        let address = Address::read(address, self.environment());
        let (environment, person) = (self.environment().clone(), self.person());
        let runtime = self.thread.runtime().clone();
        let inside = runtime.clone();
        let task = runtime.spawn(async move {
            let opened = RemoteSession::open(address?, environment, person, inside).await?;
            Ok::<_, Fault>(Opened {
                events: opened.events(None),
                driven: Driven::Server,
                folder: String::new(),
                offline: opened.model() == "offline",
                model: opened.model().to_owned(),
                mode: PermissionMode::Default,
                notices: Vec::new(),
                client: Arc::new(opened),
            })
        });
        Box::pin(async move {
            let opened = task.await.map_err(|error| failure(internal(&error), None))?;
            opened.map_err(|fault| failure(fault, None))
        })
    }

    /// Opens a session that this process drives.
    pub(super) fn drive(&self, what: &Open) -> BoxFuture<'static, Result<Opened, OpenFailure>> {
        let prepared = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let setup = match prepared.map_or_else(|| self.prepare(), Ok) {
            Ok(setup) => setup,
            Err(fault) => return Box::pin(std::future::ready(Err(failure(fault, None)))),
        };
        let mut callbacks = Callbacks { elicitations: Some(Elicitations::default()), ..Callbacks::default() };
        if let Err(fault) = agents_flag::bring(&self.arguments, &mut callbacks) {
            return Box::pin(std::future::ready(Err(failure(fault, None))));
        }
        let notices = Arc::new(Mutex::new(Vec::new()));
        let report = Arc::clone(&notices);
        let (folder, mode) = (setup.cwd.display().to_string(), setup.mode());
        let request = OpenRequest {
            setup,
            callbacks,
            agent: self.arguments.agent.clone(),
            servers: server_flags(&self.arguments.protocol),
            answers_own_servers: false,
            choice: self.choice(what),
            kept: None,
            first: FirstPrompt::FromHost,
            sink: Arc::new(Attended),
            mirror: None,
            report: Arc::new(move |text| {
                report.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
            }),
        };
        let runtime = self.thread.runtime().clone();
        let inside = runtime.clone();
        let task = runtime.spawn(async move { open_here(request, inside, &notices, (folder, mode)) });
        Box::pin(async move { task.await.unwrap_or_else(|error| Err(failure(internal(&error), None))) })
    }
}

fn internal(error: &JoinError) -> Fault {
    let message = format!("internal error: {error}. This is a bug; please report it.");
    Fault { exit: Exit::General, message, hint: String::new() }
}

fn open_here(
    request: OpenRequest,
    runtime: Handle,
    notices: &Mutex<Vec<String>>,
    (folder, mode): (String, PermissionMode),
) -> Result<Opened, OpenFailure> {
    let opened = Sessions::default().open(request);
    let OpenedSession { handle, attachment } = opened.map_err(|error| {
        let held = held_session(&error);
        failure(Fault::from(error), held)
    })?;
    let facts = handle.model();
    let client = DrivenSession::new(handle, runtime);
    // Before anything is driven: nothing of it is missed.
    let events = client.subscribe(Some(0), qoder_terminal::WANTS);
    // From here on the subscription is the answerer.
    drop(attachment);
    let notices = std::mem::take(&mut *notices.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Opened {
        client: Arc::new(client),
        events,
        driven: Driven::Here,
        folder,
        model: facts.name,
        offline: facts.provider == "offline",
        mode,
        notices,
    })
}

/// The session that another process drives, when that is why one cannot be opened.
fn held_session(error: &OpenError) -> Option<String> {
    let session = match error {
        OpenError::Session(error) | OpenError::Begin { error: DriveError::Session(error), .. } => error,
        OpenError::Setup(_) | OpenError::NoPrompt | OpenError::Begin { .. } => return None,
    };
    match session {
        SessionError::Storage(StoreError::Locked { id, .. }) => Some(id.clone()),
        _ => None,
    }
}

pub(super) fn failure(fault: Fault, driven_elsewhere: Option<String>) -> OpenFailure {
    OpenFailure { message: fault.message, hint: fault.hint, driven_elsewhere }
}

/// The front's place while a session is opened: a question that waits is not closed, because it can be answered here.
struct Attended;

impl Sink for Attended {
    fn take(&self, _: Event<'_>) -> std::io::Result<()> {
        Ok(())
    }

    fn answers(&self) -> bool {
        true
    }
}
