//! The proxy through which a confined command reaches listed hosts. It lives as long as the command.
//!
//! The command's own network has no way out but this. Each connection is judged by the host that was parsed, and goes
//! to the very address that was checked, so that a second answer of the name service changes nothing.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use qoder_types::hosts::is_public;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use url::Host;

use super::hosts::{HostRules, Verdict};
use super::proxy_request::{LONGEST_HEAD, Refusal, Request, RequestKind, parse, refuse};

/// How names become addresses.
pub type Resolver = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The most connections of one command at a time.
pub(super) const MOST_CONNECTIONS: usize = 64;
/// How long a request may take to arrive, a name to be resolved and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(30);

/// The name service of this machine.
#[must_use]
pub fn system_resolver() -> Resolver {
    Arc::new(|host: String| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// What is behind a door.
#[derive(Clone)]
pub(crate) enum Behind {
    /// Our own proxy with these rules.
    Rules(HostRules, Resolver),
    /// A proxy of the person's own on this port of the machine.
    Relay(u16),
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rules(rules, _) => formatter.debug_tuple("Rules").field(rules).finish_non_exhaustive(),
            Self::Relay(port) => formatter.debug_tuple("Relay").field(port).finish(),
        }
    }
}

/// A running proxy; ends with all its connections when dropped.
#[derive(Debug)]
pub(crate) struct Proxy(JoinHandle<()>);

impl Proxy {
    /// Serves a listening socket. Must be called where tasks can be started.
    pub(crate) fn start(listener: std::net::TcpListener, behind: Behind) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        Ok(Self::of(tokio::spawn(serve(listener, behind))))
    }

    /// One that runs.
    pub(super) fn of(running: JoinHandle<()>) -> Self {
        Self(running)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(listener: TcpListener, behind: Behind) {
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= MOST_CONNECTIONS {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
                let behind = behind.clone();
                connections.spawn(async move {
                    // The command sees the end of its connection; nothing else waits for this.
                    let _ = attend(client, &behind).await;
                });
            }
            // Out of descriptors: wait for some to be given back.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

pub(super) async fn attend(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    behind: &Behind,
) -> io::Result<()> {
    match behind {
        Behind::Relay(port) => {
            let mut server = TcpStream::connect((IpAddr::from([127, 0, 0, 1]), *port)).await?;
            copy_bidirectional(&mut client, &mut server).await.map(drop)
        }
        Behind::Rules(rules, resolver) => {
            let read = timeout(PATIENCE, read_head(&mut client)).await?;
            let Some((head, rest)) = read? else { return Ok(()) };
            let connected = async {
                let request = parse(&head)?;
                let server = connect(&request, rules, resolver).await?;
                Ok((request, server))
            };
            match connected.await {
                Ok((request, server)) => carry(client, server, request, &rest).await,
                Err(refusal) => answer(&mut client, &refusal).await,
            }
        }
    }
}

/// The head and what came after it; `None` when the other side went away.
async fn read_head(client: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        let count = client.read(&mut buffer).await?;
        if count == 0 {
            return Ok(None);
        }
        // The end may lie across two reads.
        let from = bytes.len().saturating_sub(3);
        bytes.extend_from_slice(&buffer[..count]);
        let end = bytes[from..].windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(from + end + 4);
            return Ok(Some((bytes, rest)));
        }
        if bytes.len() > LONGEST_HEAD {
            return Err(io::Error::other("the head of the request is too long"));
        }
    }
}

/// Connects to a checked address of a host that the rules allow.
async fn connect(request: &Request, rules: &HostRules, resolver: &Resolver) -> Result<TcpStream, Refusal> {
    let host = &request.host;
    let closed = |reason: String| refuse("403 Forbidden", reason);
    let verdict = rules.verdict(host);
    if verdict == Verdict::Closed {
        return Err(closed(format!("{host} is not among the hosts that the sandbox allows")));
    }
    let addresses = match host {
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        Host::Domain(name) => match timeout(PATIENCE, resolver(name.clone())).await {
            Ok(Ok(addresses)) => addresses,
            Ok(Err(error)) => return Err(refuse("502 Bad Gateway", format!("{host}: {error}"))),
            Err(_) => {
                return Err(refuse("504 Gateway Timeout", format!("{host} could not be resolved in time")));
            }
        },
    };
    let fitting: Vec<IpAddr> =
        addresses.into_iter().filter(|address| verdict == Verdict::Named || is_public(*address)).collect();
    if fitting.is_empty() {
        return Err(closed(format!("{host} has no public address")));
    }
    let mut last = None;
    for address in fitting.into_iter().take(8) {
        match timeout(PATIENCE, TcpStream::connect(SocketAddr::new(address, request.port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = Some(error.to_string()),
            Err(_) => last = Some("no answer in time".to_owned()),
        }
    }
    Err(refuse("502 Bad Gateway", format!("{host}: {}", last.unwrap_or_default())))
}

async fn carry(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut server: TcpStream,
    request: Request,
    rest: &[u8],
) -> io::Result<()> {
    match request.kind {
        RequestKind::Tunnel => {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            server.write_all(rest).await?;
            copy_bidirectional(&mut client, &mut server).await.map(drop)
        }
        RequestKind::Forward { head, body } => {
            server.write_all(&head).await?;
            // Only the body that was announced: what follows it may be meant for another host.
            let known = usize::try_from(body).unwrap_or(usize::MAX).min(rest.len());
            server.write_all(&rest[..known]).await?;
            let (mut from_client, mut to_client) = tokio::io::split(client);
            let (mut from_server, mut to_server) = server.split();
            let missing = body - u64::try_from(known).unwrap_or(body);
            let sending = async {
                let mut body = (&mut from_client).take(missing);
                tokio::io::copy(&mut body, &mut to_server).await.map(drop)
            };
            let answering = async {
                tokio::io::copy(&mut from_server, &mut to_client).await?;
                to_client.shutdown().await
            };
            tokio::pin!(sending, answering);
            tokio::select! {
                answered = &mut answering => answered,
                sent = &mut sending => {
                    sent?;
                    answering.await
                }
            }
        }
    }
}

async fn answer(client: &mut (impl AsyncWrite + Unpin), refusal: &Refusal) -> io::Result<()> {
    let text = format!("The sandbox refused this connection: {}.\n", refusal.reason);
    let answer = format!(
        "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        refusal.status,
        text.len()
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}
