//! A built-in tool that is described to the model otherwise than usual, because a front said how it shall be used. What
//! it does is the same.

use std::sync::Arc;

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use serde_json::Value;

/// A tool with another description.
pub(in crate::setup) struct Reworded {
    tool: Arc<dyn Tool>,
    definition: ToolDefinition,
}

impl Reworded {
    /// The tool with a sentence more.
    pub(in crate::setup) fn with(tool: Arc<dyn Tool>, sentence: &str) -> Self {
        let mut definition = tool.definition().clone();
        definition.add_description(&format!("\n\n{sentence}"));
        Self { tool, definition }
    }
}

impl Tool for Reworded {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn annotations(&self) -> ToolAnnotations {
        self.tool.annotations()
    }

    fn replay(&self) -> ReplayClass {
        self.tool.replay()
    }

    fn is_read_only(&self, input: &Value) -> bool {
        self.tool.is_read_only(input)
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        self.tool.accesses(input)
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        self.tool.run(input, context)
    }
}
