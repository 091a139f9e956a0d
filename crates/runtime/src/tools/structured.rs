//! The tool that the model gives its final answer with, when a front wants it in a shape. The schema of its input is the
//! front's; nothing happens when it is called, and the turn ends with what it was given.

use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_core::structured::STRUCTURED_OUTPUT;
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use serde_json::{Value, json};

const DESCRIPTION: &str = "Gives your final answer. Whoever asked reads nothing but the input of this tool, so do the work \
first, with the other tools if there are any, and then call it once with the complete answer. A call that does not fit the \
schema is answered with what is wrong; call it again then.";

/// The largest answer, in bytes: the line of the result has to carry it whole.
const LARGEST: usize = 256 * 1024;

/// The tool.
pub(crate) struct StructuredOutput(ToolDefinition);

impl StructuredOutput {
    /// The tool for answers of this schema; the error says why the schema is invalid.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let Value::Object(fields) = schema else {
            return Err("a schema is a JSON object".to_owned());
        };
        let mut fields = fields.clone();
        // Providers take nothing but objects as the input of a tool.
        match fields.entry("type").or_insert_with(|| json!("object")) {
            Value::String(kind) if kind == "object" => {}
            other => return Err(format!("the answer has to be an object, and the schema's type is {other}")),
        }
        let input_schema = Value::Object(fields);
        jsonschema::validator_for(&input_schema)
            .map_err(|error| format!("this is no JSON Schema: {error}"))?;
        Ok(Self(ToolDefinition {
            name: STRUCTURED_OUTPUT.to_owned(),
            description: DESCRIPTION.into(),
            input_schema: input_schema.into(),
        }))
    }
}

impl Tool for StructuredOutput {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: true, destructive_hint: false, open_world_hint: false }
    }

    fn replay(&self) -> ReplayClass {
        ReplayClass::Pure
    }

    fn is_read_only(&self, _: &Value) -> bool {
        true
    }

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Internal]
    }

    fn run(&self, input: Value, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let size = input.to_string().len();
        let outcome = if size > LARGEST {
            ToolOutcome::failed(format!(
                "The answer has {size} bytes; at most {LARGEST} are taken. Give a shorter one."
            ))
        } else {
            ToolOutcome::completed("The answer was taken.", input)
        };
        Box::pin(std::future::ready(outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_schemas_of_objects_are_taken() {
        let schema = json!({ "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let tool = StructuredOutput::new(&schema).unwrap();
        assert_eq!(tool.definition().input_schema["type"], "object");
        for (schema, problem) in [
            (json!(true), "a schema is a JSON object"),
            (json!({ "type": "array" }), "the schema's type is \"array\""),
            (json!({ "type": "object", "properties": { "n": { "type": "whole" } } }), "no JSON Schema"),
            (json!({ "type": "object", "required": 3 }), "no JSON Schema"),
            (json!({ "$ref": "https://example.com/schema.json" }), "no JSON Schema"),
        ] {
            let error = StructuredOutput::new(&schema).err().unwrap_or_default();
            assert!(error.contains(problem), "{schema}: {error}");
        }
    }
}
