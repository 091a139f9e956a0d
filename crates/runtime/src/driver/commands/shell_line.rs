//! A command that the user types for the shell: it runs with `Bash` through hooks, rules and the sandbox like any call. What
//! would ask is answered by their having typed it; what is denied stays denied. The model reads the output before the next
//! prompt, and is not asked.

use qoder_core::next::{EndReason, turn_end};
use qoder_types::record::{InputAdmitted, InputWithdrawn, RecordBody, TurnEnded, TurnSubtype, UserOrigin};
use qoder_types::{Actor, Message};
use serde_json::json;

use super::calls::{CallOfCommand, Permit};
use crate::driver::Driver;
use crate::error::DriveError;

impl Driver<'_> {
    /// Runs the command; its turn is over with it.
    pub(in crate::driver) async fn run_shell_line(
        &mut self,
        input: InputAdmitted,
        mut bodies: Vec<RecordBody>,
        line: &str,
    ) -> Result<TurnEnded, DriveError> {
        self.clock.restart();
        self.ensure_epoch()?;
        self.emit_init()?;
        let id = format!("{}#1", input.input_id);
        // It is done once: a process that dies now has nothing to repeat.
        bodies.push(RecordBody::InputWithdrawn(InputWithdrawn {
            input_id: input.input_id,
            by: Actor::Command("!".to_owned()),
        }));
        self.session.append_all(bodies)?;
        let call = CallOfCommand {
            id,
            tool: "Bash",
            input: json!({ "command": line }),
            request: line.to_owned(),
            rules: Vec::new(),
            may_ask: false,
            is_typed: true,
        };
        let ran = match self.permit(&call).await? {
            Permit::Granted(tool, input) => Ok(self.run_for_command(&call.id, tool, input).await?),
            Permit::Refused(refusal) => Err(refusal.problem),
            Permit::Interrupted => Ok(None),
        };
        let reason = match &ran {
            Ok(None) => EndReason::AbortedTools,
            Ok(Some(_)) | Err(_) => EndReason::Completed,
        };
        let duration = self.clock.elapsed_ms();
        let mut end = turn_end(&self.session.state, &self.limits, &reason, duration);
        match ran {
            Ok(Some(output)) => {
                let text = format!("[The user ran a command in the shell:]\n$ {line}\n{output}");
                let entry = self.session.user_entry(UserOrigin::Notice, Message::user(text));
                self.session.append(RecordBody::User(Box::new(entry)))?;
                self.emit_output(&output)?;
                end.result = Some(output);
            }
            Ok(None) => {}
            Err(problem) => {
                end.subtype = TurnSubtype::ErrorDuringExecution;
                (end.is_error, end.result, end.errors) = (true, None, vec![problem]);
            }
        }
        self.session.append(RecordBody::TurnEnded(Box::new(end.clone())))?;
        self.session.sync()?;
        self.emit_result()?;
        Ok(end)
    }
}
