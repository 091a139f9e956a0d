//! The tool of an MCP server that answers questions where `--permission-prompt-tool` names one. Anything but a clear
//! allowance is a denial.

use futures::FutureExt;
use qoder_protocol::{Answer, Question};
use qoder_types::Actor;
use serde_json::{Value, json};

use crate::mcp::McpServers;

/// Puts a question to the tool `tool` of an MCP server. It answers with a text that holds the documented JSON.
pub async fn ask_tool(servers: &McpServers, tool: &str, question: &Question) -> (Answer, Vec<String>) {
    let arguments = json!({
        "tool_name": question.tool_name, "input": question.input, "tool_use_id": question.tool_use_id,
    });
    let never = std::future::pending().boxed().shared();
    let result = match servers.call(tool, arguments, never).await {
        Ok(result) => result,
        Err(problem) => return (Answer::denial(format!("{tool} could not be asked: {problem}")), Vec::new()),
    };
    let texts = result.content.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
    let text = texts.collect::<Vec<_>>().join("\n");
    if result.is_error {
        return (Answer::denial(format!("{tool} failed: {text}")), Vec::new());
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(answer) => {
            let (answer, problems) = Answer::read(&answer);
            (Answer { by: Actor::Tool(tool.to_owned()), ..answer }.keep_original(&question.input), problems)
        }
        Err(error) => (Answer::denial(format!("{tool} did not answer with JSON: {error}")), Vec::new()),
    }
}
