//! The loopback address that a browser comes back to: takes requests one after the other until one has the right path
//! and state, answers it with a page that shows nothing of the request, and is gone.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::problem::failed;
use crate::authorization::AuthorizationError;

/// The path of the callback.
const PATH: &str = "/callback";
/// The longest head of a request.
const LONGEST_HEAD: usize = 32 * 1024;
/// How long a browser may take to send one, so that one that sends nothing does not block others.
const PATIENCE: Duration = Duration::from_secs(5);

const GRANTED: &str = "Access was granted. You can close this page and go back to the program.";
const NOT_GRANTED: &str = "Access was not granted. You can close this page and go back to the program.";

/// A bound address.
pub(super) struct Listener {
    socket: TcpListener,
    redirect_uri: String,
}

impl Listener {
    /// Binds to a port of this machine; any free one when `port` is `None`.
    pub(super) async fn bind(port: Option<u16>) -> Result<Self, AuthorizationError> {
        let bound = async {
            let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
            let port = socket.local_addr()?.port();
            Ok::<_, std::io::Error>((socket, port))
        };
        let (socket, found) = bound.await.map_err(|error| {
            let wanted = port.map_or_else(|| "a port".to_owned(), |port| format!("port {port}"));
            failed(&format!("{wanted} of this machine cannot be listened on for the callback: {error}"))
        })?;
        // A registration that fixes the port was made by a person, who writes the name.
        let host = if port.is_some() { "localhost" } else { "127.0.0.1" };
        Ok(Self { socket, redirect_uri: format!("http://{host}:{found}{PATH}") })
    }

    /// Where browsers are sent.
    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The URL of the first request with the right path and state.
    pub(super) async fn callback(self, state: &str) -> Result<String, AuthorizationError> {
        loop {
            let (stream, _) = self
                .socket
                .accept()
                .await
                .map_err(|error| failed(&format!("the callback cannot be received: {error}")))?;
            // Whatever goes wrong with this one, the right one may still come.
            if let Ok(Some(url)) = tokio::time::timeout(PATIENCE, self.serve(stream, state)).await {
                return Ok(url);
            }
        }
    }

    async fn serve(&self, mut stream: TcpStream, state: &str) -> Option<String> {
        let head = read_head(&mut stream).await?;
        let url = self.requested(&head);
        let right = url.as_ref().filter(|url| url.path() == PATH && has_state(url, state));
        let (status, page) = match right {
            Some(url) if url.query_pairs().any(|(name, _)| name == "error") => ("200 OK", NOT_GRANTED),
            Some(_) => ("200 OK", GRANTED),
            None => ("404 Not Found", "There is nothing here."),
        };
        let body = format!("<!doctype html><meta charset=\"utf-8\"><title>qodercli</title><p>{page}</p>\n");
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let right = right.map(Url::to_string);
        // A browser that is gone has still brought the callback.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        right
    }

    fn requested(&self, head: &str) -> Option<Url> {
        let mut words = head.lines().next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        if method != "GET" || !target.starts_with('/') {
            return None;
        }
        // Not joined: a target such as `//elsewhere/callback` would name another host.
        let base = self.redirect_uri.strip_suffix(PATH)?;
        Url::parse(&format!("{base}{target}")).ok()
    }
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut piece).await.ok()?;
        if count == 0 || head.len() + count > LONGEST_HEAD {
            return None;
        }
        head.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(head).ok()
}

fn has_state(url: &Url, state: &str) -> bool {
    let mut states = url.query_pairs().filter(|(name, _)| name == "state");
    states.next().is_some_and(|(_, value)| value == state) && states.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(address: &str, target: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_the_right_path_and_state_end_it() {
        let listener = Listener::bind(None).await.unwrap();
        let address = Url::parse(listener.redirect_uri()).unwrap().authority().to_owned();
        let waiting = tokio::spawn(async move { listener.callback("right").await });
        for target in ["/", "/callback", "/callback?state=wrong&code=c", "//h/callback?state=right&code=c"] {
            assert!(ask(&address, target).await.starts_with("HTTP/1.1 404"), "{target}");
        }
        let answer = ask(&address, "/callback?state=right&code=secret-code").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(!answer.contains("secret-code"), "{answer}");
        let url = waiting.await.unwrap().unwrap();
        assert!(url.ends_with("/callback?state=right&code=secret-code"), "{url}");
        assert!(TcpStream::connect(&address).await.is_err());
    }

    #[tokio::test]
    async fn a_taken_port_is_a_clear_error() {
        let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = Listener::bind(Some(port)).await.err().unwrap();
        assert!(error.to_string().contains(&port.to_string()), "{error}");
    }
}
