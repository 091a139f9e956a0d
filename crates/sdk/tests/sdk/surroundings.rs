//! What a program says about the surroundings of a session: how plans are made, a proxy, what user messages carry, what
//! previews are written in, and that it wants the events of hooks.

use qoder_agent_sdk::{
    HookEvent, HookJsonOutput, HookMatcher, Message, PermissionMode, QoderAgentOptions, query,
};
use qoder_testkit::{Reply, Script, ScriptedServer};
use serde_json::{Map, Value, json};

use crate::support::{Place, all, call_then_done, result, within};
use futures::StreamExt;

/// What a session with these options sends to its model first.
async fn first_request(change: impl FnOnce(QoderAgentOptions) -> QoderAgentOptions) -> Value {
    let place = Place::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("hello")]));
    let keyed = place.options().env("ANTHROPIC_API_KEY", "key-of-the-test");
    let options = keyed.env("ANTHROPIC_BASE_URL", server.base_url()).model("m");
    assert_eq!(result(&all(query("Hi.", change(options)).unwrap()).await).text(), "hello");
    server.requests()[0].json()
}

#[tokio::test]
async fn plans_are_made_as_the_program_says() {
    let plan = |options: QoderAgentOptions| options.permission_mode(PermissionMode::Plan);
    let own = first_request(plan).await["system"].to_string();
    assert!(own.contains("# Plan mode") && own.contains("call ExitPlanMode with the whole plan"), "{own}");
    let other = first_request(|options| plan(options).plan_mode_instructions("Draw first.")).await["system"]
        .to_string();
    assert!(other.contains("# Plan mode") && other.contains("Draw first.") && !other.contains("whole plan"));
    assert!(!first_request(|options| options).await["system"].to_string().contains("# Plan mode"));
}

#[tokio::test]
async fn requests_to_models_go_through_the_proxy() {
    let place = Place::new();
    let proxy = ScriptedServer::start(Script::list(vec![Reply::text("from the proxy")]));
    let keyed = place.options().env("ANTHROPIC_API_KEY", "key-of-the-test");
    let new = || keyed.clone().env("ANTHROPIC_BASE_URL", "http://model.invalid").model("m");
    let messages = all(query("Hi.", new().proxy(proxy.base_url())).unwrap()).await;
    assert_eq!(result(&messages).text(), "from the proxy");
    assert_eq!(proxy.requests()[0].path, "http://model.invalid/v1/messages");
    let error =
        within(query("Hi.", new().proxy("ftp://p:secret@h")).unwrap().next()).await.unwrap().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("of proxy cannot be used") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn user_messages_carry_the_context() {
    let place = Place::new();
    let context = json!({ "tenant": "t-1" });
    let options = place
        .playing(&call_then_done("Glob", &json!({ "pattern": "*" })))
        .extra_arg("replay-user-messages", None)
        .custom_context(context.as_object().unwrap().clone());
    let messages = all(query("Hi.", options).unwrap()).await;
    let contexts: Vec<&Map<String, Value>> = messages
        .iter()
        .filter_map(|message| match message {
            Message::User(user) => user.custom_context.as_ref(),
            _ => None,
        })
        .collect();
    let context = context.as_object().unwrap();
    assert_eq!(contexts, [context, context], "the prompt and the result of the call");
}

#[tokio::test]
async fn previews_are_written_in_the_format_of_the_program() {
    let config = |format: &str| json!({ "askUserQuestion": { "previewFormat": format } });
    let described = |request: Value| {
        let tools = request["tools"].as_array().unwrap().clone();
        tools.into_iter().find(|tool| tool["name"] == "AskUserQuestion").unwrap()["description"].to_string()
    };
    let html = described(first_request(|options| options.tool_config(config("html"))).await);
    assert!(html.contains("shown to the person as HTML"), "{html}");
    let place = Place::new();
    let options = place.playing(&json!([])).tool_config(config("pdf"));
    let error = within(query("Hi.", options).unwrap().next()).await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("tool_config: askUserQuestion.previewFormat"), "{error}");
}

#[tokio::test]
async fn hooks_are_told_of_when_that_is_wanted() {
    let place = Place::new();
    let new = || {
        let matcher = HookMatcher::new().hook(|_, _, _| async { HookJsonOutput::default() });
        place
            .playing(&call_then_done("Glob", &json!({ "pattern": "*" })))
            .hook(HookEvent::PreToolUse, matcher)
    };
    let told = |messages: &[Message]| -> Vec<String> {
        let systems = messages.iter().filter_map(|message| match message {
            Message::System(system) => Some(system.subtype.clone()),
            _ => None,
        });
        systems.filter(|subtype| subtype.starts_with("hook_")).collect()
    };
    assert!(told(&all(query("Hi.", new()).unwrap()).await).is_empty());
    let messages = all(query("Hi.", new().include_hook_events(true)).unwrap()).await;
    assert_eq!(told(&messages), ["hook_started", "hook_response"]);
}
