//! Behaviour of whole turns of the real program against a scripted model: what is printed, what the model is sent, what
//! is kept, and what happens when something goes wrong. One module per behaviour; `support` holds the short ways to run
//! the program and to read what it said.

#[cfg(test)]
mod agent_account;
#[cfg(test)]
mod agent_background;
#[cfg(test)]
mod agent_brings;
#[cfg(test)]
mod agent_isolation;
#[cfg(test)]
mod agent_killed;
#[cfg(test)]
mod agent_limits;
#[cfg(test)]
mod agent_memory;
#[cfg(test)]
mod agent_not_resumed;
#[cfg(test)]
mod agent_permissions;
#[cfg(test)]
mod agent_stops;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod auto_mode;
#[cfg(test)]
mod background_tasks;
#[cfg(test)]
mod batches;
#[cfg(test)]
mod betas;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod compaction;
mod config_tool;
#[cfg(test)]
mod confined_commands;
#[cfg(test)]
mod escaped_processes;
#[cfg(test)]
mod explained_calls;
#[cfg(test)]
mod interrupt;
#[cfg(test)]
mod killed_with_tasks;
#[cfg(test)]
mod model_faults;
#[cfg(test)]
mod model_profiles;
#[cfg(test)]
mod models_check;
#[cfg(test)]
mod move_to_background;
#[cfg(test)]
mod moved_calls;
#[cfg(test)]
mod named_models;
#[cfg(test)]
mod one_connection;
#[cfg(test)]
mod option_names;
#[cfg(test)]
mod output_formats;
#[cfg(test)]
mod parked;
#[cfg(test)]
mod parked_agents;
#[cfg(test)]
mod parked_always;
#[cfg(test)]
mod parked_calls;
#[cfg(test)]
mod parked_inputs;
#[cfg(test)]
mod parked_killed;
#[cfg(test)]
mod parked_modes;
#[cfg(test)]
mod parked_questions;
#[cfg(test)]
mod path_permissions;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod prompt_prefix;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod reused_call_ids;
#[cfg(test)]
mod sandboxed_commands;
#[cfg(test)]
mod stream_input;
#[cfg(test)]
mod structured_output;
#[cfg(test)]
mod support;
#[cfg(test)]
mod task_notices;
#[cfg(test)]
mod task_output_interrupt;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod terminal_questions;
#[cfg(test)]
mod three_protocols;
#[cfg(test)]
mod tool_errors;
#[cfg(test)]
mod tool_list;
#[cfg(test)]
mod turn_limits;
#[cfg(test)]
mod web_tools;
#[cfg(test)]
mod worktrees;
