//! Log lines: one JSON object a line on standard error. Bodies of requests, tokens and what models say are never in them.

use std::io::Write;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::model::time::Time;

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What went wrong.
    Error,
    /// What an operator should look at.
    Warn,
    /// What happens.
    Info,
    /// Every request.
    Debug,
}

impl Level {
    /// Reads a level's name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "error" => Self::Error,
            "warn" => Self::Warn,
            "info" => Self::Info,
            "debug" => Self::Debug,
            _ => return None,
        })
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// Where lines go.
type Lines = Arc<dyn Fn(&str) + Send + Sync>;

/// Writes log lines.
#[derive(Clone)]
pub struct Log {
    most: Level,
    lines: Lines,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Log").field("most", &self.most).finish_non_exhaustive()
    }
}

impl Log {
    /// Writes lines up to this level to standard error.
    #[must_use]
    pub fn to_stderr(most: Level) -> Self {
        let lines: Lines = Arc::new(|line: &str| {
            // One write a line. When no one can read it any longer there is nothing to be done about that.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        });
        Self { most, lines }
    }

    /// Gives lines up to this level to a function.
    pub fn to(most: Level, lines: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { most, lines: Arc::new(lines) }
    }

    /// True when lines of this level are written.
    #[must_use]
    pub fn writes(&self, level: Level) -> bool {
        level <= self.most
    }

    /// Writes a line.
    pub fn write(&self, level: Level, event: &str, fields: &[(&str, &str)]) {
        if !self.writes(level) {
            return;
        }
        let mut line = Map::new();
        line.insert("at".to_owned(), json!(Time::now()));
        line.insert("level".to_owned(), json!(level.as_str()));
        line.insert("event".to_owned(), json!(event));
        for (name, value) in fields {
            line.insert((*name).to_owned(), json!(value));
        }
        (self.lines)(&format!("{}\n", Value::Object(line)));
    }

    /// Something went wrong.
    pub fn error(&self, event: &str, fields: &[(&str, &str)]) {
        self.write(Level::Error, event, fields);
    }

    /// Something an operator should look at.
    pub fn warn(&self, event: &str, fields: &[(&str, &str)]) {
        self.write(Level::Warn, event, fields);
    }

    /// Something happened.
    pub fn info(&self, event: &str, fields: &[(&str, &str)]) {
        self.write(Level::Info, event, fields);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_line_is_one_json_object_whatever_it_says() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let log = Log::to(Level::Info, move |line| kept.lock().unwrap().push(line.to_owned()));
        log.error("failed", &[("error", "a \"quote\"\nand a line")]);
        log.write(Level::Debug, "request", &[]);
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 1);
        let value: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((&value["level"], &value["error"]), (&json!("error"), &json!("a \"quote\"\nand a line")));
        assert_eq!(lines[0].matches('\n').count(), 1);
    }
}
