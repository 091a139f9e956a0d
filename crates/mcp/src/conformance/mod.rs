//! One conversation with a server, for the public conformance suite of the protocol: connects as a session would, grants
//! itself access where a person would, lists, calls and reads everything once. Which scenario it serves is not looked at.

mod person;
mod samples;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::authorization::{Authorizer, Begun, Callback};
use crate::oauth::{ClientIdentity, ServerAuthorizer, Vault};
use crate::peer::Challenge;
use crate::remote::{Lifecycle, PeerContext, peer};
use crate::{ListedTool, McpPeer, PeerError, ToolCall};
use qoder_types::server::{NamedServer, OAuthConfig, Scope, ServerConfig, Transport};

use person::Person;

/// Where the suite lets browsers come back to.
const REDIRECT_URI: &str = "http://localhost:3000/callback";
/// The document that the suite knows us by.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// The first revision without `initialize`.
const WITHOUT_INITIALIZE: &str = "2026-07-28";
/// A server that is never content is left alone.
const MOST_AUTHORIZATIONS: usize = 3;
/// Resources and prompts that are read.
const MOST_READ: usize = 50;

/// What the suite says about a scenario.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    #[serde(default, rename = "client_id")]
    client_id: Option<String>,
    #[serde(default, rename = "client_secret")]
    client_secret: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallOfContext>>,
}

#[derive(Debug, Deserialize)]
struct CallOfContext {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// A conversation under way.
struct Conversation {
    peer: Arc<dyn McpPeer>,
    authorizer: ServerAuthorizer,
    person: Person,
    authorizations: usize,
}

/// What went wrong in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConformanceError(String);

/// Has a conversation with the server at `server_url`; `Ok` when it connected and listed its tools. Tokens are kept in
/// `config_root`.
pub async fn run(
    server_url: &str,
    environment: &BTreeMap<String, String>,
    config_root: PathBuf,
) -> Result<(), ConformanceError> {
    let context: Context = match environment.get("MCP_CONFORMANCE_CONTEXT") {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| ConformanceError(format!("MCP_CONFORMANCE_CONTEXT is not readable: {error}")))?,
        None => Context::default(),
    };
    let version = environment.get("MCP_CONFORMANCE_PROTOCOL_VERSION").filter(|text| !text.is_empty());
    let mut conversation =
        Conversation::new(server_url, version, &context, config_root).map_err(ConformanceError)?;
    let spoken = conversation.speak(&context).await;
    conversation.peer.close().await;
    spoken.map_err(|error| ConformanceError(error.to_string()))
}

impl Conversation {
    fn new(
        server_url: &str,
        version: Option<&String>,
        context: &Context,
        config_root: PathBuf,
    ) -> Result<Self, String> {
        let oauth = OAuthConfig {
            client_id: context.client_id.clone(),
            client_secret: context.client_secret.clone(),
            ..OAuthConfig::default()
        };
        let identity =
            ClientIdentity { metadata_url: Some(CLIENT_METADATA.to_owned()), ..ClientIdentity::default() };
        let authorizer = ServerAuthorizer::new(server_url, &oauth, Vault::in_file(&config_root))
            .map_err(|error| error.to_string())?
            .with_identity(identity);
        let person = Person::new(server_url)?;
        let mut place = PeerContext::new(config_root, Arc::new(person.clone()));
        place.authorizer = Some(Arc::new(authorizer.clone()));
        match version {
            Some(version) if version.as_str() >= WITHOUT_INITIALIZE => place.lifecycle = Lifecycle::Discover,
            other => place.protocol_version = other.cloned(),
        }
        let server = NamedServer {
            name: "conformance".to_owned(),
            config: described(server_url, oauth),
            scope: Scope::Flag,
        };
        Ok(Self { peer: peer(&server, &place), authorizer, person, authorizations: 0 })
    }

    async fn speak(&mut self, context: &Context) -> Result<(), PeerError> {
        let greeting = loop {
            match self.peer.connect(Arc::new(|_| {})).await {
                Ok(greeting) => break greeting,
                Err(error) => self.authorize(error).await?,
            }
        };
        for (name, arguments) in calls(context, &greeting.tools) {
            if let Err(error) = self.call(&name, arguments).await {
                report(&format!("{name}: {error}"));
            }
        }
        if greeting.capabilities.get("resources").is_some() {
            self.read(
                "resources/list",
                "resources",
                "resources/read",
                |resource| json!({"uri": resource.get("uri")}),
            )
            .await;
        }
        if greeting.capabilities.get("prompts").is_some() {
            self.read(
                "prompts/list",
                "prompts",
                "prompts/get",
                |prompt| json!({"name": prompt.get("name"), "arguments": samples::prompt_arguments(prompt)}),
            )
            .await;
        }
        Ok(())
    }

    async fn call(&mut self, name: &str, arguments: Value) -> Result<(), PeerError> {
        loop {
            let never = std::future::pending().boxed().shared();
            match self.peer.call(ToolCall::new(name, arguments.clone(), never)).await {
                Ok(_) => return Ok(()),
                Err(error) => self.authorize(error).await?,
            }
        }
    }

    async fn request(&mut self, method: &'static str, params: Value) -> Result<Value, PeerError> {
        loop {
            match self.peer.request(method, params.clone()).await {
                Ok(result) => return Ok(result),
                Err(error) => self.authorize(error).await?,
            }
        }
    }

    /// Lists things and asks for each of them.
    async fn read(
        &mut self,
        list: &'static str,
        field: &str,
        one: &'static str,
        params: impl Fn(&Value) -> Value,
    ) {
        let listed = match self.request(list, json!({})).await {
            Ok(listed) => listed,
            Err(error) => return report(&format!("{list}: {error}")),
        };
        let items = listed.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
        for item in items.iter().take(MOST_READ) {
            if let Err(error) = self.request(one, params(item)).await {
                report(&format!("{one}: {error}"));
            }
        }
    }

    /// Gets credentials when that is what `error` asks for; otherwise it stays an error.
    async fn authorize(&mut self, error: PeerError) -> Result<(), PeerError> {
        let PeerError::NeedsAuth(challenge) = error else { return Err(error) };
        if self.authorizations >= MOST_AUTHORIZATIONS {
            return Err(PeerError::NeedsAuth(challenge));
        }
        self.authorizations += 1;
        self.log_in(challenge).await.map_err(PeerError::Failed)
    }

    async fn log_in(&self, challenge: Challenge) -> Result<(), String> {
        let begun = self.authorizer.begin(Some(challenge), Some(REDIRECT_URI.to_owned())).await;
        match begun.map_err(|error| error.to_string())? {
            Begun::Silent => Ok(()),
            Begun::Redirect { auth_url, .. } => {
                let callback = self.person.authorize(&auth_url).await?;
                self.authorizer.finish(Callback::Url(callback)).await.map_err(|error| error.to_string())
            }
        }
    }
}

/// The calls of the context, else one of each tool.
fn calls(context: &Context, tools: &[ListedTool]) -> Vec<(String, Value)> {
    match &context.tool_calls {
        Some(calls) => {
            calls.iter().map(|call| (call.name.clone(), Value::Object(call.arguments.clone()))).collect()
        }
        None => tools.iter().map(|tool| (tool.name.clone(), samples::arguments(tool, tools))).collect(),
    }
}

fn described(url: &str, oauth: OAuthConfig) -> ServerConfig {
    let transport = Transport::Http { url: url.to_owned(), headers: BTreeMap::new() };
    ServerConfig { oauth, ..ServerConfig::new(transport, Value::Null) }
}

/// Prints what went wrong on stderr; a server's words are not obeyed by a terminal.
fn report(text: &str) {
    eprintln!("{}", qoder_types::display::escaped_for_display(text));
}
