//! What agents say on their way: on the stream when the program asks for it, and only then. What they do is always there.

use qoder_agent_sdk::{Message, query};
use serde_json::json;

use crate::support::{Place, all, result};

#[tokio::test]
async fn forward_subagent_text_brings_what_agents_say() {
    let replies = json!([
        { "when": { "turn": 1, "purpose": "main" }, "toolCalls": [
            { "name": "Agent", "input": { "prompt": "Look.", "description": "look" } }] },
        { "when": { "purpose": "subagent", "turn": 1 }, "text": "Let me see.", "toolCalls": [
            { "name": "Glob", "input": { "pattern": "*" } }] },
        { "when": { "purpose": "subagent", "turn": 2 }, "text": "I looked." },
        { "text": "Done.", "repeat": true },
    ]);
    for forward in [false, true] {
        let place = Place::new();
        let options = place.playing(&replies).allowed_tools(["Agent"]).forward_subagent_text(forward);
        let messages = all(query("Go.", options).unwrap()).await;
        let of_agent = messages.iter().filter_map(|message| match message {
            Message::Assistant(reply) if reply.parent_tool_use_id.is_some() => Some(reply.text()),
            _ => None,
        });
        let expected: &[&str] = if forward { &["Let me see.", "I looked."] } else { &[""] };
        assert_eq!(of_agent.collect::<Vec<_>>(), expected);
        assert_eq!(result(&messages).text(), "Done.");
    }
}
