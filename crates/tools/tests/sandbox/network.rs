//! Network by a list: a confined command reaches listed hosts through the proxy and nothing else.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::sandboxed::Sandboxed;
use qoder_process::sandbox::Resolver;

/// A server that answers every request and counts them.
struct Server {
    port: u16,
    reached: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let reached = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reached);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                count.fetch_add(1, Ordering::SeqCst);
                let mut head = [0_u8; 4096];
                let length = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let body = head.lines().next().unwrap_or_default().to_owned();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { port, reached }
    }

    fn reached(&self) -> usize {
        self.reached.load(Ordering::SeqCst)
    }
}

/// Every name is this machine.
fn resolver() -> Resolver {
    Arc::new(|_| Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }))
}

/// Speaks to the proxy with nothing but bash. The first word of the answer's second field is its status.
fn ask(request: &str) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/3128 && printf '{request}' >&3 && cat <&3")
}

fn sandboxed(allowed: &[&str], denied: &[&str]) -> Option<Sandboxed> {
    let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let mut sandboxed = Sandboxed::with(|settings| {
        settings.network.allowed_domains = own(allowed);
        settings.network.denied_domains = own(denied);
    })?;
    sandboxed.resolve(resolver());
    Some(sandboxed)
}

#[tokio::test]
async fn listed_hosts_are_reached_plainly_and_by_tunnel() {
    let Some(sandboxed) = sandboxed(&["listed.example"], &[]) else { return };
    let server = Server::start();
    let port = server.port;
    let plain = ask(&format!("GET http://listed.example:{port}/path HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"));
    assert!(sandboxed.succeed(&plain).await.ends_with("GET /path HTTP/1.1"));
    let tunnel =
        ask(&format!("CONNECT listed.example:{port} HTTP/1.1\\r\\n\\r\\nGET /inside HTTP/1.1\\r\\n\\r\\n"));
    let answer = sandboxed.succeed(&tunnel).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 Connection established") && answer.ends_with("GET /inside HTTP/1.1")
    );
    assert_eq!(server.reached(), 2);
    if sandboxed.run("curl --version").await.structured["exitCode"] == 0 {
        let url = format!("curl -sS http://listed.example:{port}/curl");
        assert_eq!(sandboxed.succeed(&url).await, "GET /curl HTTP/1.1");
    } else {
        eprintln!("SKIPPED in part: no curl");
    }
}

#[tokio::test]
async fn everything_else_is_closed() {
    let Some(sandboxed) = sandboxed(&["*.example", "*"], &["denied.example"]) else { return };
    let server = Server::start();
    let port = server.port;
    for host in ["denied.example", "other.example", "127.0.0.1", "localhost", "DENIED.example."] {
        for request in [
            format!("GET http://{host}:{port}/ HTTP/1.1\\r\\n\\r\\n"),
            format!("CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n"),
        ] {
            let answer = sandboxed.succeed(&ask(&request)).await;
            assert!(
                answer.starts_with("HTTP/1.1 403") && answer.contains("The sandbox refused"),
                "{host}: {answer}"
            );
        }
    }
    sandboxed.fail(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
    assert_eq!(server.reached(), 0, "a name that leads to this machine is not a public host");
}

#[tokio::test]
async fn a_second_request_on_the_connection_goes_nowhere() {
    let Some(sandboxed) = sandboxed(&["listed.example"], &[]) else { return };
    let server = Server::start();
    let port = server.port;
    let first = format!("GET http://listed.example:{port}/one HTTP/1.1\\r\\n\\r\\n");
    let second = format!("GET http://other.example:{port}/two HTTP/1.1\\r\\n\\r\\n");
    // Both in one piece: a client that still writes the second when the first is answered ends by a broken pipe.
    let both = format!(
        "printf '{first}{second}' >both && exec 3<>/dev/tcp/127.0.0.1/3128 && cat both >&3 && cat <&3"
    );
    let answer = sandboxed.succeed(&both).await;
    assert!(answer.ends_with("GET /one HTTP/1.1") && !answer.contains("two"), "{answer}");
    assert_eq!(server.reached(), 1);
}

#[tokio::test]
async fn commands_are_told_of_the_proxy() {
    let Some(sandboxed) = sandboxed(&["listed.example"], &[]) else { return };
    let shown =
        sandboxed.succeed("echo $HTTP_PROXY $https_proxy $ALL_PROXY [$NO_PROXY$no_proxy] $SANDBOX").await;
    let door = "http://127.0.0.1:3128";
    assert_eq!(shown, format!("{door} {door} {door} [] qodercli\n"));
}

#[tokio::test]
async fn a_proxy_of_the_persons_own_takes_over() {
    let Some(mut sandboxed) = Sandboxed::new() else { return };
    let server = Server::start();
    sandboxed.change(|settings, _| settings.network.http_proxy_port = Some(server.port));
    let answer = sandboxed.succeed(&ask("GET http://anything.example/ HTTP/1.1\\r\\n\\r\\n")).await;
    assert!(answer.ends_with("GET http://anything.example/ HTTP/1.1"), "{answer}");
    assert_eq!(server.reached(), 1);
}

#[tokio::test]
async fn servers_listen_only_for_themselves() {
    let Some(sandboxed) = Sandboxed::with(|settings| settings.network.allow_local_binding = true) else {
        return;
    };
    if sandboxed.run("python3 -c pass").await.structured["exitCode"] != 0 {
        eprintln!("SKIPPED: no python3");
        return;
    }
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    outside.set_nonblocking(true).unwrap();
    let port = outside.local_addr().unwrap().port();
    let code = format!(
        "import socket as s\nl = s.create_server(('127.0.0.1', {port}))\nc = s.create_connection(('127.0.0.1', {port}))\n\
         l.accept()[0].sendall(b'own')\nprint(c.recv(3).decode())"
    );
    assert_eq!(
        sandboxed.succeed(&format!("python3 -c \"{code}\"")).await,
        "own\n",
        "the same port, another network"
    );
    assert!(outside.accept().is_err());
}
