//! Tools of the program: what the attribute makes of a function, what is refused, and what the model reads when a
//! tool succeeds, fails or panics. The orders are those of the tools guide.

use qoder_agent_sdk::{
    McpServerToolPolicy, NoArguments, PermissionPolicy, SdkMcpTool, ToolAnnotations, ToolContent,
    ToolContext, ToolResult, create_sdk_mcp_server, query, tool, tool_with_schema,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Place, all, call_then_done, result, tool_results};

#[derive(Deserialize, JsonSchema)]
struct LookupOrder {
    /// Order ID, such as O-1001
    order_id: String,
}

/// Look up an order by order ID
/// and return its status as JSON.
#[tool(read_only, destructive = false, title = "Look up", max_result_size_chars = 500_000)]
async fn lookup_order(arguments: LookupOrder) -> Result<ToolResult, String> {
    match arguments.order_id.as_str() {
        "O-1001" => Ok(ToolResult::json(&json!({ "order_id": "O-1001", "status": "shipped" }))),
        "O-0" => Err("User service failed".to_owned()),
        "O-panic" => panic!("the handler is broken"),
        other => Ok(ToolResult::error(format!("Order not found: {other}"))),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Watch {
    max: u32,
}

/// Watch a counter until max.
#[tool(name = "watch_counter")]
async fn watch(arguments: Watch, context: ToolContext) -> String {
    if context.signal.is_cancelled() { "aborted".to_owned() } else { format!("done at {}", arguments.max) }
}

/// Returns the time.
#[tool]
async fn now() -> &'static str {
    "noon"
}

async fn run(tools: Vec<SdkMcpTool>, name: &str, input: Value) -> (String, bool) {
    let place = Place::new();
    let server = create_sdk_mcp_server("orders", "1.0.0", tools).unwrap();
    let full = format!("mcp__orders__{name}");
    let options =
        place.playing(&call_then_done(&full, &input)).mcp_server("orders", server).allowed_tools([&full]);
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).subtype, "success");
    tool_results(&messages).remove(0)
}

#[test]
fn the_attribute_reads_name_description_schema_and_hints() {
    let tool = lookup_order();
    assert_eq!(tool.name, "lookup_order");
    assert_eq!(tool.description, "Look up an order by order ID\nand return its status as JSON.");
    assert_eq!(
        tool.input_schema,
        json!({ "type": "object", "required": ["order_id"],
            "properties": { "order_id": { "type": "string", "description": "Order ID, such as O-1001" } } })
    );
    let hints = ToolAnnotations::default()
        .title("Look up")
        .read_only(true)
        .destructive(false)
        .max_result_size_chars(500_000);
    assert_eq!(tool.annotations, hints);
    assert_eq!(watch().name, "watch_counter");
    assert_eq!(now().input_schema["type"], "object");
}

#[tokio::test]
async fn the_model_reads_what_a_tool_answers() {
    let order = json!({ "order_id": "O-1001" });
    let (text, failed) = run(vec![lookup_order()], "lookup_order", order).await;
    assert_eq!((text.as_str(), failed), (r#"{"order_id":"O-1001","status":"shipped"}"#, false));
    assert_eq!(
        run(vec![watch()], "watch_counter", json!({ "max": 3 })).await,
        ("done at 3".to_owned(), false)
    );
    assert_eq!(run(vec![now()], "now", json!({})).await, ("noon".to_owned(), false));
}

#[tokio::test]
async fn an_expected_failure_an_error_and_a_panic_are_results() {
    let with = |id: &str| json!({ "order_id": id });
    let run = |id: &'static str| async move { run(vec![lookup_order()], "lookup_order", with(id)).await };
    assert_eq!(run("O-7").await, ("Order not found: O-7".to_owned(), true));
    assert_eq!(run("O-0").await, ("User service failed".to_owned(), true));
    assert_eq!(run("O-panic").await, ("lookup_order panicked: the handler is broken".to_owned(), true));
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_handler() {
    let (text, failed) = run(vec![lookup_order()], "lookup_order", json!({ "order": 1 })).await;
    assert!(failed && text.contains("order_id"), "{text}");
}

#[tokio::test]
async fn blocks_of_all_kinds_reach_the_model() {
    let picture = tool("picture", "Shows.", |_: NoArguments| async {
        ToolResult::text("a picture")
            .with(ToolContent::Image { data: "aGk=".to_owned(), mime_type: "image/png".to_owned() })
            .with(ToolContent::ResourceLink {
                uri: "file:///a".to_owned(),
                name: Some("a".to_owned()),
                description: None,
                mime_type: None,
            })
    });
    let (text, failed) = run(vec![picture], "picture", json!({})).await;
    assert!(!failed && text.contains("a picture") && text.contains("file:///a"), "{text}");
}

#[tokio::test]
async fn a_schema_by_hand_is_kept_to() {
    let schema = json!({ "type": "object", "required": ["source"],
        "properties": { "source": { "type": "string", "enum": ["docs", "wiki"] } } });
    let search = tool_with_schema("search", "Searches.", schema, |arguments: Value| async move {
        arguments["source"].as_str().unwrap_or("?").to_owned()
    });
    assert_eq!(run(vec![search.clone()], "search", json!({ "source": "wiki" })).await.0, "wiki");
    assert!(run(vec![search], "search", json!({ "source": "web" })).await.1);
}

#[test]
fn definitions_that_cannot_work_are_refused() {
    let works = || tool("a", "Does.", |_: NoArguments| async { "x" });
    let number = tool_with_schema("n", "Does.", json!({ "type": "number" }), |_: Value| async { "x" });
    let cases = [
        (create_sdk_mcp_server(" ", "1", [works()]), "the name of a server is empty"),
        (
            create_sdk_mcp_server("s", "1", [SdkMcpTool { name: String::new(), ..works() }]),
            "the name of a tool is empty",
        ),
        (
            create_sdk_mcp_server("s", "1", [SdkMcpTool { description: " ".to_owned(), ..works() }]),
            "the description of `a` is empty",
        ),
        (create_sdk_mcp_server("s", "1", [works(), works()]), "there are two tools named `a`"),
        (create_sdk_mcp_server("s", "1", [number]), "the schema of `n` does not describe an object"),
    ];
    for (made, words) in cases {
        let error = made.unwrap_err();
        assert_eq!(error.code(), "tool_server");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_tool_that_nobody_allows_does_not_run() {
    let place = Place::new();
    let server = create_sdk_mcp_server("orders", "1.0.0", [now()]).unwrap();
    let options = place.playing(&call_then_done("mcp__orders__now", &json!({}))).mcp_server("orders", server);
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).permission_denials[0].tool_name, "mcp__orders__now");
}

#[tokio::test]
async fn the_policy_of_a_server_decides_about_its_tools() {
    let place = Place::new();
    let mut server = create_sdk_mcp_server("orders", "1.0.0", [now()]).unwrap();
    let permission_policy = PermissionPolicy::AlwaysAllow;
    server.tools = vec![McpServerToolPolicy { name: "now".to_owned(), permission_policy }];
    let options = place.playing(&call_then_done("mcp__orders__now", &json!({}))).mcp_server("orders", server);
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(tool_results(&messages), [("noon".to_owned(), false)]);
}
