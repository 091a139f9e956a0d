//! Registering ourselves as a client (RFC 7591), and how a client then proves who it is. The authorization server has
//! the last word on that, so its answer is kept with the registration.

use rmcp::transport::auth::AuthorizationMetadata;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

use super::authorizer::Inner;
use super::problem::failed;
use super::store::Registration;
use crate::authorization::AuthorizationError;

/// In the order of our preference: a program on a person's machine can keep no secret.
const METHODS: [&str; 3] = ["none", "client_secret_post", "client_secret_basic"];
/// The metadata field that lists them.
pub(super) const METHODS_FIELD: &str = "token_endpoint_auth_methods_supported";

#[derive(Deserialize)]
struct Answer {
    client_id: String,
    #[serde(default)]
    client_secret: Option<SecretString>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

#[derive(Deserialize)]
struct Problem {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl Inner {
    /// Registers a client for a callback.
    pub(super) async fn register(
        &self,
        metadata: &AuthorizationMetadata,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Registration, AuthorizationError> {
        let Some(endpoint) = &metadata.registration_endpoint else {
            return Err(failed(
                "the authorization server registers no clients; register one there and configure its client id",
            ));
        };
        let method = wanted_method(metadata)?;
        let mut request = json!({
            "client_name": self.identity.name,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": "native",
        });
        if !scopes.is_empty() {
            request["scope"] = Value::String(scopes.join(" "));
        }
        let request = http::Request::post(endpoint)
            .header(http::header::CONTENT_TYPE, "application/json")
            .header(http::header::ACCEPT, "application/json")
            .body(request.to_string().into_bytes())
            .map_err(|_| failed("the address for registrations is not a URL"))?;
        let answer = self.http.ask(request).await.map_err(|problem| failed(&problem.to_string()))?;
        if !answer.status().is_success() {
            let said = match serde_json::from_slice::<Problem>(answer.body()) {
                Ok(Problem { error, error_description: Some(text) }) => format!("{error}: {text}"),
                Ok(Problem { error, error_description: None }) => error,
                Err(_) => "without a reason".to_owned(),
            };
            return Err(failed(&format!("the client was not registered (HTTP {}): {said}", answer.status())));
        }
        let answer: Answer = serde_json::from_slice(answer.body())
            .map_err(|_| failed("the answer to the registration cannot be read"))?;
        Ok(Registration {
            client_id: answer.client_id,
            // Some servers answer with an empty one to clients that have none.
            client_secret: answer.client_secret.filter(|secret| !is_empty(secret)),
            redirect_uri: redirect_uri.to_owned(),
            auth_method: Some(answer.token_endpoint_auth_method.unwrap_or_else(|| method.to_owned())),
        })
    }
}

fn is_empty(secret: &SecretString) -> bool {
    use secrecy::ExposeSecret as _;

    secret.expose_secret().is_empty()
}

fn wanted_method(metadata: &AuthorizationMetadata) -> Result<&'static str, AuthorizationError> {
    let Some(offered) = metadata.additional_fields.get(METHODS_FIELD).and_then(Value::as_array) else {
        return Ok(METHODS[0]);
    };
    METHODS
        .into_iter()
        .find(|method| offered.iter().any(|offered| offered.as_str() == Some(method)))
        .ok_or_else(|| failed("the authorization server takes no proof of a client that we can give"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(offered: Value) -> Option<&'static str> {
        let mut metadata = AuthorizationMetadata::default();
        if !offered.is_null() {
            metadata.additional_fields.insert(METHODS_FIELD.to_owned(), offered);
        }
        wanted_method(&metadata).ok()
    }

    #[test]
    fn the_proof_is_one_that_the_server_takes() {
        assert_eq!(method(Value::Null), Some("none"));
        assert_eq!(method(json!(["client_secret_basic", "none"])), Some("none"));
        assert_eq!(method(json!(["client_secret_basic"])), Some("client_secret_basic"));
        assert_eq!(method(json!(["client_secret_basic", "client_secret_post"])), Some("client_secret_post"));
        assert_eq!(method(json!(["private_key_jwt"])), None);
    }
}
