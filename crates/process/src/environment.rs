//! The environment of the programs that tools start: that of this process, with what the session changed and without what
//! programs must not know. What is hidden stays hidden, wherever it was set.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use qoder_types::CommandEnvironment;
use tokio::process::Command;

/// Functions from the environment would replace commands after the text was judged.
const FUNCTIONS: &[u8] = b"BASH_FUNC_";

/// Variables by which a shell would read a file or behave otherwise than the text of the command says.
const SHELL_VARIABLES: [&str; 13] = [
    "BASHOPTS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "GLOBIGNORE",
    "GLOBSORT",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
];

/// Gives `command` the session's environment.
pub fn apply(environment: &CommandEnvironment, command: &mut Command) {
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
pub fn remove_starting_with(environment: &CommandEnvironment, start: &[u8], command: &mut Command) {
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
pub fn keep_absolute_search_path(environment: &CommandEnvironment, command: &mut Command) {
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
pub fn remove_functions(environment: &CommandEnvironment, command: &mut Command) {
    remove_starting_with(environment, FUNCTIONS, command);
}

/// True when a program would have the variable.
pub fn has(environment: &CommandEnvironment, name: &str) -> bool {
    match environment.changed.get(name) {
        Some(value) => value.is_some(),
        None => std::env::var_os(name).is_some(),
    }
}

/// A system takes no other ones, and a program that was given one would not start.
fn is_usable(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}

/// Gives the shell the session's environment and takes out what would make it read files or behave otherwise than the
/// text of the command says, and what it must not know.
pub fn clean_environment(builder: &mut Command, environment: &CommandEnvironment) {
    apply(environment, builder);
    keep_absolute_search_path(environment, builder);
    for name in SHELL_VARIABLES {
        builder.env_remove(name);
    }
    remove_functions(environment, builder);
}

/// Where bash is. Looked up once, and only in absolute directories: a relative entry of the search path would let the
/// working directory provide the shell.
pub fn bash_path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let search = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&search)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("bash"))
            .find(|path| path.is_file())
            .unwrap_or_else(|| PathBuf::from("/bin/bash"))
    })
}
