//! Calls that run outside the runtime: asked for like a question, without rules, mode or timeout, and delivered as results
//! when the answer is on record. A PreToolUse hook may still deny one, and a gated one passes the gate first.

use qoder_types::record::{AskKind, Asked, RecordBody, UserOrigin};
use qoder_types::{
    Behavior, CallOutcome, ContentBlock, Decision, DecisionLayer, HookVerdict, Message, MessageContent, Role,
    ToolResultContent,
};

use super::decide::answered;
use crate::driver::Driver;
use crate::error::DriveError;

/// Why such a call is asked for.
const REASON: &str = "it runs outside the runtime";

impl Driver<'_> {
    /// Asks for the result of a call, or decides about the call whose result is on record. `judged` is the gate's decision about
    /// a tool that it concerns.
    pub(in crate::driver) fn settle_external(
        &mut self,
        id: &str,
        judged: Option<Decision>,
    ) -> Result<(), DriveError> {
        let Some(call) = self.session.state.call(id) else { return Ok(()) };
        let name = call.name.clone();
        // A hook may have changed the input.
        if let Err(text) = self.checked(&name, &call.input) {
            return self.append_result(id, &text, CallOutcome::Failed);
        }
        let decision = judged.unwrap_or_else(|| Decision {
            behavior: Behavior::Ask,
            layer: DecisionLayer::BuiltIn,
            rule: None,
            origin: None,
            mode: self.limits.permission_mode,
            reason: REASON.to_owned(),
            considered: Vec::new(),
            answered_by: None,
        });
        if decision.behavior == Behavior::Deny {
            return self.record_decision(id, &name, decision);
        }
        if let Some(hooked) = call.hooked.as_ref().filter(|one| one.verdict == Some(HookVerdict::Deny)) {
            let name_of_hook = hooked.by.as_deref().unwrap_or("unknown");
            let reason =
                hooked.reason.clone().unwrap_or_else(|| format!("the hook {name_of_hook} denied it"));
            let denied =
                Decision { behavior: Behavior::Deny, layer: DecisionLayer::Hook, reason, ..decision };
            return self.record_decision(id, &name, denied);
        }
        let Some(answer) = call.answer.clone().filter(|answer| answer.answers(AskKind::External)) else {
            let asked = Asked {
                tool_use_id: id.to_owned(),
                tool_name: name,
                kind: AskKind::External,
                decision,
                suggestions: Vec::new(),
            };
            self.session.append(RecordBody::Asked(Box::new(asked)))?;
            return Ok(());
        };
        if answer.result.is_none() {
            self.record_decision(id, &name, answered(decision, &answer, DecisionLayer::Person))?;
            return if answer.interrupt { self.interrupt_turn() } else { Ok(()) };
        }
        let delivered = Decision {
            behavior: Behavior::Allow,
            layer: DecisionLayer::Person,
            reason: format!("{REASON}; {} returned its result", answer.by),
            answered_by: Some(answer.by),
            ..decision
        };
        self.record_decision(id, &name, delivered)
    }

    /// Appends the results that came from outside. No `tool-start` precedes them: nothing ran here.
    pub(in crate::driver) fn deliver(&mut self, ids: &[String]) -> Result<(), DriveError> {
        for id in ids {
            let result = self.session.state.call(id).and_then(|call| call.external_result());
            let Some(result) = result.cloned() else { continue };
            let mut content = self.bounded_result(result.content);
            self.add_call_context(id, &mut content);
            let is_error = result.is_error;
            let block = ContentBlock::ToolResult { tool_use_id: id.clone(), content, is_error };
            let message = Message { role: Role::User, content: MessageContent::Blocks(vec![block]) };
            let mut entry = self.session.user_entry(UserOrigin::ToolResult, message);
            entry.outcome = Some(if is_error { CallOutcome::Failed } else { CallOutcome::Completed });
            let record = self.session.append(RecordBody::User(Box::new(entry)))?;
            self.emit_record(&record)?;
        }
        Ok(())
    }

    /// What the model reads of a result; what is too long for it is kept in a file.
    fn bounded_result(&self, content: ToolResultContent) -> ToolResultContent {
        let outputs = self.session.kept_outputs();
        let bounded = |text: String| qoder_tools::bounded_text(text, &outputs, "external").0;
        match content {
            ToolResultContent::Text(text) => ToolResultContent::Text(bounded(text)),
            ToolResultContent::Blocks(blocks) => {
                let block = |block: ContentBlock| match block {
                    ContentBlock::Text { text } => ContentBlock::text(bounded(text)),
                    other => other,
                };
                ToolResultContent::Blocks(blocks.into_iter().map(block).collect())
            }
        }
    }
}
