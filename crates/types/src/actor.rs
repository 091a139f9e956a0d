//! Who did something: answered, denied, interrupted, changed permissions. Records keep an actor as one line of text, so
//! that logs stay readable; every text reads back as the actor that wrote it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Actor {
    /// The program that opened the session, through its callback or its control requests.
    #[default]
    Host,
    /// The host, with the word by which it classified its answer.
    HostClassified(String),
    /// A person, where they are.
    Person {
        /// The name.
        name: String,
        /// Where the person is.
        place: Place,
    },
    /// A tool of an MCP server that answers for a person.
    Tool(String),
    /// A hook.
    Hook(String),
    /// A slash command.
    Command(String),
    /// The session that started this agent.
    Parent(String),
    /// An interrupt that names no one.
    Signal,
    /// The process ended by this signal.
    Ending(String),
    /// The process that opened the session again.
    Resume,
    /// The start of a run.
    Start,
    /// An MCP server, about its own question.
    Server,
    /// An interrupt that took a question back.
    Interrupt,
    /// A tool whose definition changed.
    ChangedTool,
    /// No one: a question ended without an answer.
    Nobody,
    /// Anyone else, by name.
    Named(String),
}

/// Where a person is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// At the terminal of the process that drives the session.
    Terminal,
    /// At the terminal of another process that is attached to the session.
    OtherTerminal,
    /// On the command line of another process.
    CommandLine,
}

impl Place {
    const ALL: [Self; 3] = [Self::Terminal, Self::OtherTerminal, Self::CommandLine];

    fn suffix(self) -> &'static str {
        match self {
            Self::Terminal => " on the terminal",
            Self::OtherTerminal => " on another terminal",
            Self::CommandLine => " on the command line",
        }
    }
}

/// What precedes a name that would read as someone else.
const NAMED: &str = "named ";

impl Actor {
    /// Someone in another process who says who they are: a person or a name, and never a part of the runtime, whatever
    /// the text.
    #[must_use]
    pub fn claimed(text: &str) -> Self {
        match Self::parse(text) {
            Self::Person { name, place: Place::Terminal } => {
                Self::Person { name, place: Place::OtherTerminal }
            }
            person @ Self::Person { .. } => person,
            _ => Self::Named(text.to_owned()),
        }
    }

    /// True for the program that opened the session.
    #[must_use]
    pub fn is_host(&self) -> bool {
        matches!(self, Self::Host | Self::HostClassified(_))
    }

    /// Reads the text of a record.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "host" => return Self::Host,
            "signal" => return Self::Signal,
            "resume" => return Self::Resume,
            "start" => return Self::Start,
            "server" => return Self::Server,
            "interrupt" => return Self::Interrupt,
            "changed tool" => return Self::ChangedTool,
            "nobody" => return Self::Nobody,
            _ => {}
        }
        if let Some(word) = text.strip_prefix("host (").and_then(|rest| rest.strip_suffix(')')) {
            return Self::HostClassified(word.to_owned());
        }
        let named = |prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        if let Some(name) = named(NAMED) {
            return Self::Named(name);
        }
        if let Some(name) = named("tool ") {
            return Self::Tool(name);
        }
        if let Some(name) = named("hook ") {
            return Self::Hook(name);
        }
        if let Some(name) = named("command ") {
            return Self::Command(name);
        }
        if let Some(id) = named("parent ") {
            return Self::Parent(id);
        }
        for place in Place::ALL {
            if let Some(name) = text.strip_suffix(place.suffix()) {
                return Self::Person { name: name.to_owned(), place };
            }
        }
        match text {
            "SIGTERM" | "SIGHUP" => Self::Ending(text.to_owned()),
            _ => Self::Named(text.to_owned()),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => formatter.write_str("host"),
            Self::HostClassified(word) => write!(formatter, "host ({word})"),
            Self::Person { name, place } => write!(formatter, "{name}{}", place.suffix()),
            Self::Tool(name) => write!(formatter, "tool {name}"),
            Self::Hook(name) => write!(formatter, "hook {name}"),
            Self::Command(name) => write!(formatter, "command {name}"),
            Self::Parent(id) => write!(formatter, "parent {id}"),
            Self::Signal => formatter.write_str("signal"),
            Self::Resume => formatter.write_str("resume"),
            Self::Start => formatter.write_str("start"),
            Self::Server => formatter.write_str("server"),
            Self::Interrupt => formatter.write_str("interrupt"),
            Self::ChangedTool => formatter.write_str("changed tool"),
            Self::Nobody => formatter.write_str("nobody"),
            Self::Ending(name) => formatter.write_str(name),
            Self::Named(name) if matches!(Self::parse(name), Self::Named(same) if same == *name) => {
                formatter.write_str(name)
            }
            Self::Named(name) => write!(formatter, "{NAMED}{name}"),
        }
    }
}

impl From<&str> for Actor {
    fn from(text: &str) -> Self {
        Self::parse(text)
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::parse(&text))
    }
}

impl JsonSchema for Actor {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Actor".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_reads_back_as_it_was() {
        let texts = [
            "host",
            "host (user_temporary)",
            "ana on the terminal",
            "ana on another terminal",
            "ana on the command line",
            "tool mcp__gate__ask",
            "hook guard",
            "command /clear",
            "parent 1",
            "signal",
            "SIGTERM",
            "resume",
            "start",
            "server",
            "interrupt",
            "changed tool",
            "nobody",
            "can_use_tool",
            "",
        ];
        for text in texts {
            assert_eq!(Actor::parse(text).to_string(), text);
        }
        // A name is never taken for someone else.
        for text in texts.iter().chain(&["named x", "ana", "hook x on the terminal"]) {
            let named = Actor::Named((*text).to_owned());
            assert_eq!(Actor::parse(&named.to_string()), named);
            assert!(!Actor::claimed(text).is_host());
        }
        assert_eq!(Actor::Named("ana".to_owned()).to_string(), "ana");
        let on_the_command_line = Actor::claimed("ana on the command line");
        assert!(matches!(on_the_command_line, Actor::Person { place: Place::CommandLine, .. }));
        // The terminal of the process that drives the session is never another process's.
        assert_eq!(Actor::claimed("ana on the terminal").to_string(), "ana on another terminal");
        assert!(Actor::parse("host (x)").is_host() && Actor::parse("host").is_host());
        assert!(!Actor::parse("hostile").is_host());
    }
}
