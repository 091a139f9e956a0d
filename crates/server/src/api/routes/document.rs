//! The OpenAPI document: written from the table of routes and the schemas.

use serde_json::{Map, Value, json};

use super::notation;
use super::operation::{Gives, Operation, Route, Takes};
use super::schemas::SCHEMAS;

/// The document for these routes below the prefixes and those beside them.
pub(super) fn write(routes: &[Route], outside: &[Route]) -> Value {
    let mut paths = Map::new();
    for route in routes {
        paths.insert(template(route.path), path(route, "api"));
    }
    for route in outside {
        let mut item = path(route, "server");
        item["servers"] = json!([{ "url": "/" }]);
        paths.insert(template(route.path), item);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Cloud agents API", "version": env!("CARGO_PKG_VERSION"),
            "description": "The HTTP interface of `qodercli serve`. Both prefixes serve every route; a request with the header \
                            `anthropic-version` is answered in the Claude dialect, every other one in the Qoder dialect.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/api/v1/cloud" }, { "url": "/v1" }],
        "security": [{ "bearer": [] }, { "key": [] }],
        "paths": paths,
        "components": {
            "schemas": SCHEMAS.iter().map(|(name, fields)| ((*name).to_owned(), component(fields))).collect::<Map<_, _>>(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            },
        },
    })
}

/// A schema of an object; one that begins with `+` has fields beside those that are listed, one with `=` is another name.
fn component(fields: &str) -> Value {
    if let Some(kind) = fields.strip_prefix('=') {
        return notation::schema(kind);
    }
    let Some(fields) = fields.strip_prefix('+') else { return notation::object(fields) };
    let mut schema = notation::object(fields);
    schema["additionalProperties"] = json!(true);
    schema
}

/// The path as OpenAPI writes it.
fn template(path: &str) -> String {
    path.replace("{*", "{")
}

fn path(route: &Route, tag: &str) -> Value {
    let path = template(route.path);
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let parameters: Vec<Value> = names
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    let mut item = json!({ "parameters": parameters });
    let subject = path.split('/').nth(1).filter(|_| tag == "api").unwrap_or(tag);
    for (method, operation) in &route.operations {
        item[*method] = describe(operation, &operation_id(method, &path), subject);
    }
    item
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(['/', '{', '}', '_', '.']).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

fn describe(operation: &Operation, id: &str, tag: &str) -> Value {
    let query = operation.query.iter().flat_map(|notation| notation::each(notation));
    let query: Vec<Value> =
        query.map(|(name, _, schema)| json!({ "name": name, "in": "query", "schema": schema })).collect();
    let mut responses = Map::new();
    for status in operation.statuses {
        responses.insert(
            status.to_string(),
            json!({ "description": "Done.", "content": content(operation.gives) }),
        );
    }
    let error = json!({ "application/json": { "schema": notation::schema("Error") } });
    responses.insert("default".to_owned(), json!({ "description": "An error.", "content": error }));
    let mut value = json!({
        "operationId": id, "summary": operation.summary, "tags": [tag], "parameters": query, "responses": responses,
    });
    match operation.takes {
        Takes::Nothing => {}
        Takes::Json(schema) => value["requestBody"] = body("application/json", schema),
        Takes::Form(schema) => value["requestBody"] = body("multipart/form-data", schema),
    }
    if operation.is_open {
        value["security"] = json!([]);
    }
    value
}

fn body(media_type: &str, schema: &str) -> Value {
    json!({ "required": true, "content": { media_type: { "schema": notation::schema(schema) } } })
}

fn content(gives: Gives) -> Value {
    let bytes = json!({ "schema": notation::schema("bytes") });
    match gives {
        Gives::One(name) => json!({ "application/json": { "schema": notation::schema(name) } }),
        Gives::Page(name) => json!({ "application/json": { "schema": page(name) } }),
        Gives::Bytes => json!({ "application/octet-stream": bytes }),
        Gives::LinkOrBytes => {
            json!({ "application/json": { "schema": notation::schema("FileLink") }, "application/octet-stream": bytes })
        }
        Gives::Events => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
        Gives::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
    }
}

fn page(name: &str) -> Value {
    notation::object(&format!(
        "data:[{name}] next_page:string? prev_page:string? first_id:string? last_id:string? has_more:boolean"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::openapi;
    use super::*;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                    found.insert(name.trim_start_matches("#/components/schemas/").to_owned());
                }
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_schema_is_there_and_used() {
        let document = openapi();
        let mut found = BTreeSet::new();
        references(document, &mut found);
        let known: BTreeSet<String> = SCHEMAS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, known);
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let mut names = BTreeSet::new();
        for item in openapi()["paths"].as_object().unwrap().values() {
            for (_, operation) in item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters") {
                if let Some(name) = operation["operationId"].as_str() {
                    assert!(names.insert(name.to_owned()), "{name}");
                }
            }
        }
        assert!(names.len() > 80, "{}", names.len());
    }
}
