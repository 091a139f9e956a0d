//! Turns an input type into what the model is shown, and what the model sent into the input type.
//!
//! The doc comment of the input type is the tool's description and the doc comments of its fields are theirs, so that
//! code and advertisement cannot drift apart. Definitions are built at their first use. Input is read leniently where
//! models are known to be sloppy (whole numbers as `10.0` or `"10"`), and every complaint names the field.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use qoder_types::ToolDefinition;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde_json::Value;

use crate::call::refusal::{Refusal, refusal};

/// The definition of the tool `name` with the input type `I`, built once into `cell`.
pub fn definition<'a, I: JsonSchema + 'static>(
    cell: &'a OnceLock<ToolDefinition>,
    name: &str,
) -> &'a ToolDefinition {
    cell.get_or_init(|| shared::<I>(name))
}

/// The definition, built once in the process: the sessions of a server share it.
fn shared<I: JsonSchema + 'static>(name: &str) -> ToolDefinition {
    static BUILT: Mutex<BTreeMap<(TypeId, String), ToolDefinition>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let of_type = built.entry((TypeId::of::<I>(), name.to_owned()));
    of_type.or_insert_with(|| build::<I>(name)).clone()
}

fn build<I: JsonSchema>(name: &str) -> ToolDefinition {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<I>().to_value();
    let mut description = String::new();
    if let Value::Object(map) = &mut schema {
        map.remove("$schema");
        if let Some(Value::String(text)) = map.remove("description") {
            description = text;
        }
    }
    clean(&mut schema);
    ToolDefinition { name: name.to_owned(), description: description.into(), input_schema: schema.into() }
}

/// Removes what models have no use for: titles, formats, null as a type, and openness to further properties.
fn clean(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // Only a schema has a textual title; a property that happens to be called `title` is an object.
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            if map.get("format").is_some_and(Value::is_string) {
                map.remove("format");
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            if let Some(Value::Array(kinds)) = map.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [only] = kinds.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            flatten_optional(map);
            if map.get("type").is_some_and(|kind| kind == "object") {
                // A map says itself what it takes.
                map.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            map.values_mut().for_each(clean);
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `anyOf: [X, null]` says that a field is optional, which `required` says already: keeps X alone.
fn flatten_optional(map: &mut serde_json::Map<String, Value>) {
    let Some(Value::Array(choices)) = map.get("anyOf") else { return };
    let mut real = choices.iter().filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    if let (Some(Value::Object(only)), None) = (real.next().cloned(), real.next()) {
        map.remove("anyOf");
        for (key, value) in only {
            map.entry(key).or_insert(value);
        }
    }
}

/// Reads the input of the tool `name`; the error is the result for the model.
pub fn parse<I: DeserializeOwned>(name: &str, input: Value) -> Result<I, Refusal> {
    if !input.is_object() {
        return Err(refusal(format!(
            "Invalid input for {name}: expected a JSON object with the documented fields."
        )));
    }
    serde_path_to_error::deserialize::<_, I>(input).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner();
        refusal(if path == "." {
            format!("Invalid input for {name}: {reason}.")
        } else {
            format!("Invalid input for {name}: field `{path}`: {reason}.")
        })
    })
}

/// The string in the field `field`, for declaring accesses of input that may be anything.
pub(crate) fn path_field(input: &Value, field: &str) -> Option<PathBuf> {
    input.get(field).and_then(Value::as_str).map(PathBuf::from)
}

/// A whole number that is not negative, also when it is written as `10.0` or `"10"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) u64);

/// Larger values are mistakes, and this is the last number that every JSON reader keeps exactly.
const LARGEST_WHOLE: u64 = 9_007_199_254_740_991;

impl JsonSchema for Whole {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Whole".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 0 })
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Whole, E> {
        if value > LARGEST_WHOLE {
            return Err(E::custom(format_args!("{value} is too large")));
        }
        Ok(Whole(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Whole, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::custom(format_args!("{value} is negative, expected a whole number from 0 up"))),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked in front of the cast, and within it the cast is exact"
    )]
    fn visit_f64<E: Error>(self, value: f64) -> Result<Whole, E> {
        if !value.is_finite() || value > LARGEST_WHOLE as f64 {
            return Err(E::custom(format_args!("{value} is too large")));
        }
        if value < 0.0 {
            return Err(E::custom(format_args!("{value} is negative, expected a whole number from 0 up")));
        }
        if value.fract() != 0.0 {
            return Err(E::custom(format_args!("{value} is not a whole number")));
        }
        Ok(Whole(value as u64))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Whole, E> {
        match value.trim().parse::<f64>() {
            Ok(number) => self.visit_f64(number),
            Err(_) => Err(E::custom(format_args!("{value:?} is not a number"))),
        }
    }
}

/// A boolean, also when it is written as `"true"` or `"false"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl JsonSchema for Flag {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Flag".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "boolean" })
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FlagVisitor)
    }
}

struct FlagVisitor;

impl Visitor<'_> for FlagVisitor {
    type Value = Flag;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("true or false")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Flag, E> {
        Ok(Flag(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Flag, E> {
        match value.trim() {
            "true" | "True" => Ok(Flag(true)),
            "false" | "False" => Ok(Flag(false)),
            _ => Err(E::custom(format_args!("{value:?} is neither true nor false"))),
        }
    }
}

/// Whether an optional flag is set.
pub(crate) fn is_set(flag: Option<Flag>) -> bool {
    flag.is_some_and(|flag| flag.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(value: Value) -> Result<u64, String> {
        serde_json::from_value::<Whole>(value).map(|whole| whole.0).map_err(|error| error.to_string())
    }

    #[test]
    fn sloppy_numbers_are_read_and_impossible_ones_refused() {
        assert_eq!(whole(Value::from(10)), Ok(10));
        assert_eq!(whole(Value::from(10.0)), Ok(10));
        assert_eq!(whole(Value::from(" 10 ")), Ok(10));
        assert!(whole(Value::from(-1)).unwrap_err().contains("negative"));
        assert!(whole(Value::from(1.5)).unwrap_err().contains("not a whole number"));
        assert!(whole(Value::from(1e300)).unwrap_err().contains("too large"));
        assert!(whole(Value::from(u64::MAX)).unwrap_err().contains("too large"));
        assert!(whole(Value::from("ten")).unwrap_err().contains("not a number"));
        assert!(whole(Value::Bool(true)).unwrap_err().contains("whole number"));
    }
}
