//! Tools of your program: what a tool is and how a function becomes one. The attribute `#[tool]` writes what
//! [`tool()`] does; [`create_sdk_mcp_server`] gathers tools into a server that a session can be given.

mod handler;
mod policy;
mod result;
mod rpc;
mod server;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::callback::CancellationToken;

pub use handler::{ToolArguments, ToolFunction, ToolHandler};
pub use policy::{McpServerToolPolicy, PermissionPolicy};
pub use result::{IntoToolResult, ToolContent, ToolResult};
pub(crate) use rpc::RpcServer;
pub(crate) use server::{Instance, Peer};
pub use server::{McpSdkServerConfig, create_sdk_mcp_server};

/// A tool of your program.
#[derive(Clone)]
pub struct SdkMcpTool {
    /// Its name, unique on its server. The model sees `mcp__server__name`.
    pub name: String,
    /// For the model: when to use it, what it does, what it returns.
    pub description: String,
    /// JSON Schema of the arguments; must describe an object.
    pub input_schema: Value,
    /// Hints; they replace no permission.
    pub annotations: ToolAnnotations,
    /// What is done.
    pub handler: ToolFunction,
}

impl SdkMcpTool {
    /// The same tool with these hints.
    #[must_use]
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = annotations;
        self
    }
}

impl std::fmt::Debug for SdkMcpTool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SdkMcpTool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Makes a tool of a function. Its argument type gives the schema: derive `Deserialize` and `JsonSchema`, and write doc
/// comments on the fields. A second argument, [`ToolContext`], is passed when the function wants it.
///
/// ```
/// use qoder_agent_sdk::{ToolResult, tool};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Search {
///     /// Search keywords
///     query: String,
///     /// Maximum number of snippets to return
///     max_results: Option<u32>,
/// }
///
/// let search = tool("search_docs", "Search internal product documentation.", |search: Search| async move {
///     ToolResult::text(format!("{} ({})", search.query, search.max_results.unwrap_or(5)))
/// });
/// assert_eq!(search.input_schema["required"], serde_json::json!(["query"]));
/// ```
///
/// The same with the attribute; the doc comment is the description:
///
/// ```
/// # use qoder_agent_sdk::{ToolResult, tool};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Search { query: String }
/// /// Search internal product documentation.
/// #[tool(read_only, title = "Search docs")]
/// async fn search_docs(search: Search) -> ToolResult {
///     ToolResult::text(search.query)
/// }
///
/// assert_eq!(search_docs().description, "Search internal product documentation.");
/// assert_eq!(search_docs().annotations.read_only_hint, Some(true));
/// ```
pub fn tool<H, M>(name: impl Into<String>, description: impl Into<String>, handler: H) -> SdkMcpTool
where
    H: ToolHandler<M>,
{
    SdkMcpTool {
        name: name.into(),
        description: description.into(),
        input_schema: H::input_schema(),
        annotations: ToolAnnotations::default(),
        handler: handler.into_function(),
    }
}

/// Makes a tool with a schema that was written by hand; the function gets the arguments as they came.
///
/// ```
/// # use qoder_agent_sdk::{ToolResult, tool_with_schema};
/// # use serde_json::{Value, json};
/// let schema = json!({
///     "type": "object",
///     "properties": { "source": { "type": "string", "enum": ["docs", "wiki"] } },
///     "required": ["source"],
/// });
/// let search = tool_with_schema("search", "Searches.", schema, |arguments: Value| async move {
///     ToolResult::text(arguments["source"].to_string())
/// });
/// assert_eq!(search.name, "search");
/// ```
pub fn tool_with_schema<H, M>(
    name: impl Into<String>,
    description: impl Into<String>,
    input_schema: Value,
    handler: H,
) -> SdkMcpTool
where
    H: ToolHandler<M>,
{
    SdkMcpTool { input_schema, ..tool(name, description, handler) }
}

/// The arguments of a tool that takes none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NoArguments {}

/// What a tool is given besides its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Cancelled when the call shall stop.
    pub signal: CancellationToken,
}

/// Hints about a tool. They are shown, and read-only tools may run together; they decide about no permission.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolAnnotations {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Twice is the same as once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches beyond this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// How many characters of a result the model reads.
    #[serde(skip)]
    pub max_result_size_chars: Option<u64>,
}

impl ToolAnnotations {
    /// For people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Whether the tool changes nothing.
    #[must_use]
    pub fn read_only(mut self, hint: bool) -> Self {
        self.read_only_hint = Some(hint);
        self
    }

    /// Whether the tool may destroy something.
    #[must_use]
    pub fn destructive(mut self, hint: bool) -> Self {
        self.destructive_hint = Some(hint);
        self
    }

    /// Whether twice is the same as once.
    #[must_use]
    pub fn idempotent(mut self, hint: bool) -> Self {
        self.idempotent_hint = Some(hint);
        self
    }

    /// Whether the tool reaches beyond this machine.
    #[must_use]
    pub fn open_world(mut self, hint: bool) -> Self {
        self.open_world_hint = Some(hint);
        self
    }

    /// How many characters of a result the model reads.
    #[must_use]
    pub fn max_result_size_chars(mut self, characters: u64) -> Self {
        self.max_result_size_chars = Some(characters);
        self
    }

    /// The hints as MCP has them; `None` when there are none.
    pub(crate) fn wire(&self) -> Option<Value> {
        let hints = serde_json::to_value(self).ok()?;
        hints.as_object().is_some_and(|each| !each.is_empty()).then_some(hints)
    }

    /// What MCP's `_meta` holds; `None` when that is nothing.
    pub(crate) fn meta(&self) -> Option<Value> {
        self.max_result_size_chars.map(|most| {
            let mut meta = Map::new();
            meta.insert("anthropic/maxResultSizeChars".to_owned(), json!(most));
            Value::Object(meta)
        })
    }
}
