//! Checks answers against the server's OpenAPI document: every answer of every test has the documented shape, and no field that is
//! not in it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::Answer;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| strict(qoder_server::api::openapi().clone()));
static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Fails when an answer is not as documented.
pub fn check(method: &str, uri: &str, answer: &Answer) {
    let is_json = answer.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
    if !is_json || answer.body.is_empty() {
        return;
    }
    let path = uri.split('?').next().unwrap_or(uri);
    let path = path.strip_prefix("/api/v1/cloud").or_else(|| path.strip_prefix("/v1")).unwrap_or(path);
    let status = answer.status.to_string();
    let item = DOCUMENT["paths"].as_object().unwrap().iter().find(|(template, _)| fits(template, path));
    let schema = match item {
        _ if answer.status >= 400 => json!({ "$ref": "#/components/schemas/Error" }),
        None => panic!("{method} {path} is answered with {status} and is not in the document"),
        Some((template, item)) => {
            let operation = &item[method.to_ascii_lowercase()];
            let schema = &operation["responses"][&status]["content"]["application/json"]["schema"];
            assert!(
                !schema.is_null(),
                "{method} {template} is answered with {status}, which is not in the document"
            );
            schema.clone()
        }
    };
    let validator = validator(&schema);
    let value = answer.json();
    let problems: Vec<String> =
        validator.iter_errors(&value).map(|error| format!("{}: {}", error.instance_path(), error)).collect();
    assert!(problems.is_empty(), "{method} {uri} is not as documented: {problems:#?}\n{value:#}");
}

fn validator(schema: &Value) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap();
    let known = validators.entry(schema.to_string()).or_insert_with(|| {
        let whole = json!({ "allOf": [schema], "components": DOCUMENT["components"] });
        Arc::new(jsonschema::validator_for(&whole).expect("a valid schema"))
    });
    Arc::clone(known)
}

/// True when a path is of this template.
fn fits(template: &str, path: &str) -> bool {
    // Names of models have slashes.
    if let Some(prefix) = template.strip_suffix("{id}").filter(|prefix| *prefix == "/models/") {
        return path.starts_with(prefix);
    }
    let (mut known, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (known.next(), given.next()) {
            (None, None) => return true,
            (Some(known), Some(given)) if known == given || known.starts_with('{') => {}
            _ => return false,
        }
    }
}

/// The document with objects that have listed fields alone, unless they say otherwise.
fn strict(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
            fields.insert("additionalProperties".to_owned(), json!(false));
        }
        for field in fields.values_mut() {
            *field = strict(field.take());
        }
    } else if let Some(items) = value.as_array_mut() {
        for item in items {
            *item = strict(item.take());
        }
    }
    value
}

/// An answer of a health check with this body.
fn health(body: &Value) -> Answer {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Answer { status: 200, headers, body: body.to_string().into_bytes() }
}

#[test]
fn an_answer_as_documented_passes() {
    check("GET", "/health", &health(&json!({ "status": "ok" })));
}

#[test]
#[should_panic(expected = "is not as documented")]
fn a_field_that_is_not_documented_is_noticed() {
    check("GET", "/health", &health(&json!({ "status": "ok", "more": 1 })));
}

#[test]
#[should_panic(expected = "is not in the document")]
fn a_route_that_is_not_documented_is_noticed() {
    check("GET", "/v1/nothing", &health(&json!({ "status": "ok" })));
}
