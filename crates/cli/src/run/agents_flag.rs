//! The agents that `--agents` defines.

use std::collections::BTreeMap;

use qoder_config::agents::AgentDefinition;
use qoder_runtime::callbacks::Callbacks;

use crate::command_line::arguments::Arguments;
use crate::exit::Fault;

/// Adds the agents of `--agents`.
pub fn bring(arguments: &Arguments, callbacks: &mut Callbacks) -> Result<(), Fault> {
    for (name, definition) in of_flag(arguments.agents.as_deref())? {
        // What the program declares in its handshake is nearer than its flags.
        callbacks.agents.entry(name).or_insert(definition);
    }
    Ok(())
}

/// The agents that a text of `--agents` defines.
pub fn of_flag(text: Option<&str>) -> Result<BTreeMap<String, AgentDefinition>, Fault> {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    let read = AgentDefinition::from_flag(text).map_err(|problem| {
        Fault::input(
            format!("--agents: {problem}"),
            "give an object such as {\"reviewer\": {\"description\": \"…\", \"prompt\": \"…\"}}",
        )
    })?;
    Ok(read.into_iter().collect())
}
