//! Short ways to describe a server, to connect to it, to answer its questions and to read what it said. The servers by
//! other authors are in the folder that `QODER_TEST_MCP` names.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::Cancelled;
use qoder_mcp::peer::CallProgress;
use qoder_mcp::questions::{Elicitation, ElicitationAnswer, OAuthAnswer, OAuthQuestion, ServerQuestions};
use qoder_mcp::remote::{PeerContext, peer};
use qoder_mcp::{CallToolResult, Greeting, McpPeer, PeerError, PeerEvent, ToolCall};
use qoder_types::server::{NamedServer, OAuthConfig, Scope, ServerConfig, Transport};
use serde_json::{Value, json};

/// Nothing here takes that long; a test that hangs shall fail.
const HANG: Duration = Duration::from_secs(120);

/// The folder with the servers that were installed for the tests.
pub fn installed() -> PathBuf {
    let folder = std::env::var_os("QODER_TEST_MCP").filter(|folder| !folder.is_empty());
    folder.map(PathBuf::from).expect(
        "QODER_TEST_MCP must name the folder with the MCP servers for tests (node_modules/ and venv/); \
         `cargo xtask test` installs them and sets it",
    )
}

/// A program of that folder.
pub fn program(path: &str) -> String {
    let program = installed().join(path);
    assert!(program.exists(), "{} is not installed", program.display());
    program.to_str().unwrap().to_owned()
}

/// The reference server that has everything.
pub fn everything() -> String {
    program("node_modules/.bin/mcp-server-everything")
}

/// Ends in time, or fails.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, work).await.expect("it hangs")
}

/// Waits until something is so.
pub async fn until(mut so: impl FnMut() -> bool) {
    soon(async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// A server described by how it is reached.
pub fn described(transport: Transport) -> NamedServer {
    NamedServer {
        name: "tested".to_owned(),
        config: ServerConfig {
            transport,
            policies: Vec::new(),
            include_tools: None,
            exclude_tools: Vec::new(),
            sampling: false,
            timeout: None,
            enabled: true,
            oauth: OAuthConfig::default(),
            shown: json!({}),
        },
        scope: Scope::Flag,
    }
}

/// A child process.
pub fn child(command: &str, arguments: &[&str]) -> NamedServer {
    described(Transport::Stdio {
        command: command.to_owned(),
        args: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
    })
}

/// Streamable HTTP.
pub fn http(url: &str) -> NamedServer {
    described(Transport::Http { url: url.to_owned(), headers: BTreeMap::new() })
}

/// Legacy events.
pub fn sse(url: &str) -> NamedServer {
    described(Transport::Sse { url: url.to_owned(), headers: BTreeMap::new() })
}

/// A person who always answers the same, and remembers what was asked.
#[derive(Default)]
pub struct Person {
    pub answer: Option<ElicitationAnswer>,
    pub roots: Vec<PathBuf>,
    pub asked: Mutex<Vec<Elicitation>>,
}

impl ServerQuestions for Person {
    fn elicit(&self, question: Elicitation) -> BoxFuture<'static, ElicitationAnswer> {
        self.asked.lock().unwrap().push(question);
        match &self.answer {
            Some(answer) => std::future::ready(answer.clone()).boxed(),
            None => std::future::pending().boxed(),
        }
    }

    fn roots(&self) -> Vec<PathBuf> {
        self.roots.clone()
    }

    fn can_authorize(&self) -> bool {
        false
    }

    fn authorize(&self, _: OAuthQuestion) -> BoxFuture<'static, OAuthAnswer> {
        std::future::ready(OAuthAnswer::Rejected).boxed()
    }
}

/// A context with the test's own environment.
pub fn context(person: Arc<Person>) -> PeerContext {
    let mut context = PeerContext::new(std::env::temp_dir(), person);
    context.environment = Arc::new(std::env::vars().collect());
    context
}

/// A peer with everything that it reported.
pub struct Tested {
    pub peer: Arc<dyn McpPeer>,
    pub heard: Arc<Mutex<Vec<PeerEvent>>>,
}

impl Tested {
    pub fn new(server: &NamedServer, context: &PeerContext) -> Self {
        Self { peer: peer(server, context), heard: Arc::default() }
    }

    pub fn plain(server: &NamedServer) -> Self {
        Self::new(server, &context(Arc::default()))
    }

    pub async fn connect(&self) -> Result<Greeting, PeerError> {
        let heard = Arc::clone(&self.heard);
        soon(self.peer.connect(Arc::new(move |event| heard.lock().unwrap().push(event)))).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, PeerError> {
        soon(self.peer.call(ToolCall::new(tool, arguments, never()))).await
    }

    /// The text of the first block of a call that works.
    pub async fn said(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.unwrap();
        result.content[0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result:?}")).to_owned()
    }

    pub fn heard(&self, wanted: impl Fn(&PeerEvent) -> bool) -> bool {
        self.heard.lock().unwrap().iter().any(wanted)
    }

    /// Why the connection ended by itself.
    pub async fn closed(&self) -> String {
        until(|| self.heard(|event| matches!(event, PeerEvent::Closed(_)))).await;
        let heard = self.heard.lock().unwrap();
        let mut reasons = heard.iter().filter_map(|event| match event {
            PeerEvent::Closed(reason) => Some(reason.clone()),
            _ => None,
        });
        reasons.next().unwrap()
    }

    pub async fn close(&self) {
        soon(self.peer.close()).await;
    }
}

/// A call with its progress.
pub fn watched(
    tool: &str,
    arguments: Value,
    cancelled: Cancelled,
) -> (ToolCall, Arc<Mutex<Vec<CallProgress>>>) {
    let seen: Arc<Mutex<Vec<CallProgress>>> = Arc::default();
    let sink = Arc::clone(&seen);
    let mut call = ToolCall::new(tool, arguments, cancelled);
    call.progress = Arc::new(move |progress| sink.lock().unwrap().push(progress));
    (call, seen)
}

pub fn never() -> Cancelled {
    std::future::pending().boxed().shared()
}

/// A server of the tests' own that listens on a port; ends with the test.
pub struct Listening {
    child: Child,
    pub port: u16,
}

impl Listening {
    /// Starts a program that listens on the port in `PORT`, and waits for it.
    pub async fn start(program: &str, arguments: &[&str]) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = Command::new(program)
            .args(arguments)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let listening = Self { child, port };
        soon(async {
            while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        listening
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
