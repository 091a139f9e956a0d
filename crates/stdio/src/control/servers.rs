//! The MCP servers of a program that started us, and the questions of servers that it answers: those that live in the
//! program, input of a person, and credentials.

use std::sync::Arc;

use futures::FutureExt;
use qoder_protocol::control::RuntimeRequest;
use qoder_runtime::callbacks::{OnElicitation, OnMcpOAuth, OwnServers};
use qoder_runtime::mcp::authorization::OAuthToken;
use qoder_runtime::mcp::questions::{Elicitation, ElicitationAnswer, OAuthAnswer, OAuthQuestion};
use qoder_runtime::mcp::{McpPeer, Tunnel, TunnelSend};
use serde_json::Value;

use super::channel::Channel;

/// Servers that live in the program.
pub fn own(channel: &Arc<Channel>) -> OwnServers {
    let channel = Arc::clone(channel);
    Arc::new(move |name| Some(server(&channel, name)))
}

fn server(channel: &Arc<Channel>, name: &str) -> Arc<dyn McpPeer> {
    let (channel, name) = (Arc::clone(channel), name.to_owned());
    let send: TunnelSend = Arc::new(move |message| {
        let asked = channel.request(RuntimeRequest::McpMessage { server_name: name.clone(), message });
        async move {
            let mut answer = asked.await?;
            match answer.get_mut("mcp_response") {
                Some(response) => Ok(response.take()),
                None => Err("the answer has no `mcp_response`".to_owned()),
            }
        }
        .boxed()
    });
    Arc::new(Tunnel::new(send))
}

/// Puts questions of servers to the program.
pub fn elicitation(channel: &Arc<Channel>) -> OnElicitation {
    let channel = Arc::clone(channel);
    Arc::new(move |question: Elicitation| {
        let asked = channel.request(RuntimeRequest::Elicitation {
            server_name: question.server_name,
            message: question.message,
            mode: question.mode,
            elicitation_id: question.elicitation_id,
            requested_schema: question.requested_schema,
            title: question.title,
            display_name: question.display_name,
        });
        async move {
            let answer = asked.await?;
            if answer.is_null() {
                return Ok(ElicitationAnswer::cancel());
            }
            serde_json::from_value(answer).map_err(|error| format!("the answer cannot be read: {error}"))
        }
        .boxed()
    })
}

/// Asks the program for credentials of servers.
pub fn credentials(channel: &Arc<Channel>) -> OnMcpOAuth {
    let channel = Arc::clone(channel);
    Arc::new(move |question: OAuthQuestion| {
        let asked = channel.request(RuntimeRequest::McpOauthRequired {
            server_name: question.server_name,
            server_url: question.server_url,
            auth_url: question.auth_url,
            state: question.state,
            scopes: question.scopes,
            resource_metadata_url: question.resource_metadata_url,
        });
        async move { read_credentials(&asked.await?) }.boxed()
    })
}

/// One of the four documented answers.
fn read_credentials(answer: &Value) -> Result<OAuthAnswer, String> {
    let text = |key: &str| answer.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(token) = answer.get("token").filter(|token| !token.is_null()) {
        // The error must not repeat the value.
        let token: OAuthToken = serde_json::from_value(token.clone())
            .map_err(|_| "the token of the answer cannot be read".to_owned())?;
        return Ok(OAuthAnswer::Token(token));
    }
    if let Some(url) = text("callbackUrl") {
        return Ok(OAuthAnswer::CallbackUrl(url));
    }
    match (text("code"), text("state")) {
        (Some(code), Some(state)) => Ok(OAuthAnswer::Code { code, state }),
        (Some(_), None) | (None, Some(_) | None) => Ok(OAuthAnswer::Rejected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_four_answers_are_read() {
        let token = read_credentials(&json!({ "token": { "access_token": "t" } })).unwrap();
        assert!(matches!(token, OAuthAnswer::Token(token) if token.access_token == "t"));
        let url = read_credentials(&json!({ "callbackUrl": "http://localhost/?code=1" })).unwrap();
        assert_eq!(url, OAuthAnswer::CallbackUrl("http://localhost/?code=1".to_owned()));
        let code = read_credentials(&json!({ "code": "c", "state": "s" })).unwrap();
        assert_eq!(code, OAuthAnswer::Code { code: "c".to_owned(), state: "s".to_owned() });
        for refused in [json!(null), json!({}), json!({ "code": "c" }), json!([])] {
            assert_eq!(read_credentials(&refused).unwrap(), OAuthAnswer::Rejected);
        }
        let problem =
            read_credentials(&json!({ "token": { "access_token": 7, "secret": "xyz" } })).unwrap_err();
        assert!(!problem.contains("xyz"));
    }
}
