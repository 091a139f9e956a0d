//! Reading what a confined command asks of the proxy: a tunnel, or one plain HTTP request in absolute form.
//!
//! Strict on purpose: what is not exactly understood is refused, so that the host that was judged is the host that is
//! reached.

use url::{Host, Url};

use super::hosts::parse_host;

/// The longest head of a request.
pub(crate) const LONGEST_HEAD: usize = 32 * 1024;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The host to reach.
    pub(crate) host: Host,
    /// Its port.
    pub(crate) port: u16,
    /// What to do there.
    pub(crate) kind: RequestKind,
}

/// What to do with the connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Carry bytes both ways.
    Tunnel,
    /// Send this head, then so many bytes of the body; carry the answer back.
    Forward {
        /// The head to send.
        head: Vec<u8>,
        /// The length of the body.
        body: u64,
    },
}

/// Why a request is not carried out, with the status to answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: &'static str,
    /// The reason, for the model.
    pub(crate) reason: String,
}

pub(crate) fn refuse(status: &'static str, reason: impl Into<String>) -> Refusal {
    Refusal { status, reason: reason.into() }
}

/// Reads a complete head.
pub(crate) fn parse(head: &[u8]) -> Result<Request, Refusal> {
    let bad = |reason: &str| refuse("400 Bad Request", reason);
    let text = std::str::from_utf8(head).map_err(|_| bad("the request is not text"))?;
    let text = text.strip_suffix("\r\n\r\n").ok_or_else(|| bad("the request is not complete"))?;
    if text.chars().any(|letter| letter == '\0') || text.replace("\r\n", "").contains(['\r', '\n']) {
        return Err(bad("the request holds control characters"));
    }
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = words[..] else { return Err(bad("the first line is not a request")) };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(bad("the version is not HTTP/1.1"));
    }
    if method == "CONNECT" {
        let (host, port) = target.rsplit_once(':').ok_or_else(|| bad("CONNECT needs host:port"))?;
        let port = port.parse().map_err(|_| bad("the port is not a number"))?;
        let host = parse_host(host).ok_or_else(|| bad("the host is not one"))?;
        return Ok(Request { host, port, kind: RequestKind::Tunnel });
    }
    forward(method, target, lines)
}

fn forward<'a>(method: &str, target: &str, lines: impl Iterator<Item = &'a str>) -> Result<Request, Refusal> {
    let bad = |reason: &str| refuse("400 Bad Request", reason);
    let url = Url::parse(target).map_err(|_| bad("the proxy takes absolute URLs and CONNECT"))?;
    if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
        return Err(bad("the proxy forwards http URLs without credentials"));
    }
    let host = url.host_str().and_then(parse_host).ok_or_else(|| bad("the URL has no host"))?;
    let port = url.port().unwrap_or(80);
    let mut path = url.path().to_owned();
    if let Some(query) = url.query() {
        path = format!("{path}?{query}");
    }
    let authority = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_string(),
    };
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    let mut body = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        if name.is_empty() || name.contains([' ', '\t']) {
            return Err(bad("a header has a name that is not one"));
        }
        match name.to_ascii_lowercase().as_str() {
            "transfer-encoding" => {
                return Err(refuse("411 Length Required", "the proxy needs a Content-Length"));
            }
            "content-length" => {
                let length: u64 = value.trim().parse().map_err(|_| bad("the length is not a number"))?;
                if body.replace(length).is_some() {
                    return Err(bad("the length is given twice"));
                }
                head.push_str(&format!("Content-Length: {length}\r\n"));
            }
            // They concern the way to us, or say again where to go.
            "host" | "connection" | "keep-alive" | "upgrade" | "te" | "trailer" => {}
            proxy if proxy.starts_with("proxy-") => {}
            _ => {
                head.push_str(line);
                head.push_str("\r\n");
            }
        }
    }
    head.push_str("\r\n");
    let kind = RequestKind::Forward { head: head.into_bytes(), body: body.unwrap_or(0) };
    Ok(Request { host, port, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_and_plain_requests_are_read() {
        let request = parse(b"CONNECT Example.org:443 HTTP/1.1\r\nHost: other\r\n\r\n").unwrap();
        assert_eq!((request.host.to_string().as_str(), request.port), ("example.org", 443));
        assert_eq!(request.kind, RequestKind::Tunnel);
        let request = parse(
            b"GET http://example.org:8080/a?b#c HTTP/1.1\r\nHost: denied.org\r\nProxy-Authorization: x\r\nAccept: */*\r\n\r\n",
        )
        .unwrap();
        let RequestKind::Forward { head, body } = request.kind else { panic!("not forwarded") };
        assert_eq!((request.port, body), (8080, 0));
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "GET /a?b HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
    }

    #[test]
    fn what_is_not_exactly_understood_is_refused() {
        let cases: [&[u8]; 12] = [
            b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
            b"GET https://example.org/ HTTP/1.1\r\n\r\n",
            b"GET http://user:secret@example.org/ HTTP/1.1\r\n\r\n",
            b"CONNECT example.org HTTP/1.1\r\n\r\n",
            b"CONNECT example.org:99999 HTTP/1.1\r\n\r\n",
            b"CONNECT :443 HTTP/1.1\r\n\r\n",
            b"GET  http://example.org/ HTTP/1.1\r\n\r\n",
            b"GET http://example.org/ HTTP/2\r\n\r\n",
            b"POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"GET http://example.org/ HTTP/1.1\r\nA: b\nHost: x\r\n\r\n",
            b"\xff\r\n\r\n",
        ];
        for case in cases {
            assert!(parse(case).is_err(), "{}", String::from_utf8_lossy(case));
        }
    }
}
