//! Schemas of tools as a server takes them. A keyword that is refused is left out; where another one says the
//! same, that is put in its place, so that the model still learns of the limit.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::Profile;

/// The schema without the keywords that the profile refuses.
pub(crate) fn accepted<'a>(schema: &'a Value, profile: &Profile) -> Cow<'a, Value> {
    if profile.refused_schema_keywords.is_empty() {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(without(schema, profile.refused_schema_keywords))
}

fn without(schema: &Value, refused: &[&str]) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                if refused.contains(&name.as_str()) {
                    stand_in(name, value, refused, &mut kept);
                } else if name == "properties" {
                    // These are names of arguments and no keywords.
                    let below = value.as_object().map(|fields| {
                        fields.iter().map(|(name, value)| (name.clone(), without(value, refused))).collect()
                    });
                    kept.insert(name.clone(), below.map_or_else(|| value.clone(), Value::Object));
                } else {
                    kept.insert(name.clone(), without(value, refused));
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| without(item, refused)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
    }
}

fn stand_in(name: &str, value: &Value, refused: &[&str], kept: &mut Map<String, Value>) {
    let (other, value) = match name {
        "const" => ("enum", json!([value])),
        "exclusiveMinimum" => ("minimum", value.clone()),
        "exclusiveMaximum" => ("maximum", value.clone()),
        _ => return,
    };
    if !refused.contains(&other) && value != Value::Bool(true) {
        kept.entry(other).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::profiles;
    use super::*;

    fn profile(name: &str) -> Profile {
        *profiles().iter().find(|profile| profile.name == name).unwrap()
    }

    #[test]
    fn refused_keywords_are_left_out_and_arguments_of_that_name_stay() {
        let schema = json!({
            "$schema": "x", "type": "object", "additionalProperties": false,
            "properties": {
                "const": {"const": 1}, "n": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2},
                "list": {"type": "array", "items": {"$schema": "y", "type": "string"}},
            },
        });
        assert_eq!(
            *accepted(&schema, &profile("gemini")),
            json!({
                "type": "object",
                "properties": {
                    "const": {"enum": [1]}, "n": {"type": "integer", "minimum": 0},
                    "list": {"type": "array", "items": {"type": "string"}},
                },
            })
        );
        assert!(matches!(accepted(&schema, &profile("openai")), Cow::Borrowed(_)));
    }
}
