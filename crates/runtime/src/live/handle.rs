//! The way to speak to a session that is being driven: prompts, interrupts, and every change that is possible while it
//! runs. Commands are obeyed between two steps, also while the model speaks or a tool runs.

use std::sync::Arc;

use qoder_core::ports::Model;
use qoder_types::record::{InputAdmitted, PermissionsChanged, RecordBody};
use qoder_types::{PermissionMode, PermissionUpdate, UpdateDestination};
use tokio::sync::{mpsc, oneshot};

use super::{Arrival, Inbox};
use crate::driver::Driver;
use crate::engine::Engine;
use crate::error::DriveError;

/// Why a command was not obeyed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The session is over.
    #[error("the session has ended")]
    Ended,
    /// It cannot be done.
    #[error("{0}")]
    Refused(String),
}

/// What an interrupt left and took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterruptReceipt {
    /// Inputs that still wait for their turn.
    pub still_queued: Vec<String>,
    /// Inputs that were dropped; an interrupt drops none.
    pub cancelled: Vec<String>,
}

/// Speaks to a session that is being driven. The session ends when every clone is gone and nothing is left to do.
#[derive(Clone)]
pub struct Handle {
    sender: mpsc::UnboundedSender<Arrival>,
    engine: Arc<Engine>,
    session_id: String,
    /// Dropped with the last clone: whoever drives the session learns by that.
    _held: Arc<oneshot::Sender<()>>,
}

impl Handle {
    /// A handle, and what completes when it and all its clones are gone.
    pub(super) fn new(
        sender: mpsc::UnboundedSender<Arrival>,
        engine: Arc<Engine>,
        session_id: String,
    ) -> (Self, oneshot::Receiver<()>) {
        let (held, released) = oneshot::channel();
        (Self { sender, engine, session_id, _held: Arc::new(held) }, released)
    }

    /// A way to the session that does not keep it going.
    pub(super) fn inner(&self) -> InnerHandle {
        InnerHandle { sender: self.sender.clone() }
    }

    /// The session.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// What the session is driven with.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Sends a user's message. It starts a turn, or waits for the one that runs.
    ///
    /// # Errors
    /// When the session has ended.
    pub fn submit(&self, input: InputAdmitted) -> Result<(), ControlError> {
        self.sender.send(Arrival::Input(input)).map_err(|_| ControlError::Ended)
    }

    /// Stops the turn that runs, if one does. Inputs that wait keep their place.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn interrupt(&self) -> Result<InterruptReceipt, ControlError> {
        self.run(|driver| {
            driver.interrupt_by_host();
            Ok(InterruptReceipt { still_queued: driver.queued(), cancelled: Vec::new() })
        })
        .await
    }

    /// Takes an input back that waits for its turn. False when it is too late.
    ///
    /// # Errors
    /// When the session has ended or its log cannot be written.
    pub async fn cancel_input(&self, input_id: String) -> Result<bool, ControlError> {
        self.run(move |driver| driver.withdraw(&input_id)).await
    }

    /// Another permission mode, from the next decision on.
    ///
    /// # Errors
    /// When the settings forbid the mode, or the session has ended.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), ControlError> {
        let update = PermissionUpdate::SetMode { mode, destination: UpdateDestination::Session };
        self.change_permissions(vec![update]).await
    }

    /// Changes of permissions, from the next decision on.
    ///
    /// # Errors
    /// When a change cannot be made, or the session has ended.
    pub async fn change_permissions(&self, updates: Vec<PermissionUpdate>) -> Result<(), ControlError> {
        if let Some(problem) = updates.iter().find_map(|update| self.engine.updates.complaint(update)) {
            return Err(ControlError::Refused(problem));
        }
        self.run(move |driver| driver.change_permissions(&updates)).await
    }

    /// Another model, from the next call of one on.
    pub fn set_model(&self, model: Arc<dyn Model>) {
        self.engine.model.switch(model);
    }

    /// Stops a background task.
    ///
    /// # Errors
    /// When there is no such task or it has ended.
    pub async fn stop_task(&self, task_id: &str) -> Result<(), ControlError> {
        self.engine.shared.stop(task_id).await.map_err(ControlError::Refused)
    }

    /// Moves commands that run in the foreground to the background; all of them without an id. True when one moved.
    #[must_use]
    pub fn move_to_background(&self, tool_use_id: Option<&str>) -> bool {
        self.engine.shared.move_to_background(tool_use_id) > 0
    }

    /// Does something with the session between two steps and waits for what came of it.
    ///
    /// # Errors
    /// When the session has ended or its log cannot be written.
    pub async fn run<T: Send + 'static>(
        &self,
        command: impl for<'a> FnOnce(&mut Driver<'a>) -> Result<T, DriveError> + Send + 'static,
    ) -> Result<T, ControlError> {
        run(&self.sender, command).await
    }
}

/// A way to a session that does not keep it going: for those inside of it that need its log.
#[derive(Clone)]
pub(crate) struct InnerHandle {
    sender: mpsc::UnboundedSender<Arrival>,
}

impl InnerHandle {
    /// A way to a session that nobody else speaks to, and what arrives by it.
    pub(super) fn alone() -> (Self, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        (Self { sender }, inbox)
    }

    /// Does something with the session between two steps and waits for what came of it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        command: impl for<'a> FnOnce(&mut Driver<'a>) -> Result<T, DriveError> + Send + 'static,
    ) -> Result<T, ControlError> {
        run(&self.sender, command).await
    }

    /// Does something with the session between two steps; nobody waits for it.
    pub(crate) fn send(
        &self,
        command: impl for<'a> FnOnce(&mut Driver<'a>) -> Result<(), DriveError> + Send + 'static,
    ) {
        // A session that has ended has nothing left to do it with.
        drop(self.sender.send(Arrival::Command(Box::new(command))));
    }
}

async fn run<T: Send + 'static>(
    sender: &mpsc::UnboundedSender<Arrival>,
    command: impl for<'a> FnOnce(&mut Driver<'a>) -> Result<T, DriveError> + Send + 'static,
) -> Result<T, ControlError> {
    let (answer, answered) = oneshot::channel();
    let command = Box::new(move |driver: &mut Driver<'_>| {
        let made = command(driver)?;
        // Whoever asked may have given up waiting.
        let _ = answer.send(made);
        Ok(())
    });
    sender.send(Arrival::Command(command)).map_err(|_| ControlError::Ended)?;
    answered.await.map_err(|_| ControlError::Ended)
}

impl Driver<'_> {
    fn change_permissions(&mut self, updates: &[PermissionUpdate]) -> Result<(), DriveError> {
        let changed = PermissionsChanged { updates: updates.to_vec(), by: "host".to_owned() };
        self.session.append(RecordBody::PermissionsChanged(changed))?;
        self.took_updates(updates)
    }
}
