//! What arrives while a session is driven: inputs go into the log, commands are obeyed between two steps, and a reader that
//! is behind holds the next step up but nothing that arrives.

use qoder_types::record::{InputAdmitted, InputWithdrawn, RecordBody, UserEntry, UserOrigin};
use qoder_types::{Actor, ContentBlock, Message, MessageContent, Role};

use super::Driver;
use super::link::{Arrival, Inbox};
use crate::error::DriveError;
use crate::events::Event;

/// What arrives while a session is driven; nothing without an inbox.
#[derive(Default)]
pub(super) struct Arrivals(Option<Inbox>);

impl Arrivals {
    /// Takes what arrives from this inbox on.
    pub(super) fn attach(&mut self, inbox: Inbox) {
        self.0 = Some(inbox);
    }

    /// Gives the inbox back.
    pub(super) fn detach(self) -> Option<Inbox> {
        self.0
    }

    /// True when something can arrive.
    pub(super) fn is_attached(&self) -> bool {
        self.0.is_some()
    }

    /// The next arrival; never completes without an inbox or after its end.
    pub(super) async fn next(&mut self) -> Arrival {
        if let Some(inbox) = &mut self.0
            && let Some(arrival) = inbox.recv().await
        {
            return arrival;
        }
        std::future::pending().await
    }

    /// The next arrival, if there is one.
    fn try_next(&mut self) -> Option<Arrival> {
        self.0.as_mut()?.try_recv().ok()
    }
}

impl Driver<'_> {
    /// Waits until the readers have kept up. What arrives meanwhile is taken, and an interrupt ends the wait: a reader
    /// that waits for an answer itself, or reads no more, holds nothing up for good.
    pub(super) async fn keep_pace(&mut self) -> Result<(), DriveError> {
        if self.engine.outlet.is_ready() {
            return Ok(());
        }
        let mut ready = self.engine.outlet.ready();
        let mut cancelled = self.stopping.wanted();
        loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Ok(()),
                () = &mut ready => return Ok(()),
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        }
    }

    /// Takes everything that is there by now.
    pub(super) fn take_arrived(&mut self) -> Result<(), DriveError> {
        while let Some(arrival) = self.arrivals.try_next() {
            self.take(arrival)?;
        }
        Ok(())
    }

    /// Takes an input into the log, or obeys a command.
    pub(crate) fn take(&mut self, arrival: Arrival) -> Result<(), DriveError> {
        match arrival {
            Arrival::Input(input) => self.admit(input),
            Arrival::Command(command) => command(self),
        }
    }

    /// Takes an arrival while something else is waited for. The caller is answered before the wait continues: what a
    /// command set off must not be reported before its answer.
    pub(super) async fn take_now(&mut self, arrival: Arrival) -> Result<(), DriveError> {
        self.take(arrival)?;
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Stops the turn that runs; the record of it names who wanted that. False when no turn runs.
    pub fn interrupt_by(&mut self, by: Actor) -> Result<bool, DriveError> {
        let runs = self.session.state.turn.is_some() || self.promoting;
        if runs {
            self.stopping.want(by);
        }
        // A turn that is open and not driven at this moment: the driver that takes it up knows only what is on record.
        if !self.arrivals.is_attached() && self.session.state.turn.is_some() {
            self.interrupt_turn()?;
        }
        Ok(runs)
    }

    /// Takes an input into the log, unless it is there already. False when it is.
    pub(crate) fn admit_once(&mut self, input: InputAdmitted) -> Result<bool, DriveError> {
        if self.session.state.input_ids.contains(&input.input_id) {
            return Ok(false);
        }
        self.session.append(RecordBody::InputAdmitted(input))?;
        Ok(true)
    }

    /// Ids of the inputs that wait for their turn.
    #[must_use]
    pub fn queued(&self) -> Vec<String> {
        self.session.state.inputs.iter().map(|input| input.input_id.clone()).collect()
    }

    /// Takes an input back that waits for its turn. False when it does not wait.
    pub fn withdraw(&mut self, input_id: &str) -> Result<bool, DriveError> {
        let state = &self.session.state;
        let mut waiting = state.inputs.iter().chain(&state.system_inputs);
        if !waiting.any(|input| input.input_id == input_id) {
            return Ok(false);
        }
        let withdrawn = InputWithdrawn { input_id: input_id.to_owned(), by: Actor::Host };
        self.session.append(RecordBody::InputWithdrawn(withdrawn))?;
        Ok(true)
    }

    /// What the operator has said since the last prompt, as the model reads it before the next one.
    pub(super) fn system_notices(&self) -> Vec<UserEntry> {
        let mut parent = self.session.state.leaf.clone();
        let notice = |input: &InputAdmitted| {
            let head = ContentBlock::text("[The operator of this session says, not the user:]");
            let blocks = std::iter::once(head).chain(input.message.content.clone().into_blocks()).collect();
            let message = Message { role: Role::User, content: MessageContent::Blocks(blocks) };
            let mut entry = self.session.user_entry(UserOrigin::Notice, message);
            entry.uuid.clone_from(&input.input_id);
            entry.input_id = Some(input.input_id.clone());
            entry.parent_uuid = parent.replace(entry.uuid.clone());
            entry
        };
        self.session.state.system_inputs.iter().map(notice).collect()
    }

    /// Takes an input into the log. The same id again is the same input again.
    pub fn admit(&mut self, input: InputAdmitted) -> Result<(), DriveError> {
        if self.session.state.input_ids.contains(&input.input_id) {
            let text = format!("the input {} was sent before; it counts once", input.input_id);
            return self.engine.outlet.emit(Event::Warning(&text)).map_err(DriveError::Output);
        }
        self.session.append(RecordBody::InputAdmitted(input))?;
        Ok(())
    }
}
