//! The callbacks of a program, made safe to call: a panic or an error becomes the text that its question documents,
//! and a callback whose answer is no longer needed is cancelled. Both kinds of sessions call them through here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::callback::{CancelOnDrop, CancellationToken, guarded};
use crate::error::{Error, Result};
use crate::hooks::{HookCallback, HookContext, HookInput};
use crate::mcp::{McpServerConfig, McpServers};
use crate::options::QoderAgentOptions;
use crate::options::model_policy::{ModelPolicyContext, ModelPolicyProvider};
use crate::options::permission::{CanUseTool, PermissionResult, ToolPermissionContext};
use crate::session::MessageSender;
use crate::tools::{ToolContent, ToolResult};

/// Asks about a call. A callback that fails denies, with its text.
pub(crate) async fn decide(
    decider: &CanUseTool,
    tool_name: String,
    input: Value,
    context: impl FnOnce(CancellationToken) -> ToolPermissionContext,
) -> PermissionResult {
    let (guard, signal) = CancelOnDrop::new();
    let context = context(signal);
    let decided = guarded("can_use_tool", async { decider(tool_name, input, context).await }).await;
    guard.disarm();
    decided.unwrap_or_else(PermissionResult::deny)
}

/// Calls a hook.
pub(crate) async fn call_hook(
    hook: &HookCallback,
    input: Value,
    tool_use_id: Option<String>,
) -> Result<Value, String> {
    let (guard, signal) = CancelOnDrop::new();
    let input = HookInput::from_value(input);
    let answered = guarded("a hook", async { hook(input, tool_use_id, HookContext { signal }).await }).await;
    guard.disarm();
    serde_json::to_value(answered?).map_err(|error| error.to_string())
}

/// Asks for a model within the time that is given. A late answer is an error on the stream, too.
pub(crate) async fn resolve_model(
    provider: &ModelPolicyProvider,
    question: Value,
    after_ms: u64,
    messages: &MessageSender,
) -> Result<Value, String> {
    let context: ModelPolicyContext =
        serde_json::from_value(question).map_err(|error| format!("the question cannot be read: {error}"))?;
    let asked = guarded("resolve_model", async { provider(context).await });
    let (limit, begun) = (Duration::from_millis(after_ms), Instant::now());
    // One that blocks its thread past the time is ready when it is looked at again, and late all the same.
    let answer = tokio::time::timeout(limit, asked).await.ok().filter(|_| begun.elapsed() <= limit);
    let Some(answer) = answer else {
        let error = Error::ModelPolicyTimeout { after_ms };
        let text = error.to_string();
        messages.send(Err(error));
        return Err(text);
    };
    answer.map(|choice| choice.wire())
}

/// Who decides about calls: the callback, or a tool of one of the servers in this process.
pub(crate) fn decider(options: &QoderAgentOptions) -> Result<Option<CanUseTool>> {
    let Some(name) = &options.permission_prompt_tool_name else { return Ok(options.can_use_tool.clone()) };
    let McpServers::Map(servers) = &options.mcp_servers else { return Err(no_prompt_tool(name)) };
    let found = servers.iter().find_map(|(server, config)| {
        let tool = name.strip_prefix(&format!("mcp__{server}__"))?;
        match config {
            McpServerConfig::Sdk(config) => {
                let known = config.instance.tools.iter().any(|each| each.name == tool);
                known.then(|| (Arc::clone(&config.instance), tool.to_owned()))
            }
            McpServerConfig::Stdio(_) | McpServerConfig::Sse(_) | McpServerConfig::Http(_) => None,
        }
    });
    let Some((instance, tool)) = found else { return Err(no_prompt_tool(name)) };
    Ok(Some(Arc::new(move |tool_name, input, context: ToolPermissionContext| {
        let question = json!({ "tool_name": tool_name, "input": input, "tool_use_id": context.tool_use_id });
        instance
            .run(&tool, question, context.signal)
            .map(|result| read_decision(&result).map_err(Into::into))
            .boxed()
    })))
}

fn no_prompt_tool(name: &str) -> Error {
    Error::option(
        "permission_prompt_tool_name",
        format!("`{name}` is no tool of a server in this process"),
        "write mcp__server__tool, with a server of mcp_servers that create_sdk_mcp_server made",
    )
}

fn read_decision(result: &ToolResult) -> Result<PermissionResult, String> {
    let text = result.content.iter().find_map(|block| match block {
        ToolContent::Text { text } => Some(text.as_str()),
        ToolContent::Image { .. }
        | ToolContent::Audio { .. }
        | ToolContent::ResourceLink { .. }
        | ToolContent::Resource { .. } => None,
    });
    let text = text.unwrap_or_default();
    if result.is_error {
        return Err(text.to_owned());
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("the permission tool answered something unreadable: {error}"))?;
    PermissionResult::deserialize(value)
        .map_err(|error| format!("the permission tool answered something unreadable: {error}"))
}
