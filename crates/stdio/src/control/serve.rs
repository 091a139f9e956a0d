//! Requests of the host, from the JSON in which they travel to the session and back.

use qoder_protocol::SessionClient;
use qoder_protocol::control::HostRequest;
use qoder_runtime::sessions::SessionHandle;
use serde_json::Value;

use super::error::ServeError;

/// Answers one request in the shape in which it travels.
pub async fn answer(session: &SessionHandle, request: Value) -> Result<Value, ServeError> {
    let request = read(request)?;
    Ok(SessionClient::request(session, request).await?)
}

/// Requests that are documented and not built; named apart from those that are not known.
const NOT_BUILT: [&str; 1] = ["set_goal_max_turns"];

fn read(request: Value) -> Result<HostRequest, ServeError> {
    let Some(subtype) = request.get("subtype").and_then(Value::as_str).map(str::to_owned) else {
        return Err(ServeError::NoSubtype);
    };
    if NOT_BUILT.contains(&subtype.as_str()) {
        return Err(ServeError::NotBuilt(subtype));
    }
    serde_json::from_value(request).map_err(|error| {
        if error.to_string().starts_with("unknown variant") {
            ServeError::UnknownSubtype(subtype)
        } else {
            ServeError::Fields { subtype, problem: error }
        }
    })
}
