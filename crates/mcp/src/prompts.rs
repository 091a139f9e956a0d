//! Prompts of servers as commands: `/mcp__server__prompt words…`. Their lists are asked for once per connection and again
//! when a server says that they changed; a command is answered with the content that the server makes of its words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join_all;
use qoder_types::ContentBlock;
use serde_json::{Map, Value, json};

use crate::resources::{offers, pages, unusable};
use crate::result::block;
use crate::{McpServers, PeerError, plain, tool_name};

/// How every command begins.
pub const COMMAND_START: &str = "/mcp__";
/// Characters of a prompt that reach the model.
const LONGEST_PROMPT: usize = 200_000;
/// Bytes of a description.
const LONGEST_DESCRIPTION: usize = 1024;
/// Arguments of a prompt.
const MOST_ARGUMENTS: usize = 50;
/// How long a server may take to make a prompt.
const PATIENCE: Duration = Duration::from_secs(60);

/// A prompt of a server, as a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCommand {
    /// The command without its slash: `mcp__server__prompt`.
    pub name: String,
    /// What the server says it does.
    pub description: String,
    /// Its arguments in order: name, and whether it must be there.
    pub arguments: Vec<(String, bool)>,
    server: String,
    prompt: String,
}

impl PromptCommand {
    fn read(server: &str, value: &Value) -> Option<Self> {
        let prompt = value.get("name")?.as_str()?;
        let argument = |value: &Value| {
            let required = value.get("required").and_then(Value::as_bool).unwrap_or(false);
            Some((value.get("name")?.as_str()?.to_owned(), required))
        };
        let arguments = value.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let description = value.get("description").or_else(|| value.get("title")).and_then(Value::as_str);
        Some(Self {
            name: tool_name(server, prompt),
            description: plain(description.unwrap_or_default(), LONGEST_DESCRIPTION),
            arguments: arguments.take(MOST_ARGUMENTS).filter_map(argument).collect(),
            server: server.to_owned(),
            prompt: prompt.to_owned(),
        })
    }

    /// The arguments for people: `<needed> [optional]`.
    #[must_use]
    pub fn hint(&self) -> String {
        let word = |(name, required): &(String, bool)| {
            let name = plain(name, 100);
            if *required { format!("<{name}>") } else { format!("[{name}]") }
        };
        self.arguments.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    /// The words of a command as arguments, by position; the last argument takes all that is left.
    fn arguments(&self, words: Vec<String>) -> Result<Map<String, Value>, PromptError> {
        let mut words = words.into_iter();
        let mut given = Map::new();
        for (index, (name, required)) in self.arguments.iter().enumerate() {
            let is_last = index + 1 == self.arguments.len();
            let rest: Vec<String> =
                if is_last { words.by_ref().collect() } else { words.next().into_iter().collect() };
            if !rest.is_empty() {
                given.insert(name.clone(), json!(rest.join(" ")));
            } else if *required {
                let name = plain(name, 100);
                let usage = self.hint();
                return Err(PromptError::Missing { command: self.name.clone(), argument: name, usage });
            }
        }
        match words.next() {
            Some(_) => Err(PromptError::TakesNone(self.name.clone())),
            None => Ok(given),
        }
    }
}

/// Why a prompt of a server cannot be used. The text is for the person who wrote the command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// There is no such command; the text names those of the server.
    #[error("{0}")]
    Unknown(String),
    /// An argument that the prompt needs is not given.
    #[error("/{command} needs `{argument}`. Usage: /{command} {usage}")]
    Missing {
        /// The command.
        command: String,
        /// The argument.
        argument: String,
        /// All arguments, as a hint.
        usage: String,
    },
    /// The prompt takes no arguments, and there are some.
    #[error("/{0} takes no arguments")]
    TakesNone(String),
    /// The server refused to make it, or could not be asked.
    #[error("/{command} was not made: {error}")]
    Refused {
        /// The command.
        command: String,
        /// Why.
        error: PeerError,
    },
    /// The server took too long.
    #[error("/{0} was not made within {seconds} s", seconds = PATIENCE.as_secs())]
    TooLate(String),
    /// The server made nothing of it.
    #[error("/{0} is empty: the server made no message of it")]
    Empty(String),
}

impl PromptError {
    /// A stable name.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "mcp_prompt_unknown",
            Self::Missing { .. } | Self::TakesNone(_) => "mcp_prompt_arguments",
            Self::Refused { .. } => "mcp_prompt_refused",
            Self::TooLate(_) => "mcp_prompt_late",
            Self::Empty(_) => "mcp_prompt_empty",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "use a command that is listed",
            Self::Missing { .. } | Self::TakesNone(_) => "write the command as its usage says",
            Self::Refused { .. } | Self::TooLate(_) | Self::Empty(_) => {
                "`qodercli mcp get NAME` shows the state of the server"
            }
        }
    }
}

/// The prompts of a session's servers.
pub struct Prompts {
    servers: Arc<McpServers>,
    known: RwLock<BTreeMap<String, Vec<PromptCommand>>>,
    /// Servers that did not answer in time; listings do not wait for them again.
    slow: RwLock<BTreeSet<String>>,
}

impl Prompts {
    /// Of these servers; nothing is asked yet.
    #[must_use]
    pub fn new(servers: Arc<McpServers>) -> Self {
        Self { servers, known: RwLock::default(), slow: RwLock::default() }
    }

    /// A server's list is another one now.
    pub(crate) fn forget(&self, server: &str) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(server);
        self.slow.write().unwrap_or_else(PoisonError::into_inner).remove(server);
    }

    /// Asks the connected servers for lists that are not known, all at once and for so long at most. One that did not answer
    /// in time before is not waited for.
    pub async fn gather(&self, patience: Duration) {
        self.ask(patience, false).await;
    }

    async fn ask(&self, patience: Duration, slow_too: bool) {
        let greetings = self.servers.greetings();
        let missing: Vec<String> = {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            known.retain(|server, _| greetings.iter().any(|(name, _)| name == server));
            let offering = greetings.iter().filter(|(_, greeting)| offers(greeting, "prompts"));
            let slow = self.slow.read().unwrap_or_else(PoisonError::into_inner);
            let is_missing = |name: &str| !known.contains_key(name) && (slow_too || !slow.contains(name));
            offering.filter(|(name, _)| is_missing(name)).map(|(name, _)| name.clone()).collect()
        };
        let ask = |server: String| async move {
            let listed = pages(&self.servers, &server, "prompts/list", "prompts");
            let Ok(listed) = tokio::time::timeout(patience, listed).await else {
                self.slow.write().unwrap_or_else(PoisonError::into_inner).insert(server);
                return;
            };
            let entries = listed.map(|(entries, _)| entries).unwrap_or_default();
            let commands = entries.iter().filter_map(|entry| PromptCommand::read(&server, entry)).collect();
            self.known.write().unwrap_or_else(PoisonError::into_inner).insert(server, commands);
        };
        join_all(missing.into_iter().map(ask)).await;
    }

    /// The commands that are known, by server and in the servers' order.
    #[must_use]
    pub fn commands(&self) -> Vec<PromptCommand> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).values().flatten().cloned().collect()
    }

    /// What a command expands to; the error is for the person who wrote it.
    ///
    /// # Errors
    /// When there is no such command, its words do not fit, or the server does not make it.
    pub async fn expand(&self, text: &str) -> Result<Vec<ContentBlock>, PromptError> {
        self.ask(PATIENCE, true).await;
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let name = word.trim_start_matches('/');
        let commands = self.commands();
        let Some(command) = commands.iter().find(|command| command.name == name) else {
            return Err(PromptError::Unknown(self.unknown(name, &commands)));
        };
        let arguments = command.arguments(words(rest))?;
        let params = json!({ "name": command.prompt, "arguments": arguments });
        let asked = self.servers.request(&command.server, "prompts/get", params);
        let answer = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(answer) => answer.map_err(|error| PromptError::Refused { command: name.to_owned(), error })?,
            Err(_) => return Err(PromptError::TooLate(name.to_owned())),
        };
        let blocks = content(&answer);
        if blocks.is_empty() { Err(PromptError::Empty(name.to_owned())) } else { Ok(blocks) }
    }

    fn unknown(&self, name: &str, commands: &[PromptCommand]) -> String {
        let server = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"))
            .map_or("", |(server, _)| server);
        let shown = plain(name, 200);
        if !self.servers.greetings().iter().any(|(known, _)| known == server) {
            return format!("There is no command /{shown}. {}", unusable(&self.servers, server));
        }
        let start = format!("mcp__{server}__");
        let of_server = commands.iter().filter(|command| command.name.starts_with(&start));
        let known: Vec<String> = of_server.map(|command| format!("/{}", command.name)).take(50).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!("There is no command /{shown}. Commands of {server}: {known}.")
    }
}

/// The messages of a prompt as content of one message. What stands for the model's own words is marked as that.
fn content(answer: &Value) -> Vec<ContentBlock> {
    let mut left = LONGEST_PROMPT;
    let mut blocks = Vec::new();
    for message in answer.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let of_assistant = message.get("role").and_then(Value::as_str) == Some("assistant");
        let parts = match message.get("content") {
            Some(Value::Array(parts)) => parts.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        for part in parts {
            let made = match block(part) {
                ContentBlock::Text { text } => {
                    let text: String = text.chars().take(left).collect();
                    left -= text.chars().count();
                    ContentBlock::text(if of_assistant { format!("[assistant] {text}") } else { text })
                }
                other => other,
            };
            blocks.push(made);
        }
    }
    blocks
}

/// Words separated by white space; quotes keep words together, and a backslash keeps a quote.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', _) => match letters.next() {
                Some(next @ ('"' | '\'' | '\\')) => word.get_or_insert_default().push(next),
                Some(next) => word.get_or_insert_default().extend(['\\', next]),
                None => word.get_or_insert_default().push('\\'),
            },
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (end, Some(begin)) if end == begin => quote = None,
            (space, None) if space.is_whitespace() => words.extend(word.take()),
            (other, _) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words(r#" a "b c" 'd "e"' f\"g "" "#), ["a", "b c", "d \"e\"", "f\"g", ""]);
        assert_eq!(words(r#""open"#), ["open"]);
        assert_eq!(words(r"C:\x"), [r"C:\x"]);
    }

    #[test]
    fn words_become_arguments_by_position() {
        let prompt =
            json!({ "name": "greet", "arguments": [{ "name": "who", "required": true }, { "name": "how" }] });
        let command = PromptCommand::read("kb", &prompt).unwrap();
        assert_eq!((command.name.as_str(), command.hint().as_str()), ("mcp__kb__greet", "<who> [how]"));
        let given = |text: &str| command.arguments(words(text)).map(Value::Object);
        assert_eq!(given("Ann"), Ok(json!({ "who": "Ann" })));
        assert_eq!(given("'Ann B' very warmly"), Ok(json!({ "who": "Ann B", "how": "very warmly" })));
        assert!(
            given("").unwrap_err().to_string().contains("needs `who`. Usage: /mcp__kb__greet <who> [how]")
        );
        let bare = PromptCommand::read("kb", &json!({ "name": "bare" })).unwrap();
        assert_eq!(bare.arguments(words("x")).unwrap_err().to_string(), "/mcp__kb__bare takes no arguments");
    }

    #[test]
    fn messages_become_content() {
        let answer = json!({ "messages": [
            { "role": "user", "content": { "type": "text", "text": "look" } },
            { "role": "assistant", "content": { "type": "text", "text": "sure" } },
            { "role": "user", "content": { "type": "image", "mimeType": "image/png", "data": "AAAA" } },
        ] });
        let made = content(&answer);
        assert_eq!(made[0], ContentBlock::text("look"));
        assert_eq!(made[1], ContentBlock::text("[assistant] sure"));
        assert!(matches!(made[2], ContentBlock::Image { .. }));
        assert!(content(&json!({})).is_empty());
    }
}
