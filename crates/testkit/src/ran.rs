//! What a run of the program left behind: how it ended, and what it said, as text or as the messages of a stream.

use std::process::Output;

use serde_json::Value;

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    /// How it ended; -1 when a signal ended it.
    pub code: i32,
    /// What it said.
    pub stdout: String,
    /// What it printed for people.
    pub stderr: String,
}

impl From<Output> for Ran {
    /// # Panics
    /// When what it said is no text.
    #[expect(clippy::expect_used, reason = "a test of a program that says nonsense cannot continue")]
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program says text");
        let code = output.status.code().unwrap_or(-1);
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    /// What a run that went well said.
    ///
    /// # Panics
    /// When it did not go well.
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// What a run that went well said, as JSON.
    ///
    /// # Panics
    /// When it did not go well, or said something else.
    #[expect(clippy::expect_used, reason = "a test of a program that says nonsense cannot continue")]
    #[must_use]
    pub fn json(self) -> Value {
        serde_json::from_str(&self.ok()).expect("the program says JSON")
    }

    /// The messages of a stream.
    ///
    /// # Panics
    /// When it said something else.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        self.stdout.lines().map(read).collect()
    }

    /// The message that opens a turn.
    ///
    /// # Panics
    /// When the output has no such message.
    #[must_use]
    pub fn init(&self) -> Value {
        self.first("subtype", "init")
    }

    /// The result of a turn.
    ///
    /// # Panics
    /// When the output has no such message.
    #[must_use]
    pub fn result(&self) -> Value {
        self.first("type", "result")
    }

    fn first(&self, field: &str, word: &str) -> Value {
        let found = self.lines().into_iter().find(|line| line[field] == word);
        found.unwrap_or_else(|| panic!("there is no {word}: {self:?}"))
    }
}
