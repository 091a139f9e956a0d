//! Reading messages. Answers are kept as the server wrote them, instead of being pressed into the types of a revision:
//! nothing is lost, a strange tool spoils only itself, and most of the work of reading is saved.

mod unreadable;

use rmcp::model::{
    CustomRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerRequest, ServerResult,
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A request that is kept raw as well: its schema may be anything.
const ELICITATION: &str = "elicitation/create";

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    code: Value,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    data: Option<Value>,
}

/// `null` is a value here, and not the lack of one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The messages in `bytes`: one, or several in an array, as one revision had it. `Err` says why it is not a message. An
/// answer that cannot be read, such as one that is nested without end, is an error for the request that waits for it.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<ServerJsonRpcMessage>, String> {
    read_all(bytes).or_else(|problem| match unreadable::id_of_answer(bytes) {
        Some(id) => {
            let text = format!("the server's answer cannot be read: {problem}");
            Ok(vec![JsonRpcMessage::error(ErrorData::new(ErrorCode::PARSE_ERROR, text, None), Some(id))])
        }
        None => Err(problem),
    })
}

fn read_all(bytes: &[u8]) -> Result<Vec<ServerJsonRpcMessage>, String> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        let values: Vec<Value> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        return values.into_iter().map(|value| read_one(value.to_string().as_bytes())).collect();
    }
    read_one(bytes).map(|message| vec![message])
}

fn read_one(bytes: &[u8]) -> Result<ServerJsonRpcMessage, String> {
    let message: Message = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match (message.method, message.id, message.result, message.error) {
        (None, Some(id), Some(result), None) => Ok(JsonRpcMessage::response(answer(result), id)),
        (None, id, None, Some(problem)) => Ok(JsonRpcMessage::error(problem.into(), id)),
        (Some(method), Some(id), None, None) if method == ELICITATION => {
            let request = CustomRequest::new(method, message.params);
            Ok(JsonRpcMessage::request(ServerRequest::CustomRequest(request), id))
        }
        (Some(_), _, None, None) => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
        _ => Err("it is neither a request nor an answer nor a notification".to_owned()),
    }
}

/// Only what the handshake and its relatives need is typed.
fn answer(result: Value) -> ServerResult {
    let has = |key: &str| result.get(key).is_some();
    let unfinished = result.get("resultType").and_then(Value::as_str).is_some_and(|kind| kind != "complete");
    let needs_type = has("protocolVersion") || has("supportedVersions") || unfinished;
    if needs_type && let Ok(typed) = ServerResult::deserialize(&result) {
        return typed;
    }
    ServerResult::CustomResult(CustomResult(result))
}

/// The other way round: an answer as the server wrote it, or as close to that as its types allow.
pub(super) fn value(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(CustomResult(value)) => value,
        typed => serde_json::to_value(typed).unwrap_or_default(),
    }
}

impl From<Problem> for ErrorData {
    fn from(problem: Problem) -> Self {
        let code = problem.code.as_i64().and_then(|code| i32::try_from(code).ok());
        let message = match problem.message {
            Value::String(text) => text,
            Value::Null => "no message".to_owned(),
            other => other.to_string(),
        };
        // An invalid code counts as an internal error.
        Self::new(code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode), message, problem.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(value: &Value) -> Result<ServerJsonRpcMessage, String> {
        read(value.to_string().as_bytes()).map(|mut messages| messages.remove(0))
    }

    #[test]
    fn an_answer_stays_as_it_was_written() {
        let written = json!({ "tools": [{ "name": "x", "unknown": [1], "annotations": { "odd": true } }] });
        let message = one(&json!({ "jsonrpc": "2.0", "id": 7, "result": written })).unwrap();
        let (result, id) = message.into_response().unwrap();
        assert_eq!((id, value(result)), (RequestId::Number(7), written));
        let message = one(&json!({ "jsonrpc": "2.0", "id": "a", "result": null })).unwrap();
        assert_eq!(value(message.into_response().unwrap().0), Value::Null);
    }

    #[test]
    fn the_answer_to_the_handshake_has_its_type() {
        let written = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "serverInfo": { "name": "n", "version": "1" } });
        let message = one(&json!({ "jsonrpc": "2.0", "id": 0, "result": written })).unwrap();
        assert!(matches!(message.into_response().unwrap().0, ServerResult::InitializeResult(_)));
    }

    #[test]
    fn errors_need_not_be_well_formed() {
        let message = one(&json!({ "id": 1, "error": { "code": "x", "message": 5 } })).unwrap();
        let (error, _) = message.into_error().unwrap();
        assert_eq!((error.code, &*error.message), (ErrorCode::INTERNAL_ERROR, "5"));
    }

    #[test]
    fn several_messages_may_come_in_an_array() {
        let both = json!([{ "jsonrpc": "2.0", "id": 1, "result": {} },
            { "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }]);
        assert_eq!(read(both.to_string().as_bytes()).unwrap().len(), 2);
    }

    #[test]
    fn nonsense_is_refused() {
        for nonsense in ["", "hello", "1", "null", "{}", "{\"id\":1}", "{\"id\":{},\"result\":1}", "[1]"] {
            assert!(read(nonsense.as_bytes()).is_err(), "{nonsense}");
        }
        let deep = "[".repeat(100_000);
        assert!(read(deep.as_bytes()).is_err());
    }

    #[test]
    fn an_answer_that_is_nested_without_end_is_an_error_for_whoever_waits() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        for text in [
            format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":{deep}}}}}"),
            format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"content\":{deep}}},\"id\":7}}"),
            "{\"id\":7,\"result\":{\"content\":[{]}".to_owned(),
        ] {
            let (error, id) = read(text.as_bytes()).unwrap().remove(0).into_error().unwrap();
            assert_eq!((error.code, id), (ErrorCode::PARSE_ERROR, Some(RequestId::Number(7))));
        }
        let request = format!("{{\"method\":\"x\",\"id\":7,\"params\":{deep}}}");
        assert!(read(request.as_bytes()).is_err());
    }
}
