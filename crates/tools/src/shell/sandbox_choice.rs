//! Which commands run inside the sandbox, which leave it, and what the model reads when the sandbox was in the way.
//!
//! Leaving is decided on the whole line: a line that is not one plain command stays inside, whatever it starts with.

use qoder_policy::shell::{Word, read};
use serde_json::Value;

use qoder_process::sandbox::Sandbox;
use qoder_process::sandbox::SandboxSettings;

/// Whether a call of Bash would run outside an enabled sandbox: because the model asks for it and may, or because the
/// settings exclude the command. Such a call is a separate question to the person, never covered by the leave that
/// confined commands have.
#[must_use]
pub fn leaves_sandbox(input: &Value, settings: &SandboxSettings) -> bool {
    if !settings.enabled {
        return false;
    }
    let command = input.get("command").and_then(Value::as_str).unwrap_or_default();
    asks_out(input) && settings.allow_unsandboxed_commands || is_excluded(command, settings)
}

/// Whether the settings let this command run outside: the line is one plain command, and its first words are those of an
/// entry. An entry may end in `:*` or ` *`, which change nothing.
#[must_use]
pub fn is_excluded(command: &str, settings: &SandboxSettings) -> bool {
    if settings.excluded_commands.is_empty() {
        return false;
    }
    let reading = read(command);
    let [only] = reading.commands.as_slice() else { return false };
    let plain = reading.doubts.is_empty() && only.assignments.is_empty() && only.redirections.is_empty();
    let words: Option<Vec<&str>> = only.words.iter().map(Word::as_literal).collect();
    let Some(words) = words.filter(|_| plain) else { return false };
    settings.excluded_commands.iter().any(|entry| {
        let entry = entry.strip_suffix(":*").or_else(|| entry.strip_suffix(" *")).unwrap_or(entry);
        let mut wanted = entry.split_whitespace().peekable();
        wanted.peek().is_some() && {
            let wanted: Vec<&str> = wanted.collect();
            words.len() >= wanted.len() && words.iter().zip(&wanted).all(|(word, wanted)| word == wanted)
        }
    })
}

fn asks_out(input: &Value) -> bool {
    match input.get("dangerouslyDisableSandbox") {
        Some(Value::Bool(flag)) => *flag,
        // Some models write it as a text.
        Some(Value::String(text)) => text.trim() == "true",
        _ => false,
    }
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Without confinement.
    Outside,
    /// Confined.
    Inside,
    /// Confined, although the model asked to leave.
    InsideAnyway,
}

impl Choice {
    /// What the model reads about the choice.
    pub(crate) fn note(self) -> Option<String> {
        match self {
            Self::Outside | Self::Inside => None,
            Self::InsideAnyway => Some(
                "The command ran in the sandbox: the settings do not let commands leave it, so dangerouslyDisableSandbox \
                 was ignored."
                    .to_owned(),
            ),
        }
    }
}

/// Where the call with this input runs.
pub(crate) fn choose(sandbox: Option<&Sandbox>, input: &Value) -> Choice {
    match sandbox.map(Sandbox::settings).filter(|settings| settings.enabled) {
        None => Choice::Outside,
        Some(settings) if leaves_sandbox(input, settings) => Choice::Outside,
        Some(_) if asks_out(input) => Choice::InsideAnyway,
        Some(_) => Choice::Inside,
    }
}

/// Words by which programs tell that they were not let.
const FILE_WORDS: [&str; 3] = ["Read-only file system", "Permission denied", "Operation not permitted"];
const NETWORK_WORDS: [&str; 6] = [
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "The sandbox refused this connection",
    "getaddrinfo",
    "ENETUNREACH",
];

/// One sentence for the model when a confined command failed in a way that the sandbox explains.
pub(crate) fn blocked_note(sandbox: &Sandbox, command: &str, output: &str) -> Option<String> {
    let settings = sandbox.settings();
    let ignored = settings
        .ignore_violations
        .iter()
        .filter(|(prefix, _)| *prefix == "*" || command.trim_start().starts_with(prefix.as_str()))
        .flat_map(|(_, parts)| parts);
    let lines: Vec<&str> = output.lines().collect();
    let ignored: Vec<&String> = ignored.collect();
    let seen = |words: &[&str]| {
        lines.iter().any(|line| {
            words.iter().any(|word| line.contains(word))
                && !ignored.iter().any(|part| line.contains(part.as_str()))
        })
    };
    let (files, network) = (seen(&FILE_WORDS), seen(&NETWORK_WORDS));
    if !files && !network {
        return None;
    }
    let reach = if settings.network.allowed_domains.is_empty() {
        "the network is closed"
    } else {
        "only listed hosts can be reached"
    };
    let leave = if settings.allow_unsandboxed_commands {
        " If that is the cause and the command needs it, run it again with dangerouslyDisableSandbox; the person decides."
    } else {
        ""
    };
    Some(format!(
        "The command ran in the sandbox: it can write in the workspace and in /tmp only, protected files such as .git and \
         .qoder are read-only, and {reach}.{leave}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use qoder_process::sandbox::SandboxPlaces;
    use serde_json::json;

    fn settings(excluded: &[&str], may_leave: bool) -> SandboxSettings {
        SandboxSettings {
            enabled: true,
            excluded_commands: excluded.iter().map(|text| (*text).to_owned()).collect(),
            allow_unsandboxed_commands: may_leave,
            ..SandboxSettings::default()
        }
    }

    #[test]
    fn only_whole_plain_commands_are_excluded() {
        let settings = settings(&["docker", "npm run:*"], true);
        for command in ["docker ps", "docker", "npm run build", "'docker' ps"] {
            assert!(is_excluded(command, &settings), "{command}");
        }
        let inside = [
            "docker ps; rm -rf x",
            "docker ps && ls",
            "dockerd",
            "npm install",
            "echo docker",
            "docker $(cat x)",
            "docker ps > /etc/passwd",
            "PATH=. docker ps",
            "",
        ];
        for command in inside {
            assert!(!is_excluded(command, &settings), "{command}");
        }
    }

    #[test]
    fn the_model_leaves_only_where_it_may() {
        let asking = json!({"command": "ls", "dangerouslyDisableSandbox": true});
        assert!(leaves_sandbox(&asking, &settings(&[], true)));
        assert!(!leaves_sandbox(&asking, &settings(&[], false)));
        assert!(!leaves_sandbox(&asking, &SandboxSettings::default()), "nothing to leave");
        let sandbox = Sandbox::new(settings(&[], false), SandboxPlaces::default());
        assert_eq!(choose(Some(&sandbox), &asking), Choice::InsideAnyway);
        assert!(choose(Some(&sandbox), &asking).note().unwrap().contains("ignored"));
        assert_eq!(choose(Some(&sandbox), &json!({"command": "ls"})), Choice::Inside);
        assert_eq!(choose(None, &asking), Choice::Outside);
    }

    #[test]
    fn a_note_is_given_only_when_the_sandbox_may_be_the_cause() {
        let mut settings = settings(&[], true);
        settings.ignore_violations.insert("cargo".to_owned(), vec!["/known".to_owned()]);
        let sandbox = Sandbox::new(settings, SandboxPlaces::default());
        assert!(blocked_note(&sandbox, "x", "sh: /a: Read-only file system").is_some());
        assert!(blocked_note(&sandbox, "x", "curl: (6) Could not resolve host: a").is_some());
        assert!(blocked_note(&sandbox, "x", "test failed: 1 != 2").is_none());
        assert!(blocked_note(&sandbox, "cargo test", "/known: Permission denied").is_none());
        assert!(blocked_note(&sandbox, "make", "/known: Permission denied").is_some());
    }
}
