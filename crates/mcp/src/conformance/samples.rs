//! Values made from JSON Schemas: what a schema names itself when it does, else something small of the right type.
//! Addresses inside a schema are never fetched.

use serde_json::{Map, Value, json};

use crate::ListedTool;

/// Schemas nest no deeper than this here.
const DEEPEST: usize = 8;
/// Longer lists and texts are not made.
const LONGEST: u64 = 64;

/// Arguments for a tool.
pub(super) fn arguments(tool: &ListedTool, tools: &[ListedTool]) -> Value {
    let maker = Maker { root: &tool.input_schema, tools };
    match maker.value(&tool.input_schema, 0) {
        Value::Object(arguments) => Value::Object(arguments),
        _ => json!({}),
    }
}

/// Arguments for a prompt: texts, named for what they are.
pub(super) fn prompt_arguments(prompt: &Value) -> Map<String, Value> {
    let declared = prompt.get("arguments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names = declared.iter().filter_map(|argument| argument.get("name")?.as_str());
    names.map(|name| (name.to_owned(), Value::String(format!("sample {name}")))).collect()
}

/// The content of a form: the values it comes with, and something for whatever else it requires.
pub(super) fn form(schema: Option<&Value>) -> Map<String, Value> {
    let Some(schema) = schema else { return Map::new() };
    let maker = Maker { root: schema, tools: &[] };
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    };
    properties(schema)
        .filter(|(name, property)| required(name) || property.get("default").is_some())
        .map(|(name, property)| (name.clone(), maker.value(property, 1)))
        .collect()
}

struct Maker<'a> {
    root: &'a Value,
    tools: &'a [ListedTool],
}

impl Maker<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(given) = ["const", "default"].iter().find_map(|key| schema.get(key)) {
            return given.clone();
        }
        let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|list| list.first());
        if let Some(given) = first("enum").or_else(|| first("examples")) {
            return given.clone();
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let inside = target.strip_prefix('#').and_then(|path| self.root.pointer(path));
            return inside.map_or(json!({}), |inside| self.value(inside, depth + 1));
        }
        if let Some(choice) =
            first("oneOf").or_else(|| first("anyOf")).filter(|_| schema.get("type").is_none())
        {
            return self.value(choice, depth + 1);
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
            Some(kind) => kind.as_str(),
            None => schema.get("properties").map(|_| "object"),
        };
        match kind {
            Some("integer" | "number") => number(schema),
            Some("boolean") => Value::Bool(true),
            Some("array") => self.list(schema, depth),
            Some("object") => self.object(schema, depth),
            Some("null") => Value::Null,
            Some(_) | None => text(schema),
        }
    }

    fn list(&self, schema: &Value, depth: usize) -> Value {
        let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).min(LONGEST);
        let item = schema.get("items").map_or(json!("sample"), |items| self.value(items, depth + 1));
        (0..count).map(|_| item.clone()).collect()
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        if let Some(wanted) = self.wanted_schema(schema) {
            return wanted.clone();
        }
        let made = properties(schema).map(|(name, property)| (name.clone(), self.value(property, depth + 1)));
        Value::Object(made.collect())
    }

    /// An object without fields of its own whose description asks for the input schema of a tool that it names.
    fn wanted_schema(&self, schema: &Value) -> Option<&Value> {
        let description = schema.get("description")?.as_str()?;
        if schema.get("properties").is_some() || !description.contains("inputSchema") {
            return None;
        }
        self.tools.iter().find(|tool| description.contains(&tool.name)).map(|tool| &tool.input_schema)
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn number(schema: &Value) -> Value {
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let least = limit("minimum").or_else(|| Some(limit("exclusiveMinimum")? + 1.0));
    let most = limit("maximum").or_else(|| Some(limit("exclusiveMaximum")? - 1.0));
    let wished = least.unwrap_or(1.0).max(1.0);
    let value = most.map_or(wished, |most| wished.min(most));
    #[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
    let whole = value as i64;
    if value.fract() == 0.0 { json!(whole) } else { json!(value) }
}

fn text(schema: &Value) -> Value {
    let made = match schema.get("format").and_then(Value::as_str) {
        Some("email") => "someone@example.com",
        Some("uri" | "url") => "https://example.com/",
        Some("date") => "2025-01-01",
        Some("date-time") => "2025-01-01T00:00:00Z",
        Some(_) | None => "sample",
    };
    let length = |key: &str| schema.get(key).and_then(Value::as_u64).map(|count| count.min(LONGEST));
    let mut made = made.to_owned();
    while length("minLength").is_some_and(|least| (made.len() as u64) < least) {
        made.push('x');
    }
    if let Some(most) = length("maxLength").and_then(|most| usize::try_from(most).ok()) {
        made.truncate(most);
    }
    Value::String(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, input_schema: Value) -> ListedTool {
        serde_json::from_value(json!({"name": name, "inputSchema": input_schema})).unwrap()
    }

    #[test]
    fn arguments_fit_their_schema() {
        let schema = json!({
            "type": "object",
            "$defs": {"where": {"type": "object", "properties": {"city": {"type": "string", "minLength": 9}}}},
            "properties": {
                "a": {"type": "number"}, "b": {"type": "integer", "minimum": 7, "maximum": 9},
                "kind": {"enum": ["x", "y"]}, "on": {"type": "boolean"}, "place": {"$ref": "#/$defs/where"},
                "far": {"$ref": "https://example.com/schema.json"},
                "list": {"type": "array", "items": {"type": "string"}, "minItems": 2},
                "given": {"type": "string", "default": "this"},
            },
        });
        let made = arguments(&tool("t", schema), &[]);
        assert_eq!(
            made,
            json!({
                "a": 1, "b": 7, "kind": "x", "on": true, "place": {"city": "samplexxx"}, "far": {},
                "list": ["sample", "sample"], "given": "this",
            })
        );
    }

    #[test]
    fn schemas_without_end_end() {
        let schema = json!({"type": "object", "properties": {"again": {"$ref": "#"}}});
        assert!(arguments(&tool("t", schema), &[]).is_object());
    }

    #[test]
    fn a_tool_that_wants_the_schema_of_another_one_gets_it() {
        let rich = tool("rich", json!({"type": "object", "$defs": {"x": {"$anchor": "y"}}}));
        let wants = json!({"type": "object", "description": "The inputSchema of rich"});
        let echo = tool("echo", json!({"type": "object", "properties": {"schema": wants}}));
        let tools = [rich, echo];
        assert_eq!(arguments(&tools[1], &tools), json!({"schema": tools[0].input_schema}));
    }

    #[test]
    fn forms_keep_their_defaults() {
        let schema = json!({
            "type": "object", "required": ["must"],
            "properties": {"name": {"type": "string", "default": "Jo"}, "must": {"type": "boolean"},
                           "may": {"type": "string"}},
        });
        assert_eq!(Value::Object(form(Some(&schema))), json!({"name": "Jo", "must": true}));
    }
}
