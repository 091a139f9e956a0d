//! The host of a program that answers questions: messages go out as lines, and what the gate leaves open goes out as a
//! `can_use_tool` request. No answer, an error and an answer that cannot be read are all denials.

use std::sync::{Arc, OnceLock, Weak};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_runtime::driver::decision_reason_type;
use qoder_runtime::events::{Answer, Event, Host, PermissionQuestion};
use qoder_runtime::mcp::McpServers;
use qoder_runtime::permission_answer::ask_tool;
use qoder_types::control::{CanUseTool, RuntimeRequest};
use serde_json::{Value, json};

use super::channel::Channel;
use crate::host::JsonLines;
use crate::screen::tell;

/// Who answers what the gate leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    /// Nobody.
    Nobody,
    /// The program that started us.
    Program,
    /// A tool of an MCP server.
    Tool(String),
}

/// A host that has somebody to ask.
pub struct AskingHost {
    lines: Arc<JsonLines>,
    channel: Arc<Channel>,
    asks: Asks,
    /// The session's servers, once there is a session.
    servers: OnceLock<Weak<McpServers>>,
}

impl AskingHost {
    /// Puts questions to whoever `asks` names; to nobody, what would ask is treated as nobody being there.
    pub fn new(lines: Arc<JsonLines>, channel: Arc<Channel>, asks: Asks) -> Self {
        Self { lines, channel, asks, servers: OnceLock::new() }
    }

    /// Makes the session's servers known.
    pub fn know_servers(&self, servers: &Arc<McpServers>) {
        // There is one session, so there is one set of servers.
        let _ = self.servers.set(Arc::downgrade(servers));
    }

    fn ask_program(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        let mut request = request(&question);
        let (sent, cut) = self.lines.bounded(std::mem::take(&mut request.input));
        request.input = sent.clone();
        let asked = self.channel.request(RuntimeRequest::CanUseTool(Box::new(request)));
        async move {
            let (answer, problems) = match asked.await {
                Ok(answer) => Answer::read(&answer),
                Err(problem) => (Answer::denial(problem), Vec::new()),
            };
            problems.iter().for_each(|problem| tell(&format!("warning: {problem}")));
            Some(answer.keep_original(&question.input, cut.then_some(&sent)))
        }
        .boxed()
    }

    fn ask_tool(&self, tool: String, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        let servers = self.servers.get().and_then(Weak::upgrade);
        async move {
            let (answer, problems) = ask_tool(&*servers?, &tool, &question).await;
            problems.iter().for_each(|problem| tell(&format!("warning: {problem}")));
            Some(answer)
        }
        .boxed()
    }
}

impl Host for AskingHost {
    fn wants_partial(&self) -> bool {
        self.lines.wants_partial()
    }

    fn wants_tool_output(&self) -> bool {
        self.lines.wants_tool_output()
    }

    fn wants_session_state(&self) -> bool {
        self.lines.wants_session_state()
    }

    fn wants_hook_events(&self) -> bool {
        self.lines.wants_hook_events()
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        self.lines.emit(event)
    }

    fn answers(&self) -> bool {
        self.asks != Asks::Nobody && self.channel.is_open()
    }

    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'static, Option<Answer>> {
        match &self.asks {
            Asks::Nobody => std::future::ready(None).boxed(),
            Asks::Program => self.ask_program(question),
            Asks::Tool(tool) => self.ask_tool(tool.clone(), question),
        }
    }
}

fn request(question: &PermissionQuestion) -> CanUseTool {
    let (decision, input) = (&question.decision, &question.input);
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let leaves_plan = question.tool_name == "ExitPlanMode";
    CanUseTool {
        tool_name: question.tool_name.clone(),
        input: input.clone(),
        tool_use_id: question.tool_use_id.clone(),
        permission_suggestions: question.suggestions.clone(),
        blocked_path: blocked_path(input).map(str::to_owned),
        decision_reason: decision.reason.clone(),
        decision_reason_type: decision_reason_type(decision.layer).to_owned(),
        title: title(question),
        display_name: question.tool_name.clone(),
        description: text("description").unwrap_or(&decision.reason).to_owned(),
        agent_id: question.agent_id.clone(),
        classifier_approvable: false,
        exit_plan_mode: leaves_plan.then(|| json!({ "plan": text("plan").unwrap_or_default() })),
    }
}

fn blocked_path(input: &Value) -> Option<&str> {
    ["file_path", "notebook_path", "path"].iter().find_map(|key| input.get(key)?.as_str())
}

/// One line that a person can be asked with.
fn title(question: &PermissionQuestion) -> String {
    let telling = ["command", "file_path", "notebook_path", "url", "query", "pattern", "path", "prompt"];
    let about = telling.iter().find_map(|key| question.input.get(key)?.as_str());
    let about: Option<String> =
        about.map(|text| text.lines().next().unwrap_or_default().chars().take(120).collect());
    match about {
        Some(about) => format!("{}: {about}", question.tool_name),
        None => question.tool_name.clone(),
    }
}
