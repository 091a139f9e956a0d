//! The streams of the program around this front.

use qoder_protocol::messages::{StreamMessage, SystemMessage};

/// The streams of the program. It escapes what others wrote, and redacts keys.
pub trait Console: Send + Sync {
    /// Writes one complete JSON line to stdout; `line` comes without its newline.
    ///
    /// # Errors
    /// When stdout is closed.
    fn write_line(&self, line: &mut Vec<u8>) -> std::io::Result<()>;

    /// Prints lines for people on stderr. When stderr is closed no one is left to read them.
    fn print_note(&self, text: &str);
}

/// The line for people that a model call is tried again, for the first retry: what follows may take minutes of silence.
#[must_use]
pub fn first_retry(message: &StreamMessage) -> Option<String> {
    match message {
        StreamMessage::System(SystemMessage::ApiRetry { attempt: 1, max_retries, error, .. }) => {
            Some(format!("retrying a model call, at most {max_retries} times: {error}"))
        }
        _ => None,
    }
}
