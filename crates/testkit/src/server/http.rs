//! As much of HTTP/1.1 as a model server needs: a request with a length or in chunks, and an answer with a length
//! or in chunks, over a connection that stays open. Written on plain sockets so that a test knows when the last
//! byte left.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;

/// More than any head of a real client; a test with a larger one has a fault.
const LARGEST_HEAD: u64 = 256 * 1024;
/// More than the largest request of the benchmarks.
const LARGEST_BODY: u64 = 512 * 1024 * 1024;

/// A request as it arrived.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// True when the client will close the connection after the answer.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Reads the next request; `None` when the client closed the connection between two requests.
pub(crate) fn read_request(reader: &mut BufReader<TcpStream>) -> Result<Option<Request>> {
    let Some(first) = read_line(reader)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Err(bad("request line")) };
    let mut request =
        Request { method: method.to_owned(), path: path.to_owned(), headers: Vec::new(), body: Vec::new() };
    loop {
        let line = read_line(reader)?.ok_or_else(|| bad("head"))?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("header"))?;
        request.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        request.body = read_chunks(reader)?;
    } else if let Some(length) = request.header("content-length") {
        let length: u64 = length.parse().map_err(|_| bad("content-length"))?;
        request.body = read_exactly(reader, length)?;
    }
    Ok(Some(request))
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the request's {what} is broken"))
}

fn read_line(reader: &mut BufReader<TcpStream>) -> Result<Option<String>> {
    let mut line = Vec::new();
    let read = reader.by_ref().take(LARGEST_HEAD).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

fn read_exactly(reader: &mut BufReader<TcpStream>, length: u64) -> Result<Vec<u8>> {
    if length > LARGEST_BODY {
        return Err(bad("length"));
    }
    // Room in advance: growing while the client waits would be counted as the client's time.
    let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    reader.by_ref().take(length).read_to_end(&mut body)?;
    if body.len() as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

fn read_chunks(reader: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?.ok_or_else(|| bad("chunk"))?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| bad("chunk"))?;
        body.extend(read_exactly(reader, size)?);
        // After a chunk comes an empty line; after the last one the trailers end with it.
        while read_line(reader)?.is_some_and(|line| size == 0 && !line.is_empty()) {}
        if size == 0 {
            return Ok(body);
        }
        if body.len() as u64 > LARGEST_BODY {
            return Err(bad("length"));
        }
    }
}

/// Writes a complete answer.
pub(crate) fn write_answer(
    writer: &mut impl Write,
    status: u16,
    headers: &[(String, String)],
    kind: &str,
    body: &[u8],
) -> Result<()> {
    write!(writer, "HTTP/1.1 {status} {}\r\n", reason(status))?;
    write!(writer, "content-type: {kind}\r\ncontent-length: {}\r\n", body.len())?;
    for (name, value) in headers {
        write!(writer, "{name}: {value}\r\n")?;
    }
    writer.write_all(b"\r\n")?;
    writer.write_all(body)?;
    writer.flush()
}

/// Writes the head of an answer that comes in chunks.
pub(crate) fn write_stream_head(writer: &mut impl Write, request_id: &str) -> Result<()> {
    write!(
        writer,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n\
         request-id: {request_id}\r\nx-request-id: {request_id}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
}

/// Writes one chunk.
pub(crate) fn write_chunk(writer: &mut impl Write, data: &str) -> Result<()> {
    write!(writer, "{:x}\r\n{data}\r\n", data.len())
}

/// Writes the end of an answer in chunks.
pub(crate) fn write_end(writer: &mut impl Write) -> Result<()> {
    writer.write_all(b"0\r\n\r\n")?;
    writer.flush()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}
