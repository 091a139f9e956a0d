//! Lines that the program writes to us: user messages and the control protocol. A line that cannot be read is named and
//! refused; it never becomes half a prompt.

use std::io::{BufRead, Read};

use qoder_runtime::sessions::new_id;
use qoder_types::record::InputAdmitted;
use qoder_types::{Message, MessageContent, Role};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

/// The longest line that is accepted.
const LONGEST: u64 = 64 * 1024 * 1024;
/// How far the type of a line that is not JSON is looked for.
const LONGEST_START: usize = 64 * 1024;

/// A line of `--input-format stream-json`.
pub enum Line {
    /// A user message.
    User(InputAdmitted),
    /// The other side asks for something.
    Control {
        /// The id to answer with.
        id: String,
        /// What is asked, with its `subtype`.
        request: Value,
    },
    /// The other side answers.
    Response {
        /// The id of our request.
        id: String,
        /// What it says, or why it failed.
        answer: Result<Value, String>,
    },
    /// The other side gives a request up.
    Cancel(String),
    /// A user message that cannot be taken; the text says why. Its sender waits for a result.
    Refused(String),
    /// Not a message at all; the text says why.
    Bad(String),
}

#[derive(Deserialize)]
struct UserLine {
    #[serde(rename = "type", default)]
    kind: String,
    message: Option<UserContent>,
    uuid: Option<String>,
    request_id: Option<String>,
    request: Option<Value>,
    response: Option<ResponseLine>,
}

#[derive(Deserialize)]
struct ResponseLine {
    #[serde(default)]
    subtype: String,
    request_id: Option<String>,
    #[serde(default)]
    response: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct UserContent {
    role: Option<Role>,
    content: MessageContent,
}

/// Reads lines on a thread of its own, so that stdin is read while stdout blocks. The channel closes at the end.
pub fn lines() -> mpsc::UnboundedReceiver<Line> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            match (&mut stdin).take(LONGEST).read_until(b'\n', &mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let line = if buffer.len() as u64 == LONGEST && buffer.last() != Some(&b'\n') {
                skip_line(&mut stdin);
                Some(unreadable(&buffer, "an input line is longer than 64 MiB and is left out".to_owned()))
            } else {
                parse(buffer.trim_ascii())
            };
            if let Some(line) = line
                && sender.send(line).is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// Reads on to the end of a line that is too long to be kept.
fn skip_line(stdin: &mut impl BufRead) {
    loop {
        let (found, length) = match stdin.fill_buf() {
            Ok([]) | Err(_) => return,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (true, at + 1),
                None => (false, bytes.len()),
            },
        };
        stdin.consume(length);
        if found {
            return;
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Line> {
    if bytes.is_empty() {
        return None;
    }
    let line: UserLine = match serde_json::from_slice(bytes).or_else(|_| serde_json::from_str(&mend(bytes))) {
        Ok(line) => line,
        Err(error) => {
            let start: String = String::from_utf8_lossy(bytes).chars().take(80).collect();
            return Some(unreadable(
                bytes,
                format!("an input line is not a JSON message ({error}): {start}"),
            ));
        }
    };
    match line.kind.as_str() {
        "user" => {
            let Some(message) = line.message else {
                return Some(Line::Refused("a user message has no `message.content`".to_owned()));
            };
            let input_id = line.uuid.filter(|id| !id.trim().is_empty()).unwrap_or_else(new_id);
            let message = Message { role: message.role.unwrap_or(Role::User), content: message.content };
            let input = InputAdmitted::user(input_id, message);
            Some(match input.check() {
                Ok(()) => Line::User(input),
                Err(problem) => Line::Refused(problem.to_string()),
            })
        }
        "control_request" => Some(match line.request_id {
            Some(id) => Line::Control { id, request: line.request.unwrap_or_default() },
            None => Line::Bad("a control request has no `request_id` and cannot be answered".to_owned()),
        }),
        "control_response" => line.response.and_then(response),
        "control_cancel_request" => line.request_id.map(Line::Cancel),
        // Other kinds belong to hosts that know more than we do.
        _ => None,
    }
}

/// A line that cannot be read. The sender of a user message waits for its result, so one that begins like such a message is
/// answered.
fn unreadable(bytes: &[u8], problem: String) -> Line {
    let value: Option<Value> = serde_json::from_slice(bytes).ok();
    let is_user = match value {
        Some(value) => value.get("type").is_some_and(|kind| kind == "user"),
        None => {
            let start: String =
                String::from_utf8_lossy(bytes.get(..LONGEST_START).unwrap_or(bytes)).into_owned();
            let start: String = start.split_whitespace().collect();
            start.contains("\"type\":\"user\"")
        }
    };
    if is_user { Line::Refused(problem) } else { Line::Bad(problem) }
}

fn response(line: ResponseLine) -> Option<Line> {
    let answer = match line.subtype.as_str() {
        "success" => Ok(line.response),
        _ => Err(line.error.as_str().map_or_else(|| line.error.to_string(), str::to_owned)),
    };
    Some(Line::Response { id: line.request_id?, answer })
}

/// The text of a line that JSON does not accept because of half a character: bytes that are no UTF-8 and escapes of one
/// half of a surrogate pair become the replacement character. Clients pass on such text from their users.
fn mend(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (kept, length) = match (half(escape), escape.get(6..).and_then(half)) {
            (None, _) => (escape.chars().take(2).collect(), escape.chars().take(2).map(char::len_utf8).sum()),
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (escape[..12].to_owned(), 12),
            (Some(_), _) => ("\\ufffd".to_owned(), 6),
        };
        out.push_str(&kept);
        rest = &escape[length..];
    }
    out.push_str(rest);
    out
}

/// The number of a surrogate's escape at the start of `text`.
fn half(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|number| (0xd800..0xe000).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(line: &[u8]) -> String {
        match parse(line) {
            Some(Line::User(input)) => input.message.content.to_text(),
            Some(Line::Bad(problem) | Line::Refused(problem)) => format!("bad: {problem}"),
            Some(Line::Control { .. } | Line::Response { .. } | Line::Cancel(_)) | None => {
                "nothing".to_owned()
            }
        }
    }

    #[test]
    fn half_characters_are_replaced_and_whole_ones_kept() {
        let line =
            |content: &str| format!(r#"{{"type":"user","message":{{"role":"user","content":"{content}"}}}}"#);
        let cases = [
            (r"a\ud800b", "a\u{fffd}b"),
            (r"\udc00", "\u{fffd}"),
            (r"\ud83d\ude00\ud800", "😀\u{fffd}"),
            (r"\\ud800 \n\ud800", "\\ud800 \n\u{fffd}"),
        ];
        for (written, read) in cases {
            assert_eq!(content(line(written).as_bytes()), read, "{written}");
        }
        let mut bytes = line("a!b").into_bytes();
        let at = bytes.iter().position(|byte| *byte == b'!').unwrap();
        bytes[at] = 0xff;
        assert_eq!(content(&bytes), "a\u{fffd}b");
    }

    #[test]
    fn messages_that_are_none_are_named() {
        for (line, problem) in [
            (r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#, "another role"),
            (r#"{"type":"user","message":{"role":"user","content":" "}}"#, "empty"),
            (r#"{"type":"user","message":{"role":"user","content":"a\u0000"}}"#, "NUL"),
            (r#"{"type":"user"}"#, "no `message.content`"),
            ("not json", "not a JSON message"),
        ] {
            assert!(content(line.as_bytes()).contains(problem), "{line}");
        }
    }

    #[test]
    fn a_user_message_that_cannot_be_read_is_answered() {
        for line in [
            r#"{"type":"user","message":{"role":"user","content":5}}"#,
            r#"{"type":"user","message":{"role":"user"}}"#,
            r#"{"type":"user","message":"hello"}"#,
            r#"{"type":"user","message":{"role":"system","content":"x"}}"#,
            r#"{"type":"user","uuid":7,"message":{"role":"user","content":"x"}}"#,
            r#"{"type": "user", "message":{"role":"user","content":"cut"#,
        ] {
            assert!(matches!(parse(line.as_bytes()), Some(Line::Refused(_))), "{line}");
        }
        for line in ["no json", "[1]", "7", r#"{"type":"control_response","response":5}"#] {
            assert!(matches!(parse(line.as_bytes()), Some(Line::Bad(_))), "{line}");
        }
    }
}
