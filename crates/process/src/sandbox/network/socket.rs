//! The proxy of a container: it listens on a socket that is mounted into the container, and what runs there reaches it on its
//! own loopback.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::hosts::HostRules;
use super::proxy::{Behind, MOST_CONNECTIONS, Proxy, attend, system_resolver};

/// How long to wait when there are no descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// A proxy with rules that listens on a socket; ends with all its connections when dropped.
#[derive(Debug)]
pub struct SocketProxy(#[expect(dead_code, reason = "held: it ends when it is dropped")] Proxy);

impl SocketProxy {
    /// Listens on a socket that is made here. Must be called where tasks can be started.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn start(socket: &Path, rules: HostRules) -> io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        let behind = Behind::Rules(rules, system_resolver());
        Ok(Self(Proxy::of(tokio::spawn(serve(listener, behind)))))
    }
}

async fn serve(listener: UnixListener, behind: Behind) {
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
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Passes what reaches a port on the loopback of this process to the socket, for as long as the process runs. Answers
/// with the variables that lead programs there.
///
/// # Errors
/// When there is no loopback.
pub fn loopback_to_socket(socket: &Path) -> io::Result<BTreeMap<String, String>> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let socket: Arc<Path> = socket.into();
    tokio::spawn(async move {
        loop {
            let Ok((mut client, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let socket = Arc::clone(&socket);
            tokio::spawn(async move {
                if let Ok(mut proxy) = UnixStream::connect(&*socket).await {
                    // The program sees the end of its connection.
                    let _ = copy_bidirectional(&mut client, &mut proxy).await;
                }
            });
        }
    });
    let address = format!("http://127.0.0.1:{port}");
    let mut variables = BTreeMap::new();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        variables.insert(name.to_owned(), address.clone());
    }
    for name in ["NO_PROXY", "no_proxy"] {
        variables.insert(name.to_owned(), "127.0.0.1,localhost".to_owned());
    }
    Ok(variables)
}
