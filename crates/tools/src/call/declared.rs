//! The common shape of a built-in tool: facts about it, its input type, what it touches and what it does.
//!
//! [`Declared`] turns that into the port of the runtime: the definition comes from the input type at its first use, the
//! input is read before the tool sees it, and what cannot be read is answered by naming the field.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::schema::{definition, parse};

/// What is always true of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// Changes nothing, so that several calls may run together.
    pub(crate) read_only: bool,
    /// May destroy something.
    pub(crate) destructive: bool,
    /// Reaches beyond this machine.
    pub(crate) open_world: bool,
    /// What may be done if the process dies while it runs.
    pub(crate) replay: ReplayClass,
}

/// A built-in tool.
pub(crate) trait BuiltIn: Send + Sync + 'static {
    /// The name the model calls.
    const NAME: &'static str;
    /// What is always true of it.
    const FACTS: Facts;
    /// The input; its doc comments are what the model reads.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// See [`Tool::is_offered`].
    fn is_offered(&self) -> bool {
        true
    }

    /// See [`Tool::learn`].
    fn learn(&self, _session_id: &str) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// What a call with this input, which may be anything, would touch.
    fn accesses(&self, input: &Value) -> Vec<Access>;

    /// Runs a call.
    fn run(
        self: Arc<Self>,
        input: Self::Input,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send;
}

/// A built-in tool as the runtime sees it.
#[derive(Debug)]
pub(crate) struct Declared<T> {
    tool: Arc<T>,
    definition: OnceLock<ToolDefinition>,
}

impl<T: BuiltIn> Declared<T> {
    /// The tool, ready to be put into a toolbox.
    pub(crate) fn shared(tool: T) -> Arc<dyn Tool> {
        Arc::new(Self { tool: Arc::new(tool), definition: OnceLock::new() })
    }
}

impl<T: BuiltIn> Tool for Declared<T> {
    fn definition(&self) -> &ToolDefinition {
        definition::<T::Input>(&self.definition, T::NAME)
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations {
            read_only_hint: T::FACTS.read_only,
            destructive_hint: T::FACTS.destructive,
            open_world_hint: T::FACTS.open_world,
        }
    }

    fn replay(&self) -> ReplayClass {
        T::FACTS.replay
    }

    fn is_read_only(&self, _: &Value) -> bool {
        T::FACTS.read_only
    }

    fn is_offered(&self) -> bool {
        self.tool.is_offered()
    }

    fn learn(&self, session_id: &str) -> Option<BoxFuture<'static, ()>> {
        self.tool.learn(session_id)
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        self.tool.accesses(input)
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let tool = Arc::clone(&self.tool);
        Box::pin(async move {
            match parse::<T::Input>(T::NAME, input) {
                Ok(input) => tool.run(input, context).await,
                Err(refusal) => *refusal,
            }
        })
    }
}
