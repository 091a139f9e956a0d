//! The commands of a session as far as files define them: built-in commands, command files and skills.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Loaded;
use crate::commands::Local;
use crate::sources::Origin;

/// One command, as hosts and people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// Without its slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may stand behind it; empty for nothing.
    pub argument_hint: String,
    /// Who wrote it.
    pub source: &'static str,
}

impl CommandRow {
    /// The documented row of `supported_commands`.
    #[must_use]
    pub fn to_wire(&self) -> Value {
        json!({ "name": self.name, "description": self.description, "argumentHint": self.argument_hint })
    }
}

/// All commands that files define: built-in commands first, then commands and skills by name.
#[must_use]
pub fn rows_of(loaded: &Loaded) -> Vec<CommandRow> {
    let mut rows: BTreeMap<&str, CommandRow> = BTreeMap::new();
    for command in loaded.commands.iter() {
        rows.insert(
            &command.name,
            CommandRow {
                name: command.name.clone(),
                description: command.description.clone(),
                argument_hint: command.argument_hint.clone().unwrap_or_default(),
                source: command.origin.as_str(),
            },
        );
    }
    // Of a command and a skill with one name, the skill is meant.
    for skill in loaded.skills.iter() {
        rows.insert(
            &skill.name,
            CommandRow {
                name: skill.name.clone(),
                description: skill.description.clone(),
                argument_hint: skill.argument_hint.clone().unwrap_or_default(),
                source: skill.origin.as_str(),
            },
        );
    }
    let built_in = Local::ALL.into_iter().map(|local| CommandRow {
        name: local.name().to_owned(),
        description: local.description().to_owned(),
        argument_hint: local.hint().to_owned(),
        source: Origin::BuiltIn.as_str(),
    });
    built_in.chain(rows.into_values()).collect()
}
