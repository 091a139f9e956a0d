//! The way to a driver: inputs and commands that it takes between two steps, also while the model speaks or a tool runs.

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{SideModel, Spent};
use qoder_hooks::Fired;
use qoder_protocol::RequestError;
use qoder_types::Actor;
use qoder_types::record::{Elicited, InputAdmitted};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::Driver;
use crate::engine::server_requests::{OpenedQuestion, QuestionLog};
use crate::error::DriveError;
use crate::events::Receipt;

/// Something that is done with the session between two steps of its driver. It answers its sender by itself; an error
/// ends the drive.
pub(crate) type Command = Box<dyn for<'a> FnOnce(&mut Driver<'a>) -> Result<(), DriveError> + Send>;

/// What arrives while a session is driven.
pub(crate) enum Arrival {
    /// A user's message.
    Input(InputAdmitted),
    /// Something to do at once.
    Command(Command),
}

/// What arrives, in order.
pub(crate) type Inbox = mpsc::UnboundedReceiver<Arrival>;

/// A way to a driver that does not keep its session going: for those inside of it that need its log.
#[derive(Clone)]
pub(crate) struct DriverLink {
    sender: mpsc::UnboundedSender<Arrival>,
}

impl DriverLink {
    /// A way to a driver, and what arrives by it.
    pub(crate) fn new() -> (Self, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        (Self { sender }, inbox)
    }

    /// Hands an input over.
    pub(crate) fn submit(&self, input: InputAdmitted) -> Result<(), RequestError> {
        self.sender.send(Arrival::Input(input)).map_err(|_| RequestError::Ended)
    }

    /// Does something with the session between two steps and waits for what came of it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        command: impl for<'a> FnOnce(&mut Driver<'a>) -> Result<T, DriveError> + Send + 'static,
    ) -> Result<T, RequestError> {
        let (answer, answered) = oneshot::channel();
        let command = Box::new(move |driver: &mut Driver<'_>| {
            let made = command(driver)?;
            // The one who asked may have given up waiting.
            let _ = answer.send(made);
            Ok(())
        });
        self.sender.send(Arrival::Command(command)).map_err(|_| RequestError::Ended)?;
        answered.await.map_err(|_| RequestError::Ended)
    }

    /// Does something with the session between two steps and waits for what came of it, and until its receipt may be given.
    pub(crate) async fn run_with_receipt<T: Send + 'static>(
        &self,
        receipt: Receipt,
        command: impl for<'a> FnOnce(&mut Driver<'a>) -> Result<T, DriveError> + Send + 'static,
    ) -> Result<T, RequestError> {
        let made = self.run(move |driver| {
            let made = command(driver)?;
            Ok((made, driver.barrier_of(receipt)))
        });
        let (made, barrier) = made.await?;
        // A log that failed ends the session, which reports it.
        barrier.await.map_err(|_| RequestError::Ended)?;
        Ok(made)
    }

    /// Does something with the session between two steps, without waiting for it.
    pub(crate) fn send(
        &self,
        command: impl for<'a> FnOnce(&mut Driver<'a>) -> Result<(), DriveError> + Send + 'static,
    ) {
        // A session that has ended has nothing left to do it with.
        drop(self.sender.send(Arrival::Command(Box::new(command))));
    }
}

impl QuestionLog for DriverLink {
    fn open(&self, question: Elicited, input: Map<String, Value>) -> BoxFuture<'_, Option<OpenedQuestion>> {
        async move { self.run(move |driver| driver.open_elicitation(question, &input)).await.ok() }.boxed()
    }

    fn close(
        &self,
        id: String,
        action: &'static str,
        by: Actor,
        input: Map<String, Value>,
    ) -> BoxFuture<'_, Option<OpenedQuestion>> {
        async move { self.run(move |driver| driver.close_elicitation(id, action, by, &input)).await.ok() }
            .boxed()
    }

    fn withdraw(&self, id: String) {
        self.send(move |driver| driver.close_elicitation(id, "cancel", Actor::Server, &Map::new()).map(drop));
    }

    fn record_hooks(&self, fired: Fired, spent: Spent) {
        self.send(move |driver| driver.record_hooks(fired, &spent));
    }

    fn side_call(&self, spent: Spent) -> BoxFuture<'_, Result<SideModel, String>> {
        async move {
            let opened = self.run(move |driver| Ok(driver.side_call(&spent))).await;
            opened.map_err(|error| error.to_string())?
        }
        .boxed()
    }

    fn record_spent(&self, spent: Spent) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let recorded = self.run(move |driver| driver.record_spent(&spent)).await;
            recorded.map_err(|error| error.to_string())
        }
        .boxed()
    }
}
