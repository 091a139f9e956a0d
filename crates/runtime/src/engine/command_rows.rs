//! What `/name` stands for in a session: what files define, and the prompts of its servers.

use qoder_config::extensions::{CommandRow, rows_of};

use super::Engine;

/// Everything that `/name` stands for in a session, prompts of servers included as far as they are known.
#[must_use]
pub fn rows(engine: &Engine) -> Vec<CommandRow> {
    if engine.no_commands {
        return Vec::new();
    }
    let mut rows = rows_of(&engine.common.extensions.current());
    let prompts = engine.toolbox.prompts().map(|prompts| prompts.commands()).unwrap_or_default();
    rows.extend(prompts.into_iter().map(|prompt| CommandRow {
        argument_hint: prompt.hint(),
        name: prompt.name,
        description: prompt.description,
        source: "mcp",
    }));
    rows
}
