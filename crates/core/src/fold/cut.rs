//! Applies a cut: the conversation continues from an earlier entry. What the model would read is cut; what the session
//! spent, allowed and did outside stays, because that is not undone by forgetting it.

use std::sync::Arc;

use qoder_types::record::Cut;
use qoder_types::{ContentBlock, MessageContent, Role};

use crate::fold::{distinct_calls, message_bytes};
use crate::state::{ContextMeter, State};

impl State {
    pub(crate) fn apply_cut(&mut self, cut: &Cut) {
        // A cut of a conversation that is shorter than it was is not about this one.
        let Some(keep) = usize::try_from(cut.messages).ok().filter(|keep| *keep <= self.prompt.len()) else {
            return;
        };
        self.prompt.truncate(keep);
        self.leaf.clone_from(&cut.at);
        self.turn = None;
        self.last_turn = None;
        self.permissions.end_turn();
        self.calls.clear();
        if let Some(last) = self.prompt.last().filter(|last| last.message.role == Role::Assistant)
            && let MessageContent::Blocks(blocks) = &last.message.content
        {
            self.calls = distinct_calls(blocks);
            self.call_ids.restore(&mut self.calls);
        }
        for block in &cut.results {
            let ContentBlock::ToolResult { tool_use_id, .. } = block else { continue };
            if let Some(call) = self.calls.iter_mut().find(|call| call.id == *tool_use_id) {
                call.result = Some(block.clone());
            }
        }
        // The model has not seen what it read after the cut; an edit has to look again.
        self.observations = Arc::default();
        self.memory.clear();
        self.context = ContextMeter::default();
        if let Some(epoch) = &mut self.epoch {
            epoch.number += 1;
            self.context = ContextMeter::with_system(&epoch.system);
        }
        for message in &self.prompt {
            self.context.total_bytes += message_bytes(&message.message);
            self.context.replies += u64::from(message.message.role == Role::Assistant);
        }
    }
}
