//! What a session has, as panels: agents, tasks, rules, models, tools, hooks, skills, memory files, plugins, commands.

use std::time::Instant;

use serde_json::Value;

use super::servers::badges;
use super::{Panel, PanelRow};
use crate::cells::duration;
use crate::state::{Denial, Task};
use crate::text::one_line;
use crate::theme::NAMES;

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().map(one_line).unwrap_or_default()
}

fn first_line(value: &Value, field: &str) -> String {
    one_line(value[field].as_str().unwrap_or_default().lines().next().unwrap_or_default())
}

fn joined(value: &Value, field: &str) -> Option<String> {
    let words: Vec<String> =
        value[field].as_array()?.iter().filter_map(Value::as_str).map(one_line).collect();
    Some(words.join(", "))
}

/// Agents that run, and definitions of agents, those that are shadowed included.
pub(crate) fn agents_panel(agents: &[Value], tasks: &[Task], now: Instant) -> Panel {
    let mut panel = Panel::new("Agents", "there are no agents");
    let running = tasks.iter().filter(|task| task.is_agent && task.end.is_none());
    panel.rows.extend(running.map(|task| task_row(task, now)));
    for agent in agents {
        let name = text(agent, "name");
        let mut facts = vec![text(agent, "source")];
        if let Some(by) = agent["shadowedBy"]["source"].as_str() {
            facts.push(format!("shadowed by {by}"));
        } else if agent["disabled"].as_bool() == Some(true) {
            facts.push("switched off by the settings".to_owned());
        }
        facts.extend(agent["model"].as_str().map(one_line));
        facts.push(first_line(agent, "description"));
        let mut row = PanelRow::new(name.clone(), facts.join(" · "));
        row = row
            .with_detail(joined(agent, "tools").map(|tools| format!("tools: {tools}")).unwrap_or_default());
        if let Some(path) = agent["path"].as_str() {
            row = row
                .with_detail(one_line(path))
                .offering("Edit its file", format!("/agents edit {name}"))
                .offering("Delete its file", format!("/agents delete {name}"));
        }
        panel.rows.push(row);
    }
    panel
        .rows
        .push(PanelRow::new("new agent", "writes a file to fill in").offering("Write it", "/agents new"));
    panel
}

/// Background commands and agents.
pub(crate) fn tasks_panel(tasks: &[Task], now: Instant) -> Panel {
    let mut panel = Panel::new("Tasks", "no background task was started");
    panel.rows.extend(tasks.iter().rev().map(|task| task_row(task, now)));
    panel
}

fn task_row(task: &Task, now: Instant) -> PanelRow {
    let mut facts = Vec::new();
    facts.push(task.end.as_ref().map_or_else(|| "running".to_owned(), |end| one_line(&end.status)));
    facts.push(duration(task.elapsed(now)));
    if task.is_agent {
        facts.push(format!("{} calls, {} tokens", task.usage.tool_uses, task.usage.total_tokens));
    }
    facts.extend(task.last_tool.as_deref().map(one_line));
    facts.extend(task.last_line.as_deref().map(one_line));
    let row = PanelRow::new(one_line(&task.description), facts.join(" · ")).offering(
        if task.is_agent { "Show its transcript" } else { "Show its output" },
        format!("/tasks show {}", task.id),
    );
    match &task.end {
        Some(end) => row.with_detail(one_line(&end.summary)),
        None => row.offering("Stop it", format!("/tasks stop {}", task.id)),
    }
}

/// Rules in force by what they say, and the last denials.
pub(crate) fn rules_panel(answer: &Value, denials: &[Denial], session_id: &str) -> Panel {
    let mode = text(answer, "mode");
    let trust =
        if answer["trusted"].as_bool() == Some(true) { "trusted folder" } else { "folder not trusted" };
    let mut panel = Panel::new(format!("Permissions: mode {mode}, {trust}"), "no rules");
    for rule in answer["rules"].as_array().into_iter().flatten() {
        let (behavior, words) = (text(rule, "behavior"), text(rule, "rule"));
        let origin = &rule["origin"];
        let source = text(origin, "source");
        let place = match (origin["file"].as_str(), origin["line"].as_u64()) {
            (Some(file), Some(line)) => format!("{}:{line}", one_line(file)),
            (Some(file), None) => one_line(file),
            (None, _) => source.clone(),
        };
        let scope = match source.as_str() {
            "userSettings" => Some("user"),
            "projectSettings" => Some("project"),
            "localSettings" => Some("local"),
            "session" => Some("session"),
            _ => None,
        };
        let mut row = PanelRow::new(format!("{behavior} {words}"), place);
        if let Some(scope) = scope {
            row = row.offering("Remove it", format!("/permissions remove {scope} {behavior} {words}"));
        }
        panel.rows.push(row);
    }
    let form = "SCOPE allow|ask|deny RULE, with the scope session, local, project or user";
    panel.rows.push(PanelRow::new("add a rule", form).offering("", "/permissions add "));
    for denial in denials.iter().rev().take(10) {
        let row = PanelRow::new(format!("denied {}", one_line(&denial.tool)), one_line(&denial.reason))
            .with_detail(format!(
                "qodercli permissions explain {session_id} {}",
                one_line(&denial.tool_use_id)
            ));
        panel.rows.push(row);
    }
    panel
}

/// Models that can be chosen.
pub(crate) fn models_panel(models: &[Value], current: &str) -> Panel {
    let mut panel = Panel::new(format!("Model: {current}"), "no models are known");
    let now = |value: &str| (value == current).then(|| "in use".to_owned());
    for tier in ["auto", "ultimate", "performance", "efficient", "lite"] {
        let about = now(tier).unwrap_or_else(|| "tier".to_owned());
        panel.rows.push(PanelRow::new(tier, about).offering("Use it", format!("/model {tier}")));
    }
    for model in models {
        let value = text(model, "value");
        let name = Some(text(model, "displayName")).filter(|name| *name != value && !name.is_empty());
        let about = [name, now(&value)].into_iter().flatten().collect::<Vec<_>>().join(" · ");
        if !panel.rows.iter().any(|row| row.label == value) {
            panel
                .rows
                .push(PanelRow::new(value.clone(), about).offering("Use it", format!("/model {value}")));
        }
    }
    panel
}

/// Efforts that can be chosen.
pub(crate) fn effort_panel() -> Panel {
    let mut panel = Panel::new("Effort", "");
    for level in ["default", "low", "medium", "high", "xhigh", "max"] {
        panel.rows.push(PanelRow::new(level, "").offering("Use it", format!("/effort {level}")));
    }
    panel
}

/// Themes that can be chosen.
pub(crate) fn theme_panel(custom: &[String]) -> Panel {
    let mut panel = Panel::new("Theme", "");
    let own = custom.iter().map(String::as_str);
    for name in NAMES.into_iter().chain(own) {
        panel.rows.push(PanelRow::new(name, "").offering("Use it", format!("/theme {name}")));
    }
    panel
}

/// Tools that the model sees.
pub(crate) fn tools_panel(tools: &[Value], servers: &[Value]) -> Panel {
    let mut panel = Panel::new("Tools", "the model sees no tools");
    for tool in tools {
        let name = text(tool, "name");
        let hints = match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((server, tool)) => declared(servers, server, tool),
            None => tool["annotations"].clone(),
        };
        let badges = badges(&hints);
        let first = first_line(tool, "description");
        let about = if badges.is_empty() { first } else { format!("{badges} {first}") };
        panel.rows.push(PanelRow::new(name, about));
    }
    panel
}

/// What a tool of a server declares about itself.
fn declared(servers: &[Value], server: &str, tool: &str) -> Value {
    let row = servers.iter().find(|row| row["name"] == server);
    let tools = row.and_then(|row| row["tools"].as_array());
    let found = tools.and_then(|tools| tools.iter().find(|row| row["name"] == tool));
    found.map_or(Value::Null, |row| row["annotations"].clone())
}

/// Hooks of settings.
pub(crate) fn hooks_panel(hooks: &[Value]) -> Panel {
    let mut panel = Panel::new("Hooks", "no settings define hooks here");
    for hook in hooks {
        let matcher = hook["matcher"].as_str().filter(|matcher| !matcher.is_empty()).unwrap_or("*");
        let label = format!("{} {}", text(hook, "event"), one_line(matcher));
        let place = match (hook["file"].as_str(), hook["line"].as_u64()) {
            (Some(file), Some(line)) => format!("{}:{line}", one_line(file)),
            (Some(file), None) => one_line(file),
            (None, _) => text(hook, "origin"),
        };
        let row = PanelRow::new(label, format!("{}: {}", text(hook, "type"), text(hook, "runs")))
            .with_detail(place);
        panel.rows.push(row);
    }
    panel
}

/// Skills.
pub(crate) fn skills_panel(skills: &[Value]) -> Panel {
    let mut panel = Panel::new("Skills", "there are no skills; docs/skills.md says how to write one");
    for skill in skills {
        let name = text(skill, "name");
        let about = format!("{} · {}", text(skill, "source"), first_line(skill, "description"));
        panel.rows.push(PanelRow::new(name.clone(), about).offering("Use it", format!("/{name}")));
    }
    panel
}

/// Memory files that the model has.
pub(crate) fn memory_panel(files: &[Value]) -> Panel {
    let mut panel = Panel::new("Memory files", "the model has no memory files; /init writes AGENTS.md");
    for file in files {
        let path = text(file, "path");
        let mut facts = vec![text(file, "owner"), text(file, "reason")];
        if let Some(bytes) = file["bytes"].as_u64() {
            facts.push(format!("{bytes} bytes"));
        }
        facts.retain(|fact| !fact.is_empty());
        panel.rows.push(
            PanelRow::new(path.clone(), facts.join(" · "))
                .offering("Edit it", format!("/memory edit {path}")),
        );
    }
    panel
}

/// Plugins.
pub(crate) fn plugins_panel(plugins: &[Value]) -> Panel {
    let mut panel = Panel::new("Plugins", "no plugins; `qodercli plugins install DIR` installs one");
    for plugin in plugins {
        let about = format!("{} · {}", text(plugin, "version"), first_line(plugin, "description"));
        let mut row = PanelRow::new(text(plugin, "name"), about).with_detail(text(plugin, "path"));
        for error in plugin["errors"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            row = row.with_detail(format!("error: {}", one_line(error)));
        }
        panel.rows.push(row.offering("Read plugins again", "/plugins reload"));
    }
    panel
}

/// Commands, those of the front and those of the session.
pub(crate) fn commands_panel(rows: impl Iterator<Item = (String, String, String)>) -> Panel {
    let mut panel = Panel::new("Commands", "");
    for (name, hint, about) in rows {
        let label = if hint.is_empty() { format!("/{name}") } else { format!("/{name} {hint}") };
        panel
            .rows
            .push(PanelRow::new(one_line(&label), one_line(&about)).offering("Use it", format!("/{name}")));
    }
    panel
}

/// What fills the context, as text.
pub(crate) fn context_text(usage: &Value) -> String {
    let total = usage["totalTokens"].as_u64().unwrap_or(0);
    let most = usage["maxTokens"].as_u64().unwrap_or(0);
    let percent = usage["percentage"].as_f64().unwrap_or(0.0);
    let mut text = format!(
        "{total} of {most} tokens of {} are used ({percent} %).",
        one_line(usage["model"].as_str().unwrap_or_default())
    );
    for category in usage["categories"].as_array().into_iter().flatten() {
        let (name, tokens) = (
            one_line(category["name"].as_str().unwrap_or_default()),
            category["tokens"].as_u64().unwrap_or(0),
        );
        let share = (tokens * 30).checked_div(most).unwrap_or(0);
        let width = usize::try_from(share).unwrap_or(0).min(30);
        text.push_str(&format!("\n{name:<16} {tokens:>9}  {}", "#".repeat(width)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shadowed_agents_say_by_what() {
        let agents = [
            json!({ "name": "reviewer", "source": "project", "description": "Reviews.", "tools": ["Read"], "path": "/p/a.md" }),
            json!({ "name": "reviewer", "source": "user", "description": "Old.", "shadowedBy": { "source": "project" } }),
        ];
        let panel = agents_panel(&agents, &[], Instant::now());
        assert_eq!(panel.rows[0].about, "project · Reviews.");
        assert_eq!(panel.rows[0].details, ["tools: Read", "/p/a.md"]);
        assert_eq!(panel.rows[1].about, "user · shadowed by project · Old.");
    }

    #[test]
    fn rules_of_files_can_be_removed_and_others_not() {
        let answer = json!({ "mode": "default", "trusted": true, "rules": [
            { "behavior": "allow", "rule": "Bash(ls)", "origin": { "source": "userSettings", "file": "/u.json", "line": 3 } },
            { "behavior": "deny", "rule": "Read(.env)", "origin": { "source": "cliArg" } },
        ] });
        let panel = rules_panel(&answer, &[], "s");
        assert_eq!(panel.rows[0].about, "/u.json:3");
        assert_eq!(panel.rows[0].offers[0].1, "/permissions remove user allow Bash(ls)");
        assert!(panel.rows[1].offers.is_empty());
    }

    #[test]
    fn badges_of_tools_come_from_their_server() {
        let servers =
            [json!({ "name": "s", "tools": [{ "name": "t", "annotations": { "destructive": true } }] })];
        let panel = tools_panel(&[json!({ "name": "mcp__s__t", "description": "does" })], &servers);
        assert_eq!(panel.rows[0].about, "[destructive] does");
    }
}
