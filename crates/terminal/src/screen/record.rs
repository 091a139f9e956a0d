//! A recording of what the terminal was shown, as an asciicast (version 2), for reviews: `QODER_TUI_RECORD=FILE`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

use serde_json::json;

/// A recording that is being written.
pub(crate) struct Recording {
    file: File,
    begun: Instant,
    /// Bytes at the end of a frame that are part of a character.
    held: Vec<u8>,
}

impl Recording {
    /// Begins one. The file is private: it holds what the person saw.
    pub(crate) fn start(path: &str, width: usize, height: usize) -> std::io::Result<Self> {
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)?;
        let head =
            json!({ "version": 2, "width": width, "height": height, "env": { "TERM": "xterm-256color" } });
        writeln!(file, "{head}")?;
        Ok(Self { file, begun: Instant::now(), held: Vec::new() })
    }

    /// Adds what was written.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.held) {
            Ok(_) => self.held.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8_lossy(&self.held[..whole]).into_owned();
        self.held.drain(..whole);
        let line = json!([self.begun.elapsed().as_secs_f64(), "o", text]);
        // A recording that cannot be written is no reason to stop.
        let _ = writeln!(self.file, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_an_asciicast() {
        let path = std::env::temp_dir().join(format!("qoder-cast-{}", std::process::id()));
        let mut recording = Recording::start(path.to_str().unwrap(), 80, 24).unwrap();
        recording.output("a世".as_bytes().split_at(2).0);
        recording.output("a世".as_bytes().split_at(2).1);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines[0]["version"].as_u64(), lines[0]["width"].as_u64()), (Some(2), Some(80)));
        assert_eq!((lines[1][2].as_str(), lines[2][2].as_str()), (Some("a"), Some("世")));
    }
}
