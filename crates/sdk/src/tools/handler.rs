//! How a function becomes the handler of a tool: its arguments are read from JSON, its answer becomes a result. One
//! argument or two, and any answer that can be a result.

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{IntoToolResult, ToolContext, ToolResult};

/// What a tool does, with everything about types taken away.
pub type ToolFunction = Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, ToolResult> + Send + Sync>;

/// A type that can be the arguments of a tool: one that derives `Deserialize` and `JsonSchema`. Nothing else implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "has no JSON Schema, or cannot be read from JSON",
    note = "add `#[derive(serde::Deserialize, schemars::JsonSchema)]` to `{Self}`",
    note = "the derives come with the crates `serde` (feature `derive`) and `schemars`"
)]
pub trait ToolArguments: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<A: DeserializeOwned + JsonSchema + Send + 'static> ToolArguments for A {}

/// A function that can be the handler of a tool. `M` distinguishes the two kinds of functions and is found by the
/// compiler.
#[diagnostic::on_unimplemented(
    message = "this function cannot be the handler of a tool",
    label = "not a handler",
    note = "a handler is an async function of the arguments, or of the arguments and a `ToolContext`, that returns a \
            `ToolResult`, a text, or a `Result` of these",
    note = "the type of the arguments needs `#[derive(serde::Deserialize, schemars::JsonSchema)]`; without it, it cannot be \
            the arguments of a tool"
)]
pub trait ToolHandler<M> {
    /// JSON Schema of the arguments.
    fn input_schema() -> Value;
    /// The function without its types.
    fn into_function(self) -> ToolFunction;
}

impl<F, A, W, R> ToolHandler<(A,)> for F
where
    F: Fn(A) -> W + Send + Sync + 'static,
    A: ToolArguments,
    W: Future<Output = R> + Send + 'static,
    R: IntoToolResult + 'static,
{
    fn input_schema() -> Value {
        schema_of::<A>()
    }

    fn into_function(self) -> ToolFunction {
        Arc::new(move |arguments, _| match serde_json::from_value(arguments) {
            Ok(arguments) => self(arguments).map(IntoToolResult::into_tool_result).boxed(),
            Err(error) => std::future::ready(unreadable(&error)).boxed(),
        })
    }
}

impl<F, A, W, R> ToolHandler<(A, ToolContext)> for F
where
    F: Fn(A, ToolContext) -> W + Send + Sync + 'static,
    A: ToolArguments,
    W: Future<Output = R> + Send + 'static,
    R: IntoToolResult + 'static,
{
    fn input_schema() -> Value {
        schema_of::<A>()
    }

    fn into_function(self) -> ToolFunction {
        Arc::new(move |arguments, context| match serde_json::from_value(arguments) {
            Ok(arguments) => self(arguments, context).map(IntoToolResult::into_tool_result).boxed(),
            Err(error) => std::future::ready(unreadable(&error)).boxed(),
        })
    }
}

fn unreadable(error: &serde_json::Error) -> ToolResult {
    ToolResult::error(format!("The arguments cannot be read: {error}"))
}

/// The schema without what only tools for schemas read; parts are inlined where they are used, as models prefer it.
fn schema_of<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("title");
    }
    schema
}
