//! The hooks that an agent brings with its definition, beside those of the session. Those of a project's file run under
//! the same condition as the hooks of its settings; without them the agent must not work, because it is unknown what they
//! would have denied.

use std::sync::Arc;

use qoder_config::agents::AgentDefinition;
use qoder_config::hooks::{self, Hook};
use qoder_config::sources::Origin;
use qoder_hooks::Hooks;

/// The session's hooks with those of an agent that another session starts. What it says about the end of a turn is about
/// its own.
pub(super) fn of_child(
    hooks: &Arc<Hooks>,
    definition: Option<&AgentDefinition>,
) -> Result<Arc<Hooks>, String> {
    with(hooks, definition, |definition| hooks::of_agent(definition).0)
}

/// The session's hooks with those of the agent that the main conversation runs as. They are hooks of the session then:
/// they hold for the agents that it starts, too.
pub(crate) fn of_main(
    hooks: &Arc<Hooks>,
    definition: Option<&AgentDefinition>,
) -> Result<Arc<Hooks>, String> {
    with(hooks, definition, |definition| hooks::of_main_agent(definition).0)
}

// What is wrong with them was reported when the definition was read; a broken one that decides becomes one that fails.
fn with(
    hooks: &Arc<Hooks>,
    definition: Option<&AgentDefinition>,
    read: impl Fn(&AgentDefinition) -> Vec<Hook>,
) -> Result<Arc<Hooks>, String> {
    let Some((definition, value)) = definition.and_then(|one| Some((one, one.hooks.as_ref()?))) else {
        return Ok(Arc::clone(hooks));
    };
    if definition.origin == Origin::Project && hooks.settings().is_some_and(|one| !one.vouches_for(value)) {
        return Err("its hooks were not there, or were others, when its folder was trusted; look at them with `qodercli \
                    trust`, which trusts them as they are now"
            .to_owned());
    }
    Ok(Arc::new(hooks.with(read(definition))))
}
