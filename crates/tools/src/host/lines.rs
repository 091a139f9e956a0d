//! JSON lines over a pipe: bounded when they are read, and written in order by a task of their own.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::message::LONGEST_LINE;

/// Takes messages that are sent in order. Its sending never waits.
#[derive(Debug, Clone)]
pub(crate) struct Sender(mpsc::UnboundedSender<Vec<u8>>);

impl Sender {
    /// Writes to this pipe; the task ends with the pipe, or when all senders are gone.
    pub(crate) fn start(mut pipe: impl AsyncWrite + Send + Unpin + 'static) -> (Self, JoinHandle<()>) {
        let (sender, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let writing = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                if pipe.write_all(&line).await.is_err() || pipe.flush().await.is_err() {
                    return;
                }
            }
        });
        (Self(sender), writing)
    }

    /// Sends a message. A pipe that has ended is noticed by who reads from it.
    pub(crate) fn send(&self, message: &impl Serialize) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            // As said above.
            let _ = self.0.send(line);
        }
    }
}

/// Reads messages.
pub(crate) struct Receiver<R> {
    pipe: BufReader<R>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Receiver<R> {
    pub(crate) fn new(pipe: R) -> Self {
        Self { pipe: BufReader::with_capacity(64 * 1024, pipe), line: Vec::new() }
    }

    /// The next message; `None` at the end of the pipe. May be dropped and called again without losing anything.
    ///
    /// # Errors
    /// When the pipe fails, a line is too long, or it is not such a message.
    pub(crate) async fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        loop {
            let piece = self.pipe.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(piece.len(), |end| end + 1);
            self.line.extend_from_slice(&piece[..taken]);
            self.pipe.consume(taken);
            if self.line.len() > LONGEST_LINE {
                return Err(io::Error::other("a message is too long"));
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let message = serde_json::from_slice(&line).map_err(io::Error::other)?;
                return Ok(Some(message));
            }
        }
    }
}

/// Bytes as text.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of a text; nothing of a text that is not base64.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}
