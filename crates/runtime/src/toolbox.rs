//! The tools of a session: which exist, which the model sees, and whether a call's input fits the tool's schema. The
//! schema is compiled at the first call of a tool, never at start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use qoder_core::ports::Tool;
use qoder_types::ToolDefinition;
use serde_json::Value;

/// The tools of a session.
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Toolbox {
    /// A toolbox of these tools, in the order in which they are advertised.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools, validators: Mutex::default() }
    }

    /// What the model is offered.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(|tool| tool.definition().clone()).collect()
    }

    /// The names of all tools.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.definition().name.as_str())
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.definition().name == name)
    }

    /// The input as the tool will get it, or what to tell the model. Numbers and booleans that came as text are read;
    /// the same input always gives the same answer.
    pub fn check(&self, tool: &dyn Tool, input: &Value) -> Result<Value, String> {
        let definition = tool.definition();
        if let Value::String(text) = input {
            return Err(format!(
                "The arguments of {} are not valid JSON: {}\nSend one complete JSON object.",
                definition.name,
                start(text)
            ));
        }
        let validator = self.validator(definition)?;
        if validator.is_valid(input) {
            return Ok(input.clone());
        }
        let read = coerce(input, &definition.input_schema);
        if validator.is_valid(&read) {
            return Ok(read);
        }
        let mut problems: Vec<String> = validator
            .iter_errors(input)
            .take(5)
            .map(|error| {
                let place = error.instance_path().to_string();
                if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
            })
            .collect();
        problems.sort();
        let fields = definition.input_schema.get("properties").and_then(Value::as_object);
        let fields: Vec<&str> = fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        Err(format!(
            "The arguments of {} do not fit its schema:\n- {}\nIts fields are: {}.",
            definition.name,
            problems.join("\n- "),
            fields.join(", ")
        ))
    }

    fn validator(&self, definition: &ToolDefinition) -> Result<Arc<Validator>, String> {
        let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(validator) = validators.get(&definition.name) {
            return Ok(Arc::clone(validator));
        }
        let validator = jsonschema::validator_for(&definition.input_schema)
            .map_err(|error| format!("{} has a schema that is not one: {error}", definition.name))?;
        let validator = Arc::new(validator);
        validators.insert(definition.name.clone(), Arc::clone(&validator));
        Ok(validator)
    }
}

fn start(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Reads top-level fields that came in another spelling of the type the schema wants.
fn coerce(input: &Value, schema: &Value) -> Value {
    let mut output = input.clone();
    let (Some(fields), Some(properties)) =
        (output.as_object_mut(), schema.get("properties").and_then(Value::as_object))
    else {
        return output;
    };
    // A null in an optional field means that the model left it out.
    fields.retain(|_, value| !value.is_null());
    for (name, value) in fields.iter_mut() {
        let Some(wanted) = properties.get(name).and_then(|property| property.get("type")) else { continue };
        let wants = |kind: &str| match wanted {
            Value::String(one) => one == kind,
            Value::Array(several) => several.iter().any(|one| one == kind),
            _ => false,
        };
        let read = match value {
            Value::String(text) if wants("integer") || wants("number") => {
                serde_json::from_str::<serde_json::Number>(text.trim()).ok().map(Value::Number)
            }
            Value::String(text) if wants("boolean") => text.trim().parse().ok().map(Value::Bool),
            Value::String(text) if wants("array") || wants("object") => serde_json::from_str(text)
                .ok()
                .filter(|parsed: &Value| parsed.is_array() || parsed.is_object()),
            _ => None,
        };
        if let Some(read) = read {
            *value = read;
        }
    }
    output
}
