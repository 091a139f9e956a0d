//! The servers of a session against peers that follow a test's orders: connect, fail, hang, drop, want credentials.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;

use secrecy::SecretString;

use super::*;
use crate::authorization::{AuthorizationError, Begun, Callback, OAuthToken};
use crate::peer::Challenge;
use crate::questions::{Elicitation, ElicitationAnswer, OAuthAnswer, OAuthQuestion};
use crate::{ListedTool, PeerEvents};
use qoder_types::server::{OAuthConfig, ServerConfig};

mod lost_connections;

/// What a peer does when it is asked to connect.
#[derive(Clone)]
enum Does {
    Connect,
    Fail(&'static str),
    Hang,
    WantToken,
}

/// A peer that follows a script; the last step repeats.
struct Scripted {
    steps: Vec<Does>,
    connects: AtomicUsize,
    events: Mutex<Option<PeerEvents>>,
    tools: Mutex<Vec<&'static str>>,
    has_token: Arc<Mutex<bool>>,
    calls: AtomicUsize,
    closed: AtomicUsize,
}

impl Scripted {
    fn new(steps: &[Does]) -> Arc<Self> {
        Arc::new(Self {
            steps: steps.to_vec(),
            connects: AtomicUsize::new(0),
            events: Mutex::default(),
            tools: Mutex::new(vec!["find"]),
            has_token: Arc::default(),
            calls: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
        })
    }

    fn listed(&self) -> Vec<ListedTool> {
        let tool = |name: &&str| ListedTool {
            name: (*name).to_owned(),
            description: Some("finds".to_owned()),
            input_schema: json!({ "type": "object" }),
            annotations: Some(json!({ "readOnlyHint": true, "title": "T", "idempotentHint": true })),
            meta: None,
        };
        self.tools.lock().unwrap().iter().map(tool).collect()
    }

    fn report(&self, event: PeerEvent) {
        let events = self.events.lock().unwrap().clone().unwrap();
        events(event);
    }

    fn refusal() -> PeerError {
        PeerError::NeedsAuth(Challenge { status: 401, www_authenticate: None })
    }
}

impl McpPeer for Scripted {
    fn connect(&self, events: PeerEvents) -> BoxFuture<'static, Result<Greeting, PeerError>> {
        *self.events.lock().unwrap() = Some(events);
        let number = self.connects.fetch_add(1, Ordering::Relaxed).min(self.steps.len() - 1);
        let greeting = Greeting {
            server_info: Some(json!({ "name": "kb", "version": "1", "icons": [] })),
            tools: self.listed(),
            ..Greeting::default()
        };
        match self.steps[number] {
            Does::Connect => std::future::ready(Ok(greeting)).boxed(),
            Does::Fail(problem) => std::future::ready(Err(PeerError::Failed(problem.to_owned()))).boxed(),
            Does::Hang => std::future::pending().boxed(),
            Does::WantToken if *self.has_token.lock().unwrap() => std::future::ready(Ok(greeting)).boxed(),
            Does::WantToken => std::future::ready(Err(Self::refusal())).boxed(),
        }
    }

    fn list_tools(&self) -> BoxFuture<'static, Result<Vec<ListedTool>, PeerError>> {
        std::future::ready(Ok(self.listed())).boxed()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<CallToolResult, PeerError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if matches!(self.steps.last(), Some(Does::WantToken)) && !*self.has_token.lock().unwrap() {
            return std::future::ready(Err(Self::refusal())).boxed();
        }
        if call.tool == "drop" {
            return std::future::ready(Err(PeerError::Closed("reset".to_owned()))).boxed();
        }
        if call.tool == "gone" && self.connects.load(Ordering::Relaxed) == 1 {
            return std::future::ready(Err(PeerError::NotConnected("exited with 1".to_owned()))).boxed();
        }
        let content = vec![json!({ "type": "text", "text": "found" })];
        std::future::ready(Ok(CallToolResult { content, ..CallToolResult::default() })).boxed()
    }

    fn request(&self, _: &'static str, _: Value) -> BoxFuture<'static, Result<Value, PeerError>> {
        std::future::ready(Ok(json!({}))).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.closed.fetch_add(1, Ordering::Relaxed);
        std::future::ready(()).boxed()
    }
}

/// Credentials that are there as soon as an authorization ends.
struct Credentials(Arc<Mutex<bool>>);

impl Authorizer for Credentials {
    fn token(&self) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizationError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn refused(
        &self,
        _: Option<SecretString>,
        _: Challenge,
    ) -> BoxFuture<'static, Result<bool, AuthorizationError>> {
        std::future::ready(Ok(false)).boxed()
    }

    fn begin(
        &self,
        _: Option<Challenge>,
        redirect_uri: Option<String>,
    ) -> BoxFuture<'static, Result<Begun, AuthorizationError>> {
        let auth_url = format!("https://auth.test/?to={}", redirect_uri.unwrap_or_default());
        std::future::ready(Ok(Begun::Redirect {
            auth_url,
            state: "s".to_owned(),
            scopes: vec!["read".to_owned()],
            resource_metadata_url: None,
            returned: None,
        }))
        .boxed()
    }

    fn finish(&self, callback: Callback) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        let foreign = match callback {
            Callback::Url(url) => !url.contains("state=s"),
            Callback::Code { state, .. } => state != "s",
        };
        if foreign {
            let problem = AuthorizationError::ForeignCallback("another state".to_owned());
            return std::future::ready(Err(problem)).boxed();
        }
        *self.0.lock().unwrap() = true;
        std::future::ready(Ok(())).boxed()
    }

    fn inject(&self, _: OAuthToken) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        *self.0.lock().unwrap() = true;
        std::future::ready(Ok(())).boxed()
    }

    fn clear(&self) -> BoxFuture<'static, Result<(), AuthorizationError>> {
        *self.0.lock().unwrap() = false;
        std::future::ready(Ok(())).boxed()
    }
}

/// A host that answers every question for credentials alike.
struct Asked(OAuthAnswer);

impl ServerQuestions for Asked {
    fn elicit(&self, _: Elicitation) -> BoxFuture<'static, ElicitationAnswer> {
        std::future::ready(ElicitationAnswer::cancel()).boxed()
    }

    fn roots(&self) -> Vec<std::path::PathBuf> {
        Vec::new()
    }

    fn can_authorize(&self) -> bool {
        true
    }

    fn authorize(&self, question: OAuthQuestion) -> BoxFuture<'static, OAuthAnswer> {
        assert_eq!(question.scopes, Some(vec!["read".to_owned()]));
        std::future::ready(self.0.clone()).boxed()
    }
}

fn named(name: &str, transport: Transport) -> NamedServer {
    let config = ServerConfig {
        shown: json!({ "type": transport.kind() }),
        transport,
        policies: Vec::new(),
        include_tools: None,
        exclude_tools: Vec::new(),
        sampling: false,
        timeout: None,
        enabled: true,
        oauth: OAuthConfig::default(),
    };
    NamedServer { name: name.to_owned(), config, scope: Scope::Flag }
}

fn stdio(name: &str) -> NamedServer {
    let env = BTreeMap::new();
    named(name, Transport::Stdio { command: "x".to_owned(), args: Vec::new(), env, cwd: None })
}

fn http(name: &str) -> NamedServer {
    named(name, Transport::Http { url: "https://kb.test/mcp".to_owned(), headers: BTreeMap::new() })
}

type Peers = Vec<(NamedServer, Arc<Scripted>)>;

/// Dropped servers are reached again after a moment.
fn servers_with(peers: Peers, questions: Arc<dyn ServerQuestions>) -> McpServers {
    let waits = Waits { first_pause: Duration::from_millis(1), ..Waits::starting_within(START_WAIT) };
    servers_waiting(peers, questions, waits)
}

fn servers_waiting(peers: Peers, questions: Arc<dyn ServerQuestions>, waits: Waits) -> McpServers {
    let ways: BTreeMap<String, Arc<Scripted>> =
        peers.iter().map(|(named, peer)| (named.name.clone(), Arc::clone(peer))).collect();
    let maker: ServerMaker = Arc::new(move |server| {
        let peer = ways.get(&server.name).cloned().ok_or("no way")?;
        let authorizer = server
            .config
            .transport
            .url()
            .map(|_| Arc::new(Credentials(Arc::clone(&peer.has_token))) as Arc<dyn Authorizer>);
        Ok(Made { peer, authorizer })
    });
    McpServers::waiting(peers.into_iter().map(|(named, _)| named).collect(), maker, questions, waits)
}

fn servers(peers: Peers) -> McpServers {
    servers_with(peers, Arc::new(NoAnswerer))
}

fn never() -> Cancelled {
    std::future::pending().boxed().shared()
}

/// Statuses as they are reported.
fn listen(servers: &McpServers) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&heard);
    servers.listen(Arc::new(move |rows| {
        let rows = rows.iter().map(|row| format!("{} {}", row["name"], row["status"]).replace('"', ""));
        list.lock().unwrap().extend(rows);
    }));
    heard
}

#[tokio::test]
async fn a_broken_server_harms_no_other_and_every_change_is_told() {
    let good = Scripted::new(&[Does::Connect]);
    let bad = Scripted::new(&[Does::Fail("no such program")]);
    let servers = servers(vec![(stdio("kb"), good), (stdio("bad"), bad)]);
    let heard = listen(&servers);
    assert_eq!(servers.rows()[0]["status"], "pending");
    servers.connect().await;
    assert_eq!(
        servers.rows(),
        [
            json!({ "name": "bad", "status": "failed", "config": { "type": "stdio" }, "scope": "dynamic",
                "error": "no such program" }),
            json!({ "name": "kb", "status": "connected", "config": { "type": "stdio" }, "scope": "dynamic",
                "serverInfo": { "name": "kb", "version": "1" },
                "tools": [{ "name": "find", "description": "finds", "annotations": { "readOnly": true } }] }),
        ]
    );
    let names: Vec<String> = servers.tools().iter().map(|tool| tool.definition().name.clone()).collect();
    assert_eq!(names, ["mcp__kb__find"]);
    let mut heard = heard.lock().unwrap().clone();
    heard.sort();
    assert_eq!(heard, ["bad connecting", "bad failed", "kb connected", "kb connecting"]);
}

#[tokio::test]
async fn dead_servers_hold_no_one_up_longer_than_the_bound() {
    let mut peers: Peers =
        (0..100).map(|number| (stdio(&format!("dead-{number}")), Scripted::new(&[Does::Hang]))).collect();
    peers.push((stdio("kb"), Scripted::new(&[Does::Connect])));
    let waits = Waits::starting_within(Duration::from_millis(500));
    let servers = servers_waiting(peers, Arc::new(NoAnswerer), waits);
    let begun = Instant::now();
    servers.start();
    servers.ready().await;
    assert!(begun.elapsed() >= waits.start);
    assert_eq!(servers.tools().len(), 1);
    assert_eq!(servers.rows()[0]["status"], "connecting");
}

#[tokio::test]
async fn a_server_that_does_not_answer_has_failed() {
    let waits = Waits { answer: Duration::from_secs(1), ..Waits::starting_within(START_WAIT) };
    let peers = vec![(stdio("dead"), Scripted::new(&[Does::Hang]))];
    let servers = servers_waiting(peers, Arc::new(NoAnswerer), waits);
    servers.connect().await;
    assert_eq!(servers.rows()[0]["status"], "failed");
    assert_eq!(servers.rows()[0]["error"], "no answer within 1 s");
}

#[tokio::test]
async fn a_server_can_be_switched_off_and_on() {
    let peer = Scripted::new(&[Does::Connect]);
    let servers = servers(vec![(stdio("kb"), Arc::clone(&peer))]);
    servers.connect().await;
    servers.toggle("kb", false).await.unwrap();
    assert!(servers.tools().is_empty());
    assert_eq!(
        (servers.rows()[0]["status"].as_str(), peer.closed.load(Ordering::Relaxed)),
        (Some("disabled"), 1)
    );
    servers.toggle("kb", true).await.unwrap();
    assert_eq!(servers.tools().len(), 1);
    let problem = servers.reconnect("other").await.unwrap_err().to_string();
    assert_eq!(problem, "there is no MCP server named `other`; known are: kb");
}

#[tokio::test]
async fn changed_tools_take_the_place_of_the_old_ones() {
    let peer = Scripted::new(&[Does::Connect]);
    let servers = servers(vec![(stdio("kb"), Arc::clone(&peer))]);
    servers.connect().await;
    *peer.tools.lock().unwrap() = vec!["with space", "find", "find"];
    peer.report(PeerEvent::ToolsChanged);
    servers.inner.until(|all| all["kb"].tools.len() == 2).await;
    let names: Vec<String> = servers.tools().iter().map(|tool| tool.definition().name.clone()).collect();
    assert_eq!(names, [tool_name("kb", "with space"), "mcp__kb__find".to_owned()]);
    assert_eq!(servers.rows()[0]["tools"][0]["name"], "with space");
    assert_eq!(servers.rows()[0]["error"], "a second tool \"find\" is left out");
    assert_eq!(servers.origin_of(&names[0]), Some(("kb".to_owned(), "with space".to_owned())));
}

#[tokio::test]
async fn only_wanted_tools_are_offered() {
    let peer = Scripted::new(&[Does::Connect]);
    *peer.tools.lock().unwrap() = vec!["a", "b", "c"];
    let mut server = stdio("kb");
    server.config.include_tools = Some(vec!["a".to_owned(), "b".to_owned()]);
    server.config.exclude_tools = vec!["b".to_owned()];
    let servers = servers(vec![(server, peer)]);
    servers.connect().await;
    assert_eq!(servers.rows()[0]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(servers.tools()[0].definition().name, "mcp__kb__a");
}

#[tokio::test]
async fn a_server_that_wants_credentials_waits_where_nobody_can_be_asked() {
    let peer = Scripted::new(&[Does::WantToken]);
    let servers = servers(vec![(http("kb"), peer)]);
    servers.connect().await;
    assert_eq!(servers.rows()[0]["status"], "needs-auth");
    let begun = servers.authenticate("kb", Some("app://back".to_owned())).await.unwrap();
    assert_eq!(begun.auth_url.as_deref(), Some("https://auth.test/?to=app://back"));
    assert!(begun.requires_user_action);
    let problem =
        servers.submit_callback("kb", "app://back?state=other".to_owned()).await.unwrap_err().to_string();
    assert!(problem.contains("another state"), "{problem}");
    servers.submit_callback("kb", "app://back?code=1&state=s".to_owned()).await.unwrap();
    assert_eq!(servers.rows()[0]["status"], "connected");
    servers.clear_credentials("kb").await.unwrap();
    let problem = servers.call("mcp__kb__find", json!({}), never()).await.unwrap_err().to_string();
    assert!(problem.contains("needs authentication"), "{problem}");
    assert_eq!(servers.rows()[0]["status"], "needs-auth");
    let token = OAuthToken {
        access_token: "t".to_owned(),
        token_type: None,
        refresh_token: None,
        expires_in: None,
        expires_at: None,
        scope: None,
    };
    servers.inject_token("kb", token).await.unwrap();
    servers.call("mcp__kb__find", json!({}), never()).await.unwrap();
}

#[tokio::test]
async fn a_host_that_brings_credentials_is_asked_and_a_refusal_is_final() {
    let code = OAuthAnswer::Code { code: "c".to_owned(), state: "s".to_owned() };
    let peer = Scripted::new(&[Does::WantToken]);
    let servers = servers_with(vec![(http("kb"), Arc::clone(&peer))], Arc::new(Asked(code)));
    let heard = listen(&servers);
    servers.start();
    servers.inner.done("kb").await.unwrap();
    assert_eq!(*heard.lock().unwrap(), ["kb connecting", "kb needs-auth", "kb connecting", "kb connected"]);
    // A refusal in the middle is asked about once, and the call is repeated.
    *peer.has_token.lock().unwrap() = false;
    servers.call("mcp__kb__find", json!({}), never()).await.unwrap();
    assert_eq!(peer.calls.load(Ordering::Relaxed), 2);

    let peer = Scripted::new(&[Does::WantToken]);
    let servers = servers_with(vec![(http("kb"), peer)], Arc::new(Asked(OAuthAnswer::Rejected)));
    servers.start();
    assert!(servers.inner.done("kb").await.is_err());
    assert_eq!(servers.rows()[0]["status"], "failed");
}

#[tokio::test]
async fn replacing_leaves_alone_what_stays() {
    let (kept, gone, new) = (
        Scripted::new(&[Does::Connect]),
        Scripted::new(&[Does::Connect]),
        Scripted::new(&[Does::Fail("broken")]),
    );
    let all =
        vec![(stdio("kept"), Arc::clone(&kept)), (stdio("gone"), Arc::clone(&gone)), (stdio("new"), new)];
    let servers = servers(all);
    servers.replace(vec![stdio("kept"), stdio("gone")], Vec::new()).await;
    let refused = RefusedServer {
        name: "odd".to_owned(),
        scope: Scope::Flag,
        shown: json!({ "type": "ws" }),
        reason: "the type `ws` is not supported".to_owned(),
        disabled: false,
    };
    let replaced = servers.replace(vec![stdio("kept"), stdio("new")], vec![refused]).await;
    assert_eq!(
        serde_json::to_value(&replaced).unwrap(),
        json!({ "added": ["new", "odd"], "removed": ["gone"],
            "errors": { "new": "broken", "odd": "the type `ws` is not supported" } })
    );
    assert_eq!((kept.connects.load(Ordering::Relaxed), gone.closed.load(Ordering::Relaxed)), (1, 1));
    let statuses: Vec<Value> = servers.rows().iter().map(|row| row["status"].clone()).collect();
    assert_eq!(statuses, ["connected", "failed", "failed"]);
    assert_eq!(servers.reconnect("odd").await.unwrap_err().to_string(), "the type `ws` is not supported");
}

#[tokio::test]
async fn a_name_that_no_tool_could_carry_is_a_failed_row() {
    let servers = servers(vec![(stdio("a__b"), Scripted::new(&[Does::Connect]))]);
    servers.connect().await;
    assert_eq!(servers.rows()[0]["status"], "failed");
    assert!(servers.rows()[0]["error"].as_str().unwrap().contains("__"));
}
