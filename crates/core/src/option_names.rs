//! How messages write the options that they name: as flags of the command line, or as the options of the SDK that the
//! reader uses. One table knows both spellings.

use std::borrow::Cow;

/// How the reader of a message writes options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OptionNames {
    /// `--max-turns`: the command line.
    #[default]
    Flags,
    /// `max_turns`: the Python and Rust SDKs.
    SnakeCase,
    /// `maxTurns`: the TypeScript SDK.
    CamelCase,
}

/// Flags whose options have another name in the SDKs: flag, snake case, camel case.
const IRREGULAR: &[(&str, &str, &str)] = &[
    ("add-dir", "add_dirs", "additionalDirectories"),
    ("append-system-prompt", "system_prompt", "systemPrompt"),
    ("continue", "continue_conversation", "continue"),
    ("json-schema", "output_format", "outputFormat"),
    ("mcp-config", "mcp_servers", "mcpServers"),
    ("no-session-persistence", "persist_session", "persistSession"),
    ("permission-prompt-tool", "permission_prompt_tool_name", "permissionPromptToolName"),
    ("plugin-dir", "plugins", "plugins"),
    ("system-prompt-file", "system_prompt", "systemPrompt"),
];

/// Flags whose options have the same words in the SDKs. `resume-drops-turn` is not among them: clients look for the text of
/// its error, flag included.
const REGULAR: &[&str] = &[
    "agent",
    "agents",
    "allow-dangerously-skip-permissions",
    "allowed-mcp-server-names",
    "allowed-tools",
    "betas",
    "disallowed-tools",
    "effort",
    "fallback-model",
    "fork-session",
    "max-budget-usd",
    "max-thinking-tokens",
    "max-turns",
    "model",
    "permission-mode",
    "resume",
    "resume-session-at",
    "session-id",
    "setting-sources",
    "settings",
    "strict-mcp-config",
    "system-prompt",
    "task-budget",
    "thinking",
    "tools",
];

impl OptionNames {
    /// The names that the program wants which started this one, as it says in its environment.
    #[must_use]
    pub fn of_entrypoint(entrypoint: Option<&str>) -> Self {
        match entrypoint {
            Some("sdk-py" | "sdk-rust") => Self::SnakeCase,
            Some("sdk-ts") => Self::CamelCase,
            Some(_) | None => Self::Flags,
        }
    }

    /// The option of a flag, which is given without its dashes.
    #[must_use]
    pub fn name(self, flag: &str) -> String {
        let irregular = IRREGULAR.iter().find(|(name, _, _)| *name == flag);
        match (self, irregular) {
            (Self::Flags, _) => format!("--{flag}"),
            (Self::SnakeCase, Some((_, snake, _))) => format!("`{snake}`"),
            (Self::CamelCase, Some((_, _, camel))) => format!("`{camel}`"),
            (Self::SnakeCase, None) => format!("`{}`", flag.replace('-', "_")),
            (Self::CamelCase, None) => format!("`{}`", camel_case(flag)),
        }
    }

    /// A message of ours that names flags, with the names that its reader uses.
    #[must_use]
    pub fn reword(self, text: &str) -> Cow<'_, str> {
        if self == Self::Flags || !text.contains("--") {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("--") {
            let (before, from) = rest.split_at(at);
            let word = &from[2..];
            let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(word.len());
            let flag = &word[..end];
            let starts_a_word =
                before.chars().next_back().is_none_or(|c| c.is_whitespace() || "`'(".contains(c));
            out.push_str(before);
            if starts_a_word && is_option(flag) {
                let quoted = out.ends_with('`') && word[end..].starts_with('`');
                let name = self.name(flag);
                out.push_str(if quoted { name.trim_matches('`') } else { &name });
            } else {
                out.push_str(&from[..2 + end]);
            }
            rest = &word[end..];
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}

fn is_option(flag: &str) -> bool {
    REGULAR.contains(&flag) || IRREGULAR.iter().any(|(name, _, _)| *name == flag)
}

fn camel_case(flag: &str) -> String {
    let mut out = String::with_capacity(flag.len());
    for (index, word) in flag.split('-').enumerate() {
        match word.chars().next() {
            Some(first) if index > 0 => {
                out.push(first.to_ascii_uppercase());
                out.push_str(&word[first.len_utf8()..]);
            }
            Some(_) | None => out.push_str(word),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_what_its_reader_can_set() {
        let text = "--max-turns: raise --max-budget-usd, `--add-dir`, or see --help and a--model";
        assert_eq!(OptionNames::Flags.reword(text), text);
        assert_eq!(
            OptionNames::SnakeCase.reword(text),
            "`max_turns`: raise `max_budget_usd`, `add_dirs`, or see --help and a--model"
        );
        assert_eq!(
            OptionNames::CamelCase.reword(text),
            "`maxTurns`: raise `maxBudgetUsd`, `additionalDirectories`, or see --help and a--model"
        );
    }

    #[test]
    fn the_environment_says_which_sdk_it_is() {
        for (entrypoint, names) in [
            (None, OptionNames::Flags),
            (Some("cli"), OptionNames::Flags),
            (Some("sdk-py"), OptionNames::SnakeCase),
            (Some("sdk-rust"), OptionNames::SnakeCase),
            (Some("sdk-ts"), OptionNames::CamelCase),
        ] {
            assert_eq!(OptionNames::of_entrypoint(entrypoint), names, "{entrypoint:?}");
        }
    }
}
