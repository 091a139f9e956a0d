//! The servers of a session as tools reach them by name: resources, and the tools that the model was not offered by
//! themselves. A tool that is hidden from the model is hidden here too.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{McpPort, Tool, ToolContext, ToolOutcome};
use qoder_types::CallOutcome;
use serde_json::{Value, json};

use crate::prompts::Prompts;
use crate::resources::{self, Watched, unusable};
use crate::result::RESULT_CHARACTERS;
use crate::result::kept;
use crate::{McpServers, PeerEvent, plain, tool_name};

/// Tools of one listing.
const MOST_TOOLS: usize = 100;
/// Bytes of a description in a listing.
const LONGEST_SUMMARY: usize = 200;

/// Says whether the model may use a tool of this name.
pub type Offers = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The servers of a session, by name.
pub struct ByName {
    servers: Arc<McpServers>,
    offered: Offers,
    guarded: Offers,
    watched: Arc<Watched>,
    prompts: Arc<Prompts>,
}

impl fmt::Debug for ByName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ByName")
    }
}

impl ByName {
    /// These servers, with the tools that are `offered`. Of a server that a rule denies as a whole, or wants to be asked
    /// about, the name with an empty tool is `guarded`: its resources are listed only for a call that names the server.
    #[must_use]
    pub fn new(servers: Arc<McpServers>, offered: Offers, guarded: Offers) -> Self {
        let watched = Arc::new(Watched::default());
        let prompts = Arc::new(Prompts::new(Arc::clone(&servers)));
        // Servers must not keep themselves alive through what listens to them.
        let (told, stale) = (Arc::downgrade(&watched), Arc::downgrade(&prompts));
        servers.listen_to_events(Arc::new(move |server, event| match event {
            PeerEvent::ResourceUpdated(uri) => drop(told.upgrade().map(|told| told.report(server, uri))),
            PeerEvent::PromptsChanged => drop(stale.upgrade().map(|stale| stale.forget(server))),
            PeerEvent::ToolsChanged
            | PeerEvent::ResourcesChanged
            | PeerEvent::Log { .. }
            | PeerEvent::Closed(_) => {}
        }));
        Self { servers, offered, guarded, watched, prompts }
    }

    /// The prompts of the servers.
    #[must_use]
    pub fn prompts(&self) -> &Arc<Prompts> {
        &self.prompts
    }

    /// Says whether a rule denies a whole server or wants to be asked about it.
    fn guards(&self) -> impl Fn(&str) -> bool + Send + Sync + 'static {
        let guarded = Arc::clone(&self.guarded);
        move |server| guarded(&format!("mcp__{server}__"))
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.servers.tools();
        tools.retain(|tool| (self.offered)(&tool.definition().name));
        tools
    }

    /// The tool of this name; the error is for the model.
    fn find(&self, name: &str) -> Result<Arc<dyn Tool>, String> {
        let tools = self.tools();
        if let Some(tool) = tools.iter().find(|tool| tool.definition().name == name) {
            return Ok(Arc::clone(tool));
        }
        let server = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
            .map_or("", |(server, _)| server);
        let known: Vec<String> = self.servers.greetings().into_iter().map(|(name, _)| name).collect();
        if !known.iter().any(|one| one == server) {
            return Err(unusable(&self.servers, server));
        }
        Err(format!(
            "The MCP server `{server}` has no tool {}. Use Mcp with action list to see what it has.",
            plain(name, 200)
        ))
    }
}

/// Ends a wait when the call shall stop.
async fn unless_cancelled(
    work: impl Future<Output = ToolOutcome> + Send,
    context: &ToolContext,
) -> ToolOutcome {
    tokio::select! {
        outcome = work => outcome,
        () = context.cancelled.clone() => ToolOutcome {
            outcome: CallOutcome::Interrupted,
            ..ToolOutcome::failed("The call was interrupted.")
        },
    }
}

impl McpPort for ByName {
    fn is_empty(&self) -> bool {
        self.servers.summary().is_empty()
    }

    fn full_name(&self, server: &str, tool: &str) -> String {
        tool_name(server, tool)
    }

    fn list_resources(
        &self,
        server: Option<String>,
        context: ToolContext,
    ) -> BoxFuture<'static, ToolOutcome> {
        let (servers, watched, guards) =
            (Arc::clone(&self.servers), Arc::clone(&self.watched), self.guards());
        async move {
            let listing = resources::list(&servers, &watched, server.as_deref(), &guards, &context);
            unless_cancelled(listing, &context).await
        }
        .boxed()
    }

    fn read_resource(
        &self,
        server: String,
        uri: String,
        context: ToolContext,
    ) -> BoxFuture<'static, ToolOutcome> {
        let (servers, watched) = (Arc::clone(&self.servers), Arc::clone(&self.watched));
        async move {
            let reading = resources::read(&servers, &watched, (&server, &uri), &context);
            unless_cancelled(reading, &context).await
        }
        .boxed()
    }

    fn list_tools(&self, server: Option<&str>, words: &str, context: &ToolContext) -> ToolOutcome {
        let known = self.servers.greetings();
        if let Some(name) = server
            && !known.iter().any(|(one, _)| one == name)
        {
            return ToolOutcome::failed(unusable(&self.servers, name));
        }
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let of_server = server.map(|server| format!("mcp__{server}__"));
        let fits = |tool: &Arc<dyn Tool>| {
            let definition = tool.definition();
            let text = format!("{} {}", definition.name, definition.description).to_lowercase();
            of_server.as_ref().is_none_or(|start| definition.name.starts_with(start.as_str()))
                && words.iter().all(|word| text.contains(word.as_str()))
        };
        let found: Vec<Arc<dyn Tool>> = self.tools().into_iter().filter(fits).collect();
        let row = |tool: &Arc<dyn Tool>| {
            let definition = tool.definition();
            let first = definition.description.lines().next().unwrap_or_default();
            json!({ "name": definition.name, "description": plain(first, LONGEST_SUMMARY) })
        };
        let rows: Vec<Value> = found.iter().take(MOST_TOOLS).map(row).collect();
        let mut lines: Vec<String> = rows.iter().map(Value::to_string).collect();
        if found.len() > MOST_TOOLS {
            lines.push(format!("{} more; use words in `query` to find fewer.", found.len() - MOST_TOOLS));
        }
        if lines.is_empty() {
            lines.push("No tool of a connected server has all these words.".to_owned());
        }
        if let Some((_, said)) =
            server.and_then(|name| self.servers.instructions().into_iter().find(|(known, _)| known == name))
        {
            lines.push(format!("What the server says about itself:\n{said}"));
        }
        let text = lines.join("\n");
        let (text, _) = kept::bounded(text, RESULT_CHARACTERS, &context.outputs, "mcp-tools");
        ToolOutcome::completed(text, json!({ "tools": rows, "total": found.len() }))
    }

    fn describe_tool(&self, name: &str, context: &ToolContext) -> ToolOutcome {
        let tool = match self.find(name) {
            Ok(tool) => tool,
            Err(problem) => return ToolOutcome::failed(problem),
        };
        let definition = tool.definition();
        let described = json!({
            "name": definition.name, "description": definition.description, "input_schema": definition.input_schema,
        });
        let text = format!("{described:#}");
        let (text, _) = kept::bounded(text, RESULT_CHARACTERS, &context.outputs, "mcp-tool");
        ToolOutcome::completed(text, described)
    }

    fn call_tool(
        &self,
        name: String,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, ToolOutcome> {
        let tool = match self.find(&name) {
            Ok(tool) => tool,
            Err(problem) => return std::future::ready(ToolOutcome::failed(problem)).boxed(),
        };
        match misfit(&tool.definition().input_schema, &arguments) {
            None => tool.run(arguments, context),
            Some(problems) => {
                let text = format!("The arguments of {name} do not fit its schema:\n{problems}");
                std::future::ready(ToolOutcome::failed(text)).boxed()
            }
        }
    }
}

/// What is wrong with arguments, one line each.
fn misfit(schema: &Value, arguments: &Value) -> Option<String> {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(error) => return Some(format!("- the schema is not one: {error}")),
    };
    if validator.is_valid(arguments) {
        return None;
    }
    let problem = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        if place.is_empty() { format!("- {error}") } else { format!("- {place}: {error}") }
    };
    let problems: Vec<String> = validator.iter_errors(arguments).take(5).map(problem).collect();
    Some(problems.join("\n"))
}
