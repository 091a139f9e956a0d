//! Messages read and write the JSON that travels, with every field that is not known here.

use qoder_agent_sdk::{ContentBlock, HookEvent, McpServerStatus, Message, UserMessage};
use serde_json::{Value, json};

fn unchanged(value: Value) -> Message {
    let message = Message::from_value(value.clone());
    assert_eq!(serde_json::to_value(&message).unwrap(), value);
    assert_eq!(serde_json::from_value::<Message>(value).unwrap(), message);
    message
}

#[test]
fn a_reply_keeps_its_shape_and_its_unknown_fields() {
    let message = unchanged(json!({
        "type": "assistant", "uuid": "u", "session_id": "s", "parent_tool_use_id": null, "timestamp": "now",
        "message": { "id": "m", "type": "message", "role": "assistant", "model": "x", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": "Hi" }, { "type": "tool_use", "id": "t", "name": "Read", "input": {} },
                { "type": "later_kind", "data": 1 }],
            "usage": { "input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0 } },
    }));
    let reply = message.as_assistant().unwrap();
    assert_eq!(reply.text(), "Hi");
    assert_eq!(reply.extra["timestamp"], "now");
    assert!(matches!(&reply.content()[1], ContentBlock::ToolUse { name, .. } if name == "Read"));
    assert!(matches!(&reply.content()[2], ContentBlock::Unknown(_)));
}

#[test]
fn a_result_keeps_its_shape_and_its_unknown_fields() {
    let message = unchanged(json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 10,
        "duration_api_ms": 8, "num_turns": 1, "session_id": "s", "uuid": "u", "stop_reason": null,
        "terminal_reason": "api_error", "total_cost_usd": 0.5, "usage": null, "modelUsage": {},
        "permission_denials": [{ "tool_name": "Write", "tool_use_id": "t", "tool_input": {} }],
        "errors": ["API Error: 401"], "api_error_status": 401, "total_credits": 3,
    }));
    let result = message.as_result().unwrap();
    assert_eq!((result.api_error_status, result.text()), (Some(401), ""));
    assert_eq!(result.extra["total_credits"], 3);
}

#[test]
fn news_of_any_subtype_reach_the_program() {
    let message =
        unchanged(json!({ "type": "system", "subtype": "later_kind", "session_id": "s", "more": [1] }));
    let Message::System(system) = &message else { panic!("{message:?}") };
    assert_eq!((system.subtype.as_str(), message.session_id()), ("later_kind", Some("s")));
    assert_eq!(system.init(), None);
}

#[test]
fn kinds_that_are_not_known_and_messages_that_lack_something_are_kept_whole() {
    for value in
        [json!({ "type": "later_kind" }), json!({ "no": "type" }), json!({ "type": "assistant" }), json!(3)]
    {
        assert_eq!(unchanged(value.clone()), Message::Unknown(value));
    }
}

#[test]
fn a_prompt_has_the_shape_that_programs_send() {
    let message = Message::User(Box::new(UserMessage::new("Hi").with_uuid("u")));
    let shape = json!({ "type": "user", "message": { "role": "user", "content": "Hi" }, "parent_tool_use_id": null, "uuid": "u" });
    assert_eq!(serde_json::to_value(message).unwrap(), shape);
}

#[test]
fn a_status_row_and_an_event_keep_their_words() {
    let row = json!({ "name": "kb", "status": "needs-auth", "config": { "type": "http" }, "later": 1 });
    let status: McpServerStatus = serde_json::from_value(row.clone()).unwrap();
    assert_eq!(serde_json::to_value(status).unwrap(), row);
    for word in ["PreToolUse", "ElicitationResult", "LaterEvent"] {
        let event: HookEvent = serde_json::from_value(json!(word)).unwrap();
        assert_eq!(event.as_str(), word);
        assert_eq!(serde_json::to_value(event).unwrap(), word);
    }
}
