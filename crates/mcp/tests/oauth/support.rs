//! The guarded server as a child process, a browser that grants at once, and requests with or without a token.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use qoder_mcp::authorization::{Authorizer, Begun, Callback};
use qoder_mcp::oauth::{ServerAuthorizer, Vault};
use qoder_mcp::peer::Challenge;
use qoder_types::server::OAuthConfig;
use reqwest::Client;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

/// Where hosts of these tests let browsers come back to.
pub const REDIRECT: &str = "http://localhost:3000/callback";

/// The guarded server.
pub struct Guarded {
    child: Child,
    pub base: String,
}

impl Guarded {
    /// Starts it with these options and waits until it listens.
    pub fn start(options: &[&str]) -> Self {
        let Some(folder) = std::env::var_os("QODER_TEST_MCP") else {
            panic!("QODER_TEST_MCP must name the folder with venv/; `cargo xtask test` makes it");
        };
        let python = PathBuf::from(folder).join("venv/bin/python");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/servers/oauth_server.py");
        let mut child =
            Command::new(python).arg(script).args(options).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Self { child, base: format!("http://127.0.0.1:{}", said["port"]) }
    }

    /// The address of the server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.base)
    }

    /// What was asked of the authorization server so far.
    pub async fn seen(&self) -> Value {
        let text = client().get(format!("{}/seen", self.base)).send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Makes every access token invalid.
    pub async fn expire(&self) {
        let answer = client().post(format!("{}/expire", self.base)).send().await.unwrap();
        assert!(answer.status().is_success());
    }

    /// Sends a request of the protocol; the status, and the challenge when it is refused.
    pub async fn ask(&self, token: Option<&SecretString>) -> Challenge {
        let hello = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                       "clientInfo": {"name": "test", "version": "1"}},
        });
        let mut request = client()
            .post(self.url())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(hello.to_string());
        if let Some(token) = token {
            request = request.bearer_auth(token.expose_secret());
        }
        let answer = request.send().await.unwrap();
        let header = answer.headers().get("www-authenticate");
        Challenge {
            status: answer.status().as_u16(),
            www_authenticate: header.map(|value| value.to_str().unwrap().to_owned()),
        }
    }

    /// An authorizer whose tokens are kept in `root`.
    pub fn authorizer(&self, root: &Path) -> ServerAuthorizer {
        ServerAuthorizer::new(&self.url(), &OAuthConfig::default(), Vault::in_file(root)).unwrap()
    }

    /// Goes through a whole authorization.
    pub async fn authorize(&self, authorizer: &ServerAuthorizer) {
        let challenge = self.ask(None).await;
        let (auth_url, _) =
            begun(authorizer.begin(Some(challenge), Some(REDIRECT.to_owned())).await.unwrap());
        let callback = browse(&auth_url).await;
        authorizer.finish(Callback::Url(callback)).await.unwrap();
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The URL and the state of an authorization that a person must grant.
pub fn begun(begun: Begun) -> (String, String) {
    match begun {
        Begun::Redirect { auth_url, state, .. } => (auth_url, state),
        Begun::Silent => panic!("there was a token already"),
    }
}

/// Where a browser is sent from this page.
pub async fn browse(url: &str) -> String {
    let answer = client().get(url).send().await.unwrap();
    let status = answer.status();
    let location = answer.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
    match location {
        Some(location) => location,
        None => panic!("{status}: {}", answer.text().await.unwrap()),
    }
}

/// Follows nothing by itself.
pub fn client() -> Client {
    // The first test of the process installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}
