//! Tools that run outside the runtime, as a front declares them: checked before the session opens, advertised like any other
//! tool, and never run here.

use std::collections::HashSet;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_core::structured::STRUCTURED_OUTPUT;
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use serde_json::Value;

use crate::setup::{Options, SetupError};
use qoder_types::tool::TOOL_NAMES;

/// The longest name that every provider accepts.
const LONGEST_NAME: usize = 64;

/// A tool that runs outside the runtime.
struct ExternalTool {
    definition: ToolDefinition,
    is_gated: bool,
}

impl Tool for ExternalTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: false, destructive_hint: false, open_world_hint: true }
    }

    fn replay(&self) -> ReplayClass {
        ReplayClass::Effectful
    }

    fn is_read_only(&self, _: &Value) -> bool {
        false
    }

    fn runs_outside(&self) -> bool {
        true
    }

    fn is_gated(&self) -> bool {
        self.is_gated
    }

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Internal]
    }

    fn run(&self, _: Value, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let name = &self.definition.name;
        let text = format!("internal error: {name} runs outside the runtime and was called here.");
        std::future::ready(ToolOutcome::failed(text)).boxed()
    }
}

/// The tools that the options declare.
pub(in crate::setup) fn external_tools(options: &Options) -> Vec<Arc<dyn Tool>> {
    let is_wanted = |tool: &&ToolDefinition| {
        options.main_agent.as_ref().is_none_or(|definition| definition.has(&tool.name))
    };
    let made = |is_gated: bool| {
        move |definition: &ToolDefinition| {
            Arc::new(ExternalTool { definition: definition.clone(), is_gated }) as Arc<dyn Tool>
        }
    };
    let plain = options.external_tools.iter().filter(is_wanted).map(made(false));
    plain.chain(options.gated_external_tools.iter().filter(is_wanted).map(made(true))).collect()
}

/// Rejects names that cannot be called or are taken, and schemas that are invalid.
pub(in crate::setup) fn check(options: &Options) -> Result<(), SetupError> {
    let mut seen = HashSet::new();
    for ToolDefinition { name, input_schema, .. } in
        options.external_tools.iter().chain(&options.gated_external_tools)
    {
        let problem = if !is_name(name) {
            Some(format!("`{name}` is not a tool name; use 1 to {LONGEST_NAME} letters, digits, `_` and `-`"))
        } else if TOOL_NAMES.contains(&name.as_str())
            || name == STRUCTURED_OUTPUT
            || name.starts_with("mcp__")
        {
            Some(format!("`{name}` is the name of a tool of the runtime; choose another name"))
        } else if !seen.insert(name.as_str()) {
            Some(format!("`{name}` is a duplicate"))
        } else {
            schema_problem(input_schema)
                .map(|problem| format!("`{name}` has an invalid input schema: {problem}"))
        };
        if let Some(problem) = problem {
            return Err(SetupError::Option { option: "external_tools", problem });
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}

fn schema_problem(schema: &Value) -> Option<String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Some("its `type` must be `object`".to_owned());
    }
    jsonschema::validator_for(schema).err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(tools: &[(&str, Value)]) -> Result<(), String> {
        let tool = |(name, input_schema): &(&str, Value)| ToolDefinition {
            name: (*name).to_owned(),
            description: "".into(),
            input_schema: input_schema.clone().into(),
        };
        let options = Options { external_tools: tools.iter().map(tool).collect(), ..Options::default() };
        check(&options).map_err(|error| error.to_string())
    }

    #[test]
    fn names_that_are_taken_or_cannot_be_called_and_invalid_schemas_are_rejected() {
        let object = || json!({ "type": "object" });
        assert_eq!(checked(&[("book_flight", object()), ("refund", object())]), Ok(()));
        for (name, problem) in [
            ("Bash", "of the runtime"),
            ("mcp__a__b", "of the runtime"),
            ("", "not a tool name"),
            ("a b", "not a tool name"),
        ] {
            assert!(checked(&[(name, object())]).unwrap_err().contains(problem), "{name}");
        }
        assert!(checked(&[("a", object()), ("a", object())]).unwrap_err().contains("duplicate"));
        assert!(checked(&[("a", json!({ "type": "string" }))]).unwrap_err().contains("must be `object`"));
        assert!(
            checked(&[("a", json!({ "type": "object", "properties": 1 }))]).unwrap_err().contains("invalid")
        );
    }
}
