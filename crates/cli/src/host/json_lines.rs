//! JSON on stdout: every message as a line, or the result alone. A line never passes 1 MiB, because readers stop at
//! that; what would be longer loses its typed output first and then the middle of its long texts.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use qoder_runtime::events::{Event, Host};
use qoder_runtime::session::new_id;
use qoder_types::wire::StreamMessage;
use serde_json::Value;

use super::tell;

const LONGEST_LINE: usize = 1024 * 1024 - 1;

/// Every message as a line.
pub struct JsonLines {
    partial: bool,
    verbose: bool,
    state: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    session_id: String,
}

impl JsonLines {
    /// A host that prints pieces of replies if `partial`.
    pub fn new(partial: bool, verbose: bool) -> Self {
        Self { partial, verbose, state: Mutex::default() }
    }

    fn message(&self, message: &StreamMessage<'_>) -> std::io::Result<()> {
        let mut lines = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = session_of(message) {
            id.clone_into(&mut lines.session_id);
        }
        lines.buffer.clear();
        serde_json::to_writer(&mut lines.buffer, message)?;
        if lines.buffer.len() > LONGEST_LINE {
            lines.buffer = shorten(&lines.buffer);
        }
        escape_separators(&mut lines.buffer);
        lines.buffer.push(b'\n');
        write_line(&lines.buffer)
    }

    /// Written by hand around the provider's own text, so that a piece costs no parsing.
    fn partial(&self, event: &str) -> std::io::Result<()> {
        let mut lines = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Lines { buffer, session_id } = &mut *lines;
        buffer.clear();
        buffer.extend_from_slice(b"{\"type\":\"stream_event\",\"event\":");
        buffer.extend_from_slice(event.as_bytes());
        buffer.extend_from_slice(b",\"parent_tool_use_id\":null,\"session_id\":\"");
        buffer.extend_from_slice(session_id.as_bytes());
        buffer.extend_from_slice(b"\",\"uuid\":\"");
        buffer.extend_from_slice(new_id().as_bytes());
        buffer.extend_from_slice(b"\"}");
        escape_separators(buffer);
        buffer.push(b'\n');
        write_line(buffer)
    }
}

/// The init message comes first and names the session.
fn session_of<'a>(message: &StreamMessage<'a>) -> Option<&'a str> {
    match message {
        StreamMessage::System(qoder_types::wire::SystemMessage::Init(init)) => Some(init.session_id),
        _ => None,
    }
}

/// One complete line in one write; readers see it at once.
fn write_line(line: &[u8]) -> std::io::Result<()> {
    let mut rest = line;
    while !rest.is_empty() {
        match rustix::io::write(std::io::stdout(), rest) {
            Ok(written) => rest = &rest[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => std::thread::sleep(std::time::Duration::from_millis(1)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Some readers end a line at U+2028 and U+2029 too; inside JSON they can only stand in texts, where an escape is equal.
fn escape_separators(line: &mut Vec<u8>) {
    let is_separator = |window: &[u8]| window[..2] == [0xE2, 0x80] && matches!(window[2], 0xA8 | 0xA9);
    if !line.contains(&0xE2) || !line.windows(3).any(is_separator) {
        return;
    }
    let text = String::from_utf8_lossy(line).replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    *line = text.into_bytes();
}

fn shorten(line: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return b"{}".to_vec() };
    if let Some(object) = value.as_object_mut() {
        object.remove("tool_use_result");
    }
    let mut limit = 256 * 1024;
    loop {
        let text = serde_json::to_vec(&value).unwrap_or_else(|_| b"{}".to_vec());
        if text.len() <= LONGEST_LINE || limit < 64 {
            return text;
        }
        cut_strings(&mut value, limit);
        limit /= 4;
    }
}

fn cut_strings(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) if text.len() > limit => {
            let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let left_out = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("[… {left_out} bytes left out of this line …]"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_strings(item, limit)),
        Value::Object(map) => map.values_mut().for_each(|item| cut_strings(item, limit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl Host for JsonLines {
    fn wants_partial(&self) -> bool {
        self.partial
    }

    fn wants_tool_output(&self) -> bool {
        false
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message) => self.message(message),
            Event::Partial(event) => self.partial(event),
            Event::ToolOutput { .. } => Ok(()),
            Event::Warning(text) => {
                if self.verbose {
                    tell(&format!("warning: {text}"));
                }
                Ok(())
            }
        }
    }
}

/// The result alone, as one object.
pub struct ResultOnly {
    verbose: bool,
}

impl ResultOnly {
    /// A host that prints the result.
    pub fn new(verbose: bool) -> Self {
        Self { verbose }
    }
}

impl Host for ResultOnly {
    fn wants_partial(&self) -> bool {
        false
    }

    fn wants_tool_output(&self) -> bool {
        false
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message @ StreamMessage::Result(_)) => {
                let mut line = serde_json::to_vec(message)?;
                line.push(b'\n');
                let mut out = std::io::stdout().lock();
                out.write_all(&line)?;
                out.flush()
            }
            Event::Warning(text) if self.verbose => {
                tell(&format!("warning: {text}"));
                Ok(())
            }
            Event::Message(_) | Event::Partial(_) | Event::ToolOutput { .. } | Event::Warning(_) => Ok(()),
        }
    }
}
