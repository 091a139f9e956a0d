//! What the program writes: one JSON object a line, read on a task of its own so that nothing is lost when other
//! things happen. Lines that are not objects are skipped; one that begins like an object and cannot be parsed is an error.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStdout;
use tokio::sync::mpsc;

use crate::error::Error;

/// The longest line that is accepted.
const LONGEST: u64 = 64 * 1024 * 1024;
/// How many messages may wait; the program waits when there are more.
const WAITING: usize = 256;

/// Reads until the end.
pub(super) fn read(stdout: ChildStdout) -> mpsc::Receiver<Result<Value, Error>> {
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut stdout = BufReader::with_capacity(64 * 1024, stdout);
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            match (&mut stdout).take(LONGEST).read_until(b'\n', &mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let complete = buffer.last() == Some(&b'\n');
            let text = buffer.trim_ascii();
            if text.first() != Some(&b'{') {
                continue;
            }
            let item = match serde_json::from_slice(text) {
                Ok(value) => Ok(value),
                // The last words of a program that was stopped in the middle of them.
                Err(_) if !complete && (buffer.len() as u64) < LONGEST => return,
                Err(error) => {
                    Err(Error::Protocol(format!("qodercli wrote a line that is not JSON: {error}")))
                }
            };
            if sender.send(item).await.is_err() {
                return;
            }
        }
    });
    receiver
}
