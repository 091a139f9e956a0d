//! "Do not ask again": the changes of permissions that are offered with an ask. Never broader than what the question
//! shows: the exact command, a prefix only for subcommands known to be harmless, one host, one directory.

use std::borrow::Cow;

use qoder_types::{Behavior, PermissionMode, PermissionUpdate, RuleValue, UpdateDestination};

use crate::accesses::find::{Line, ResolvedAccess};
use crate::decide::judge::Judge;
use crate::hosts::Target;
use crate::rules::words::{CommandPattern, comparable, is_plain};
use crate::shell::SimpleCommand;
use crate::shell::knowledge::{runs_arbitrary_code, suggestable_prefix};

/// The most rules one approval stores.
const MOST_RULES: usize = 5;

/// Changes that would make this question unnecessary.
pub(crate) fn suggestions(judge: &Judge<'_>, found: &[ResolvedAccess]) -> Vec<PermissionUpdate> {
    let tool = judge.tool();
    let mut updates: Vec<PermissionUpdate> = Vec::new();
    for found in found {
        let update = match found {
            ResolvedAccess::Line(line) => line_rules(line),
            ResolvedAccess::Fetch(Target::Host { host, .. }) => {
                Some(allow(vec![rule("WebFetch", Some(format!("domain:{host}")))]))
            }
            ResolvedAccess::Edit(place) if judge.is_ordinary(place) => Some(PermissionUpdate::SetMode {
                mode: PermissionMode::AcceptEdits,
                destination: UpdateDestination::Session,
            }),
            ResolvedAccess::Edit(place) | ResolvedAccess::Read(place) if !judge.is_inside(place) => {
                place.real.parent().map(|folder| PermissionUpdate::AddDirectories {
                    directories: vec![folder.to_string_lossy().into_owned()],
                    destination: UpdateDestination::Session,
                })
            }
            ResolvedAccess::Agent(name) => Some(allow(vec![rule("Agent", Some(name.clone()))])),
            ResolvedAccess::Skill { name, .. } => Some(allow(vec![rule("Skill", Some(name.clone()))])),
            ResolvedAccess::Resource { server: Some(server), .. } if server.bytes().all(is_plain) => {
                Some(allow(vec![rule(tool, Some(server.clone()))]))
            }
            ResolvedAccess::As(name) => Some(allow(vec![rule(name, None)])),
            ResolvedAccess::Other => Some(allow(vec![rule(tool, None)])),
            ResolvedAccess::Edit(_)
            | ResolvedAccess::Read(_)
            | ResolvedAccess::Fetch(_)
            | ResolvedAccess::Resource { .. }
            | ResolvedAccess::Person
            | ResolvedAccess::Internal => None,
        };
        updates.extend(update.filter(|update| !updates.contains(update)));
    }
    updates
}

fn rule(tool: &str, content: Option<String>) -> RuleValue {
    RuleValue { tool_name: tool.to_owned(), rule_content: content }
}

fn allow(rules: Vec<RuleValue>) -> PermissionUpdate {
    PermissionUpdate::AddRules {
        rules,
        behavior: Behavior::Allow,
        destination: UpdateDestination::LocalSettings,
    }
}

/// One rule per command of a line that is wholly understood; none when a command cannot be named by a rule.
fn line_rules(line: &Line) -> Option<PermissionUpdate> {
    if !line.reading.doubts.is_empty() {
        return None;
    }
    let mut rules = Vec::new();
    for (command, known) in line.reading.commands.iter().zip(&line.known) {
        if command.wrapped.is_some() || known.only_reads {
            continue;
        }
        if !command.assignments.is_empty() || !known.outputs.is_empty() {
            return None;
        }
        let content = content(command)?;
        let value = rule("Bash", Some(content));
        if !rules.contains(&value) {
            rules.push(value);
        }
    }
    ((1..=MOST_RULES).contains(&rules.len())).then(|| allow(rules))
}

fn content(command: &SimpleCommand) -> Option<String> {
    let words: Vec<Cow<'_, str>> = command.words.iter().map(comparable).collect::<Option<_>>()?;
    let name = words.first()?;
    let plain = |word: &Cow<'_, str>| !word.is_empty() && word.bytes().all(is_plain);
    let text = if words.iter().all(plain) { words.join(" ") } else { command.text.trim().to_owned() };
    let prefix = suggestable_prefix(&command.words).filter(|count| {
        !runs_arbitrary_code(name) && *count <= words.len() && words[..*count].iter().all(plain)
    });
    let content = match prefix {
        Some(count) => format!("{}:*", words[..count].join(" ")),
        None => text,
    };
    // Only a rule that means this very command is offered.
    let pattern = CommandPattern::parse(&content)?;
    (pattern.allows(&command.words) && (prefix.is_some() || pattern.is_exact())).then_some(content)
}
