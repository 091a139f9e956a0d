//! Commands: prompts that a person calls for with `/name`. They are Markdown files of a person, a trusted project or a
//! plugin; beside them `/name` stands for skills, for prompts of servers and for a few built-in commands. This file owns
//! what there is; what a command comes to is worked out by the driver, because parts of it pass the gate.

mod arguments;
mod local;
mod read;
mod template;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use qoder_types::RuleValue;

use crate::sources::{Document, Origin, Problem};

pub use arguments::Arguments;
pub use local::Local;
pub use read::commands;
pub use template::{Piece, pieces};

/// One command of a file.
#[derive(Debug)]
pub struct Command {
    /// Its name: `name`, `folder:name`, with the plugin's name in front for that of a plugin.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may follow its name.
    pub argument_hint: Option<String>,
    /// Calls that it allows until the end of the turn.
    pub allowed: Vec<RuleValue>,
    /// The model that its turn runs with; the session's without it.
    pub model: Option<String>,
    /// Who wrote it.
    pub origin: Origin,
    /// Its file; real path.
    pub file: PathBuf,
}

impl Command {
    /// Its text, as it is in its file now.
    ///
    /// # Errors
    /// When the file can no longer be read.
    pub fn body(&self) -> Result<String, Problem> {
        Ok(Document::read(&self.file, &self.origin)?.body)
    }
}

/// The commands of files.
#[derive(Debug, Clone, Default)]
pub struct CommandList {
    commands: BTreeMap<String, Arc<Command>>,
    /// Those whose name another one took.
    shadowed: Vec<Arc<Command>>,
}

impl CommandList {
    fn add(&mut self, command: Command) {
        let command = Arc::new(command);
        if let Some(old) = self.commands.insert(command.name.clone(), command) {
            self.shadowed.push(old);
        }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Command>> {
        self.commands.values()
    }

    /// Those whose name another one took.
    #[must_use]
    pub fn shadowed(&self) -> &[Arc<Command>] {
        &self.shadowed
    }

    /// The command of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Command>> {
        self.commands.get(name)
    }
}

/// The name and the rest of a text that has the shape of a command: a slash, a name, and nothing or a blank behind it.
/// A path such as `/etc/hosts` has not.
#[must_use]
pub fn split(text: &str) -> Option<(&str, &str)> {
    let line = text.trim_start().strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    is_name(name).then(|| (name, rest.trim()))
}

fn is_name(name: &str) -> bool {
    let fits = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    name.len() <= 200 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.split(':').all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_command() {
        assert_eq!(split("/review  src 'a b' "), Some(("review", "src 'a b'")));
        assert_eq!(split("/team:fix-1"), Some(("team:fix-1", "")));
        assert_eq!(split("/compact\nkeep names"), Some(("compact", "keep names")));
        for text in ["/etc/hosts is broken", "/", "/ x", "review", "//x", "/a.b", "/:a", "/a:", "/-x", "/ä"]
        {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
