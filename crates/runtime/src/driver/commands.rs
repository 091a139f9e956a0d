//! Prompts of MCP servers as commands: a user's message that begins with `/mcp__server__prompt` is replaced by what the
//! server makes of it. One that cannot be made is told to the person, and no model is asked.

use std::time::Duration;

use qoder_core::next::{EndReason, turn_end};
use qoder_types::record::{InputAdmitted, TurnEnded, TurnSubtype};
use qoder_types::{ContentBlock, MessageContent};

use super::{Driver, arrival};
use crate::error::DriveError;
use crate::mcp::prompts::COMMAND_START;

/// How long the start of a turn waits for lists of prompts; those that come later are told with the next turn.
const LIST_PATIENCE: Duration = Duration::from_secs(1);

/// What became of a message that may be a command.
pub(super) enum Expanded {
    /// It goes to the model.
    Message(Box<InputAdmitted>),
    /// It cannot be made, and why.
    Refused(String),
    /// A person interrupted.
    Interrupted,
}

/// True for a message that stands for a prompt of a server.
#[must_use]
pub fn is_command(text: &str) -> bool {
    text.starts_with(COMMAND_START)
}

impl Driver<'_> {
    /// Learns which commands there are, as far as servers answer soon.
    pub(super) async fn learn_commands(&mut self) {
        if let Some(prompts) = self.engine.toolbox.prompts() {
            prompts.gather(LIST_PATIENCE).await;
        }
    }

    /// The commands, without their slash.
    pub(super) fn command_names(&self) -> Vec<String> {
        let commands = self.engine.toolbox.prompts().map(|prompts| prompts.commands()).unwrap_or_default();
        commands.into_iter().map(|command| command.name).collect()
    }

    /// Puts what a command stands for in its place. What arrives meanwhile is taken.
    pub(super) async fn expand_command(&mut self, mut input: InputAdmitted) -> Result<Expanded, DriveError> {
        let text = match &input.message.content {
            MessageContent::Text(text) => text.clone(),
            MessageContent::Blocks(blocks) => match blocks.first() {
                Some(ContentBlock::Text { text }) => text.clone(),
                Some(_) | None => String::new(),
            },
        };
        let Some(prompts) = self.engine.toolbox.prompts().filter(|_| is_command(&text)).cloned() else {
            return Ok(Expanded::Message(Box::new(input)));
        };
        let mut expanding = Box::pin(async move { prompts.expand(text.trim()).await });
        let mut cancelled = self.interrupt.cancelled();
        let expanded = loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Ok(Expanded::Interrupted),
                expanded = &mut expanding => break expanded,
                () = self.session.task_events.arrival() => self.forward_task_events()?,
                arrival = arrival(&mut self.inbox) => self.take_now(arrival).await?,
            }
        };
        let mut blocks = match expanded {
            Ok(blocks) => blocks,
            Err(problem) => return Ok(Expanded::Refused(problem)),
        };
        // What came with the command, such as a picture, stays with it.
        blocks.extend(input.message.content.into_blocks().into_iter().skip(1));
        input.message.content = MessageContent::Blocks(blocks);
        Ok(Expanded::Message(Box::new(input)))
    }

    /// The end of a turn whose command cannot be made.
    pub(super) fn command_refused(&self, problem: String) -> TurnEnded {
        let end = turn_end(&self.session.state, &self.limits, &EndReason::Completed, 0);
        let errors = vec![problem];
        TurnEnded { subtype: TurnSubtype::ErrorDuringExecution, is_error: true, result: None, errors, ..end }
    }
}
