//! What fills the model's context: the documented figures of `get_context_usage`, estimated from the session's state
//! without a request to a provider. Four bytes count as a token; the provider's own figure decides about the total.

use std::sync::Arc;

use qoder_types::ToolDefinition;
use serde::Serialize;
use serde_json::{Value, json};

use crate::driver::Driver;
use crate::engine::Engine;
use crate::engine::command_rows;
use qoder_config::agents::NAME as AGENT_TOOL;
use qoder_config::skills::Skill;

/// What fills the context.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    categories: Vec<Category>,
    total_tokens: u64,
    max_tokens: u64,
    raw_max_tokens: u64,
    percentage: f64,
    model: String,
    is_auto_compact_enabled: bool,
    auto_compact_threshold: u64,
    memory_files: Vec<Value>,
    mcp_tools: Vec<Value>,
    system_tools: Vec<Value>,
    agents: Vec<Value>,
    skills: Value,
    slash_commands: Value,
    grid_rows: Vec<Vec<Value>>,
    message_breakdown: Value,
    api_usage: Value,
}

#[derive(Debug, Clone, Serialize)]
struct Category {
    name: &'static str,
    tokens: u64,
    color: &'static str,
}

impl ContextUsage {
    /// The figures of the session that a driver works on.
    #[must_use]
    pub fn of(driver: &Driver<'_>) -> Self {
        let (state, limits) = (&driver.session().state, driver.limits());
        let definitions = driver.engine().toolbox.definitions();
        let (servers, built_in): (Vec<_>, Vec<_>) =
            definitions.iter().partition(|tool| tool.name.starts_with("mcp__"));
        let system = driver.engine().system.blocks.iter().map(|text| text.len() as u64).sum::<u64>() / 4;
        let tokens = |tools: &[&ToolDefinition]| tools.iter().map(|tool| size(tool)).sum::<u64>();
        let (built_in_tokens, server_tokens) = (tokens(&built_in), tokens(&servers));
        let fixed = system + built_in_tokens + server_tokens;
        let context = &state.context;
        let total = if context.reported > 0 { context.tokens() } else { fixed + context.total_bytes / 4 };
        let messages = total.saturating_sub(fixed);
        let window = limits.context_window;
        let memory = state.memory.iter().filter(|path| !path.starts_with("skill:"));
        let category = |name, tokens, color| Category { name, tokens, color };
        Self {
            categories: vec![
                category("System prompt", system, "promptBorder"),
                category("System tools", built_in_tokens, "inactive"),
                category("MCP tools", server_tokens, "cyan"),
                category("Messages", messages, "purple"),
                category("Free space", window.saturating_sub(total), "inactive"),
            ],
            total_tokens: total,
            max_tokens: window,
            raw_max_tokens: window,
            percentage: percentage(total, window),
            model: driver.model_name(),
            is_auto_compact_enabled: true,
            auto_compact_threshold: limits.compaction_threshold(),
            memory_files: memory.map(|path| json!({ "path": path })).collect(),
            mcp_tools: servers.iter().map(|tool| mcp_tool(tool)).collect(),
            system_tools: built_in
                .iter()
                .map(|tool| json!({ "name": tool.name, "tokens": size(tool) }))
                .collect(),
            agents: agents(driver.engine()),
            skills: skills(driver, window),
            slash_commands: json!({ "totalCommands": command_rows::rows(driver.engine()).len() }),
            grid_rows: Vec::new(),
            message_breakdown: json!({ "messages": state.prompt.len(), "replies": state.context.replies }),
            api_usage: state.last_turn.as_ref().map_or(Value::Null, |turn| json!(turn.usage)),
        }
    }

    /// The figures for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{} of {} tokens of {} are used ({} %).",
            self.total_tokens, self.max_tokens, self.model, self.percentage
        );
        for Category { name, tokens, .. } in &self.categories {
            text.push_str(&format!("\n{name}: {tokens} ({} %)", percentage(*tokens, self.max_tokens)));
        }
        text
    }
}

/// The skills that the prompt names, and how much of the model's context each takes.
fn skills(driver: &Driver<'_>, window: u64) -> Value {
    let engine = driver.engine();
    let loaded = engine.common.extensions.current();
    let offered = engine.toolbox.get(crate::tools::skill::NAME).is_some();
    let row = |skill: &Arc<Skill>| {
        let tokens = (skill.name.len() + skill.description.len()) as u64 / 4;
        json!({
            "name": skill.name, "source": skill.origin.as_str(), "tokens": tokens,
            "percentageOfContext": percentage(tokens, window),
        })
    };
    let items: Vec<Value> = loaded.skills.for_model().filter(|_| offered).map(row).collect();
    json!({ "totalSkills": items.len(), "items": items })
}

/// What the agents take of the tool that starts them.
fn agents(engine: &Engine) -> Vec<Value> {
    if engine.toolbox.get(AGENT_TOOL).is_none() {
        return Vec::new();
    }
    engine.common.extensions.current().agents.usage()
}

/// Whole and half percents are enough for people and easy to compare.
#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn percentage(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 1_000.0).round() / 10.0 }
}

fn size(tool: &ToolDefinition) -> u64 {
    (tool.name.len() + tool.description.len() + tool.input_schema.to_string().len()) as u64 / 4
}

fn mcp_tool(tool: &ToolDefinition) -> Value {
    let server =
        tool.name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(server, _)| server);
    json!({ "name": tool.name, "serverName": server, "tokens": size(tool) })
}
