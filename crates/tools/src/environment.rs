//! The environment of the programs that tools start: that of this process, with what the session changed and without what
//! programs must not know. What is hidden stays hidden, whoever set it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use qoder_core::ports::CommandEnvironment;
use tokio::process::Command;

/// Functions from the environment would replace commands behind the back of whoever judged the text.
const FUNCTIONS: &[u8] = b"BASH_FUNC_";

/// Gives `command` the session's environment.
pub(crate) fn apply(environment: &CommandEnvironment, command: &mut Command) {
    for (name, value) in &environment.changed {
        match value.as_deref().filter(|value| is_usable(name, value)) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    for name in &environment.hidden {
        command.env_remove(name);
    }
}

/// Takes every variable away whose name begins like this.
pub(crate) fn remove_starting_with(environment: &CommandEnvironment, start: &[u8], command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(start) {
            command.env_remove(name);
        }
    }
    for name in environment.changed.keys().filter(|name| name.as_bytes().starts_with(start)) {
        command.env_remove(name);
    }
}

/// Takes relative and empty entries out of the search path: by them the working directory would provide programs.
pub(crate) fn keep_absolute_search_path(environment: &CommandEnvironment, command: &mut Command) {
    let path = match environment.changed.get("PATH") {
        Some(changed) => changed.clone().map(OsString::from),
        None => std::env::var_os("PATH"),
    };
    let Some(path) = path else { return };
    let entries: Vec<_> = std::env::split_paths(&path).collect();
    if entries.iter().all(|entry| entry.is_absolute()) {
        return;
    }
    if let Ok(absolute) = std::env::join_paths(entries.iter().filter(|entry| entry.is_absolute())) {
        command.env("PATH", absolute);
    }
}

/// Takes functions away.
pub(crate) fn remove_functions(environment: &CommandEnvironment, command: &mut Command) {
    remove_starting_with(environment, FUNCTIONS, command);
}

/// True when a program would have the variable.
pub(crate) fn has(environment: &CommandEnvironment, name: &str) -> bool {
    match environment.changed.get(name) {
        Some(value) => value.is_some(),
        None => std::env::var_os(name).is_some(),
    }
}

/// A system takes no other ones, and a program that was given one would not start.
fn is_usable(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}
