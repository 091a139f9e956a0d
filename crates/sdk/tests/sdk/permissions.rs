//! Who decides about calls: rules and mode first, then the callback. A callback that fails denies with its own words.

use std::sync::{Arc, Mutex};

use qoder_agent_sdk::{
    Behavior, Message, PermissionMode, PermissionResult, PermissionUpdate, QoderAgentOptions, RuleValue,
    ToolResult, UpdateDestination, create_sdk_mcp_server, query, tool,
};
use serde_json::{Value, json};

use crate::support::{Place, all, call_then_done, result, tool_results};

fn writing(place: &Place) -> QoderAgentOptions {
    place.playing(&call_then_done("Write", &json!({ "file_path": "a.txt", "content": "from the model" })))
}

async fn run(options: QoderAgentOptions) -> Vec<Message> {
    all(query("Go.", options).unwrap()).await
}

#[tokio::test]
async fn an_allowed_call_runs_and_the_callback_knows_what_it_is_about() {
    let place = Place::new();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let options = writing(&place).can_use_tool(move |name, input, context| {
        seen.lock().unwrap().push((name, input, context.tool_use_id, context.decision_reason));
        async { PermissionResult::allow() }
    });
    run(options).await;
    assert_eq!(std::fs::read_to_string(place.0.project().join("a.txt")).unwrap(), "from the model");
    let asked = asked.lock().unwrap();
    let (name, input, id, reason) = &asked[0];
    assert_eq!((asked.len(), name.as_str(), &input["file_path"]), (1, "Write", &json!("a.txt")));
    assert_eq!(id.as_deref(), Some("call_1"));
    assert!(reason.is_some());
}

#[tokio::test]
async fn another_input_replaces_the_model_s() {
    let place = Place::new();
    let options = writing(&place).can_use_tool(|_, mut input: Value, _| async move {
        input["content"] = json!("from the host");
        PermissionResult::allow_with(input)
    });
    run(options).await;
    assert_eq!(std::fs::read_to_string(place.0.project().join("a.txt")).unwrap(), "from the host");
}

#[tokio::test]
async fn a_denial_is_read_by_the_model_and_the_turn_goes_on() {
    let place = Place::new();
    let options = writing(&place).can_use_tool(|_, _, _| async { PermissionResult::deny("Not on Fridays.") });
    let messages = run(options).await;
    assert_eq!(tool_results(&messages), [("Not on Fridays.".to_owned(), true)]);
    assert_eq!(result(&messages).text(), "done");
    assert!(!place.0.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_denial_may_stop_the_turn() {
    let place = Place::new();
    let options =
        writing(&place).can_use_tool(|_, _, _| async { PermissionResult::deny_and_interrupt("Stop.") });
    let messages = run(options).await;
    assert_ne!(result(&messages).result.as_deref(), Some("done"));
    assert!(!place.0.project().join("a.txt").exists());
}

#[tokio::test]
async fn a_callback_that_fails_or_panics_denies_with_its_text() {
    let place = Place::new();
    let failing = |_, _: Value, _| async { Err::<PermissionResult, _>("the approval service is down") };
    let messages = run(writing(&place).can_use_tool(failing)).await;
    assert_eq!(tool_results(&messages), [("the approval service is down".to_owned(), true)]);
    let place = Place::new();
    let panicking = |name: String, _: Value, _| async move {
        if name.is_empty() { PermissionResult::allow() } else { panic!("a bug") }
    };
    let messages = run(writing(&place).can_use_tool(panicking)).await;
    assert_eq!(tool_results(&messages), [("can_use_tool panicked: a bug".to_owned(), true)]);
}

#[tokio::test]
async fn rules_and_mode_come_before_the_callback() {
    let deny_all = |_, _: Value, _| async { PermissionResult::deny("asked") };
    let place = Place::new();
    let messages =
        run(writing(&place).can_use_tool(deny_all).permission_mode(PermissionMode::AcceptEdits)).await;
    assert!(!tool_results(&messages)[0].1, "the mode accepts edits");
    let place = Place::new();
    let messages = run(writing(&place).can_use_tool(deny_all).allowed_tools(["Write"])).await;
    assert!(!tool_results(&messages)[0].1, "the rule allows it");
    let place = Place::new();
    let denied = writing(&place).disallowed_tools(["Write"]);
    let messages = run(denied.can_use_tool(|_, _, _| async { PermissionResult::allow() })).await;
    assert!(tool_results(&messages)[0].1, "a denial of the rules holds");
}

#[tokio::test]
async fn a_tool_of_the_program_may_decide_instead() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Question {
        tool_name: String,
    }
    let decide = tool("decide", "Decides about calls.", |question: Question| async move {
        let message = format!("{} is not wanted", question.tool_name);
        ToolResult::json(&json!({ "behavior": "deny", "message": message }))
    });
    let place = Place::new();
    let server = create_sdk_mcp_server("gate", "1.0.0", [decide]).unwrap();
    let options = writing(&place).mcp_server("gate", server).permission_prompt_tool_name("mcp__gate__decide");
    let messages = run(options.clone()).await;
    assert_eq!(tool_results(&messages), [("Write is not wanted".to_owned(), true)]);
    let mut stream = query("Go.", options.permission_prompt_tool_name("mcp__gate__other")).unwrap();
    let error = futures::StreamExt::next(&mut stream).await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("permission_prompt_tool_name: `mcp__gate__other`"), "{error}");
}

#[tokio::test]
async fn a_question_of_the_model_is_answered_through_the_callback() {
    let question = json!({ "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{ "label": "red", "description": "r" }, { "label": "blue", "description": "b" }] });
    let place = Place::new();
    let replies = call_then_done("AskUserQuestion", &json!({ "questions": [question] }));
    let options = place.playing(&replies).can_use_tool(|name, mut input: Value, _| async move {
        assert_eq!(name, "AskUserQuestion");
        input["answers"] = json!({ "Which colour?": "blue" });
        PermissionResult::allow_with(input)
    });
    let (text, failed) = tool_results(&run(options).await).remove(0);
    assert!(!failed && text.contains("blue"), "{text}");
}

#[tokio::test]
async fn an_answer_may_change_the_rules_for_the_rest_of_the_session() {
    let place = Place::new();
    let write = |name: &str| json!({ "name": "Write", "input": { "file_path": name, "content": "x" } });
    let replies = json!([
        { "when": { "turn": 1 }, "toolCalls": [write("a.txt")] },
        { "when": { "turn": 2 }, "toolCalls": [write("b.txt")] },
        { "text": "done", "repeat": true },
    ]);
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let options = place.playing(&replies).can_use_tool(move |_, _, _| {
        *count.lock().unwrap() += 1;
        let rule = RuleValue { tool_name: "Write".to_owned(), rule_content: None };
        let update = PermissionUpdate::AddRules {
            rules: vec![rule],
            behavior: Behavior::Allow,
            destination: UpdateDestination::Session,
        };
        async move {
            PermissionResult::Allow {
                updated_input: None,
                updated_permissions: Some(vec![update]),
                decision_classification: None,
            }
        }
    });
    let messages = run(options).await;
    assert_eq!(tool_results(&messages).iter().filter(|(_, failed)| *failed).count(), 0, "{messages:#?}");
    assert_eq!(*asked.lock().unwrap(), 1);
}
