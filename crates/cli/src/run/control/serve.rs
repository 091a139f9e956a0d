//! Requests of the host, from the JSON in which they travel to the session and back.

use qoder_protocol::SessionClient;
use qoder_protocol::control::HostRequest;
use qoder_runtime::VERSION;
use qoder_runtime::sessions::SessionHandle;
use serde_json::Value;

/// Answers one request in the shape in which it travels.
pub async fn answer(session: &SessionHandle, request: Value) -> Result<Value, String> {
    let request = read(request)?;
    SessionClient::request(session, request).await.map_err(|error| error.to_string())
}

/// Requests that are documented and not built; named apart from those that are not known.
const NOT_BUILT: [&str; 1] = ["set_goal_max_turns"];

fn read(request: Value) -> Result<HostRequest, String> {
    let Some(subtype) = request.get("subtype").and_then(Value::as_str).map(str::to_owned) else {
        return Err("the control request has no `subtype`".to_owned());
    };
    if NOT_BUILT.contains(&subtype.as_str()) {
        return Err(format!("{subtype} is not supported by qodercli {VERSION}"));
    }
    serde_json::from_value(request).map_err(|error| {
        let problem = error.to_string();
        if problem.starts_with("unknown variant") {
            format!("Unsupported control request subtype: {subtype}")
        } else {
            format!("{subtype}: {problem}")
        }
    })
}
