//! Calls of a model beside the conversation, on account of a tool, a hook or the session itself. What they cost is added to
//! what was spent, for the record of the caller.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use futures::StreamExt;
use qoder_core::ports::{
    Model, ModelEvent, ModelRequest, PromptMessage, SideModel, SideQuestion, Spent, Thinking,
};
use qoder_types::Message;
use qoder_types::content::join_text;
use qoder_types::record::SideCalled;

/// Finds a model by its name; the error is for the model that called.
pub type ModelByName = Arc<dyn Fn(&str) -> Result<Arc<dyn Model>, String> + Send + Sync>;

/// A side model on top of `model`.
#[must_use]
pub fn side_model(model: Arc<dyn Model>, session_id: String, tool_use_id: String, spent: Spent) -> SideModel {
    Arc::new(move |question: SideQuestion| {
        let request = ModelRequest {
            purpose: question.purpose,
            session_id: session_id.clone(),
            system: Arc::from([question.system]),
            tools: Arc::from([]),
            messages: vec![Arc::new(PromptMessage::new(Message::user(question.prompt)))],
            max_output_tokens: Some(question.max_output_tokens),
            thinking: Thinking::Default,
            effort: None,
            parameters: BTreeMap::new(),
            partial: false,
        };
        let mut stream = model.stream(request);
        let (spent, tool_use_id, purpose) = (Arc::clone(&spent), tool_use_id.clone(), question.purpose);
        Box::pin(async move {
            while let Some(event) = stream.next().await {
                match event {
                    Ok(ModelEvent::Reply(reply)) => {
                        spent.lock().unwrap_or_else(PoisonError::into_inner).push(SideCalled {
                            tool_use_id,
                            purpose,
                            model: reply.model,
                            provider: Some(reply.provider),
                            usage: reply.usage,
                            cost_usd: reply.cost_usd,
                            duration_api_ms: reply.duration_api_ms,
                        });
                        return Ok(join_text(&reply.content));
                    }
                    Ok(
                        ModelEvent::Partial(_)
                        | ModelEvent::Retry { .. }
                        | ModelEvent::Fallback { .. }
                        | ModelEvent::Notice(_),
                    ) => {}
                    Err(failure) => return Err(failure.message),
                }
            }
            Err("the model's reply ended before the message was complete".to_owned())
        })
    })
}
