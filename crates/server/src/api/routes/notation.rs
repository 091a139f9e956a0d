//! Schemas in one line: `name:string note?:string? tags:[string] kind:'a|b' by:Actor`. A mark behind a name makes a field optional,
//! one behind a type lets it be null.

use serde_json::{Map, Value, json};

/// Every value.
const ANY: &str = "any";

/// The schema of an object with these fields.
pub(super) fn object(fields: &str) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, is_optional, schema) in each(fields) {
        if !is_optional {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

/// The fields one by one: name, whether it is optional, schema.
pub(super) fn each(fields: &str) -> impl Iterator<Item = (&str, bool, Value)> {
    fields.split_whitespace().filter_map(|field| {
        let (name, kind) = field.split_once(':')?;
        let is_optional = name.ends_with('?');
        Some((name.trim_end_matches('?'), is_optional, schema(kind)))
    })
}

/// The schema of a type.
pub(super) fn schema(kind: &str) -> Value {
    let inside = |open: char, close: char| kind.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(kind) = kind.strip_suffix('?') {
        return json!({ "anyOf": [schema(kind), { "type": "null" }] });
    }
    if let Some(items) = inside('[', ']') {
        return json!({ "type": "array", "items": schema(items) });
    }
    if let Some(values) = inside('{', '}') {
        return json!({ "type": "object", "additionalProperties": schema(values) });
    }
    if let Some(words) = inside('\'', '\'') {
        return json!({ "type": "string", "enum": words.split('|').collect::<Vec<_>>() });
    }
    if kind.contains('|') {
        return json!({ "anyOf": kind.split('|').map(schema).collect::<Vec<_>>() });
    }
    match kind {
        "time" => json!({ "type": "string", "format": "date-time" }),
        "bytes" => json!({ "type": "string", "format": "binary" }),
        ANY => json!({}),
        "object" => json!({ "type": "object", "additionalProperties": true }),
        "string" | "integer" | "number" | "boolean" => json!({ "type": kind }),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_schema() {
        let schema = object("id:string note?:string? tags:[Tag] kind:'a|b' by:A|B more:{integer}");
        assert_eq!(schema["required"], json!(["id", "tags", "kind", "by", "more"]));
        let properties = &schema["properties"];
        assert_eq!(properties["note"], json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }));
        assert_eq!(properties["tags"]["items"], json!({ "$ref": "#/components/schemas/Tag" }));
        assert_eq!(properties["kind"], json!({ "type": "string", "enum": ["a", "b"] }));
        assert_eq!(properties["by"]["anyOf"][1], json!({ "$ref": "#/components/schemas/B" }));
        assert_eq!(properties["more"]["additionalProperties"], json!({ "type": "integer" }));
    }
}
