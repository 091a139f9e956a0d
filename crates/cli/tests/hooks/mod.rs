//! Hooks of settings files with real programs: every event with its input, every field of an entry, exit codes, failures,
//! trust, and programs that misbehave. One module per behaviour; `support` runs the program and reads what hooks saw.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod binding;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod elicitation;
#[cfg(test)]
mod events;
#[cfg(test)]
mod fields;
#[cfg(test)]
mod instructions;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod models;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod unreadable_answers;
#[cfg(test)]
mod worktrees;
