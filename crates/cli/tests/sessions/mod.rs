//! Sessions, settings, trust, memory and input as a person or script meets them: every test runs the real binary in a
//! sandbox, against the offline model or a scripted server. One module per behaviour; `support` holds the short ways
//! to run the program and to look at what it left behind.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod first_commands;
#[cfg(test)]
mod hang_up;
#[cfg(test)]
mod hostile_folders;
#[cfg(test)]
mod later_release;
#[cfg(test)]
mod lock;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod other_programs;
#[cfg(test)]
mod project_variables;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod resume_at;
#[cfg(test)]
mod resume_killed;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod secrets_in_pieces;
#[cfg(test)]
mod sessions_command;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod settings_config;
#[cfg(test)]
mod settings_files;
#[cfg(test)]
mod settings_values;
#[cfg(test)]
mod support;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod timeline;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod unreadable_messages;
