//! Commands with verbs of their own: servers, agents, tasks, rules, memory files, plugins, settings, and going back.

use std::sync::Arc;
use std::time::Instant;

use qoder_protocol::control::HostRequest;
use qoder_types::{Behavior, PermissionUpdate, RuleValue, UpdateDestination};
use serde_json::{Value, json};

use super::perform::{CommandContext, CommandError, Outcome, list};
use crate::panels;
use crate::text::one_line;

type Performed = Result<Outcome, CommandError>;

fn usage(text: &str) -> CommandError {
    CommandError::Usage(text.to_owned())
}

/// The verb and what follows it.
fn verb(rest: &str) -> (&str, &str) {
    let (verb, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (verb, rest.trim())
}

pub(super) async fn mcp(rest: &str, context: &CommandContext) -> Performed {
    let servers = || list(context, HostRequest::McpStatus {}, "mcpServers");
    let (verb, name) = verb(rest);
    let server_name = name.to_owned();
    let (request, done) = match (verb, name) {
        ("", _) => return Ok(Outcome::Panel(panels::servers_panel(&servers().await?))),
        ("reload", _) => {
            (HostRequest::McpReload {}, "The descriptions of servers were read again.".to_owned())
        }
        (_, "") => {
            return Err(usage("name a server: /mcp show|approve|reconnect|enable|disable|auth|clear NAME"));
        }
        ("show", _) => {
            let found = servers().await?.into_iter().find(|row| row["name"] == name);
            let row = found.ok_or_else(|| usage(&format!("there is no MCP server `{name}`")))?;
            return Ok(Outcome::Panel(panels::server_panel(&row)));
        }
        ("reconnect", _) => (HostRequest::McpReconnect { server_name }, format!("{name} is connected.")),
        ("enable" | "disable", _) => {
            let enabled = verb == "enable";
            (HostRequest::McpToggle { server_name, enabled }, format!("{name} is {verb}d."))
        }
        ("clear", _) => {
            (HostRequest::McpClearAuth { server_name }, format!("The sign-in to {name} is forgotten."))
        }
        ("auth", _) => return sign_in(name, context).await,
        ("approve", _) => return approve(name, context).await,
        _ => return Err(usage(&format!("`{verb}` is not a verb of /mcp"))),
    };
    context.client.request(request).await?;
    Ok(Outcome::Output(one_line(&done)))
}

/// Shows what a server would run, with the line that approves just that; or approves it.
async fn approve(rest: &str, context: &CommandContext) -> Performed {
    let (name, mark) = verb(rest);
    if mark.is_empty() {
        let (lines, mark) = context.machine.waiting_server(name.to_owned()).await?;
        return Ok(Outcome::Panel(panels::approve_panel(name, &lines, &mark)));
    }
    context.machine.approve_server(name.to_owned(), mark.to_owned()).await?;
    context.client.request(HostRequest::McpReload {}).await?;
    Ok(Outcome::Output(format!("{} is approved as it is described now.", one_line(name))))
}

async fn sign_in(name: &str, context: &CommandContext) -> Performed {
    if let Some((name, address)) = name.split_once(char::is_whitespace) {
        let (server_name, callback_url) = (name.to_owned(), address.trim().to_owned());
        context.client.request(HostRequest::McpSubmitOauthCallbackUrl { server_name, callback_url }).await?;
        return Ok(Outcome::Output(format!("Signed in to {}.", one_line(name))));
    }
    let request = HostRequest::McpAuthenticate { server_name: name.to_owned(), redirect_uri: None };
    let answer = context.client.request(request).await?;
    match answer["authUrl"].as_str() {
        Some(address) => Ok(Outcome::SignIn(name.to_owned(), address.to_owned())),
        None => Ok(Outcome::Output(format!("Signed in to {}.", one_line(name)))),
    }
}

pub(super) async fn agents(rest: &str, context: &CommandContext) -> Performed {
    let rows = list(context, HostRequest::ListAgents {}, "agents").await?;
    let (verb, name) = verb(rest);
    let path = || {
        let active = rows.iter().find(|row| row["name"] == name && row["path"].is_string());
        let path = active.and_then(|row| row["path"].as_str());
        path.map(str::to_owned).ok_or_else(|| usage(&format!("no file defines an agent `{name}`")))
    };
    match verb {
        "" => Ok(Outcome::Panel(panels::agents_panel(&rows, &context.known.tasks, Instant::now()))),
        "edit" => Ok(Outcome::EditFile(path()?)),
        "delete" => {
            let path = path()?;
            context.machine.remove_file(path.clone()).await?;
            Ok(Outcome::Output(format!("Deleted {}. It counts from the next turn.", one_line(&path))))
        }
        "new" => {
            let name = if name.is_empty() { "new-agent" } else { name };
            if !name.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_')) {
                return Err(usage("the name of an agent has letters, digits, - and _"));
            }
            let text = format!(
                "---\nname: {name}\ndescription: Say when the model should use this agent.\ntools: Read, Grep, Glob\n---\n\
                 Say what the agent does, and how.\n"
            );
            let path = context.machine.write_new(format!("agents/{name}.md"), text).await?;
            Ok(Outcome::EditFile(path))
        }
        _ => Err(usage(&format!("`{verb}` is not a verb of /agents; there are new, edit and delete"))),
    }
}

pub(super) async fn tasks(rest: &str, context: &CommandContext) -> Performed {
    let (verb, id) = verb(rest);
    let tasks = &context.known.tasks;
    let task = || {
        let mut found = tasks.iter().filter(|task| !id.is_empty() && task.id.starts_with(id));
        found.next().ok_or_else(|| usage(&format!("there is no task `{id}`")))
    };
    match verb {
        "" => Ok(Outcome::Panel(panels::tasks_panel(tasks, Instant::now()))),
        "show" => {
            let task = task()?;
            if task.is_agent {
                return Ok(Outcome::AgentTranscript(task.id.clone()));
            }
            let request = HostRequest::TaskOutput { task_id: task.id.clone() };
            let answer = context.client.request(request).await?;
            let text = answer["output"].as_str().unwrap_or_default().to_owned();
            Ok(Outcome::Page(format!("Output of {}", one_line(&task.description)), text))
        }
        "stop" => {
            let task = task()?;
            context.client.request(HostRequest::StopTask { task_id: task.id.clone() }).await?;
            Ok(Outcome::Output(format!("Stopping {}.", one_line(&task.description))))
        }
        _ => Err(usage(&format!("`{verb}` is not a verb of /tasks; there are show and stop"))),
    }
}

pub(super) async fn permissions(rest: &str, context: &CommandContext) -> Performed {
    if rest.is_empty() {
        let answer = context.client.request(HostRequest::ListPermissionRules {}).await?;
        return Ok(Outcome::Panel(panels::rules_panel(
            &answer,
            &context.known.denials,
            context.client.session_id(),
        )));
    }
    let form =
        "/permissions add|remove SCOPE allow|ask|deny RULE, with the scope session, local, project or user";
    let mut words = rest.splitn(4, char::is_whitespace);
    let (Some(verb), Some(scope), Some(behavior), Some(rule)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(usage(form));
    };
    let destination = match scope {
        "session" => UpdateDestination::Session,
        "local" => UpdateDestination::LocalSettings,
        "project" => UpdateDestination::ProjectSettings,
        "user" => UpdateDestination::UserSettings,
        _ => return Err(usage(form)),
    };
    let behavior = match behavior {
        "allow" => Behavior::Allow,
        "ask" => Behavior::Ask,
        "deny" => Behavior::Deny,
        _ => return Err(usage(form)),
    };
    let rules = vec![rule_value(rule.trim())];
    let update = match verb {
        "add" => PermissionUpdate::AddRules { rules, behavior, destination },
        "remove" => PermissionUpdate::RemoveRules { rules, behavior, destination },
        _ => return Err(usage(form)),
    };
    context.client.request(HostRequest::UpdatePermissions { updates: vec![update] }).await?;
    let done = if verb == "add" { "added" } else { "removed" };
    Ok(Outcome::Output(format!("{} was {done} ({scope}).", one_line(rule.trim()))))
}

/// A rule as it is written in settings, as two values.
fn rule_value(rule: &str) -> RuleValue {
    match rule.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?))) {
        Some((tool, content)) => RuleValue {
            tool_name: tool.to_owned(),
            rule_content: Some(content.replace("\\(", "(").replace("\\)", ")")),
        },
        None => RuleValue { tool_name: rule.to_owned(), rule_content: None },
    }
}

pub(super) async fn memory(rest: &str, context: &CommandContext) -> Performed {
    match verb(rest) {
        ("edit", path) if !path.is_empty() => Ok(Outcome::EditFile(path.to_owned())),
        ("" | "manage", _) => {
            let files = list(context, HostRequest::ListMemory {}, "files").await?;
            Ok(Outcome::Panel(panels::memory_panel(&files)))
        }
        _ => Err(usage("/memory lists memory files; /memory edit FILE edits one")),
    }
}

pub(super) async fn plugins(rest: &str, context: &CommandContext) -> Performed {
    if rest == "reload" {
        let answer = context.client.request(HostRequest::ReloadPlugins {}).await?;
        let count = answer["plugins"].as_array().map_or(0, Vec::len);
        let problems = answer["error_count"].as_u64().unwrap_or(0);
        return Ok(Outcome::Output(format!("Read again: {count} plugins, {problems} problems.")));
    }
    let plugins = list(context, HostRequest::ListPlugins {}, "plugins").await?;
    Ok(Outcome::Panel(panels::plugins_panel(&plugins)))
}

pub(super) async fn settings(rest: &str, context: &CommandContext) -> Performed {
    let (key, value) = verb(rest);
    if value.is_empty() {
        let text = context.machine.settings_text().await;
        let shown: Vec<&str> = text.lines().filter(|line| line.starts_with(key)).collect();
        return Ok(Outcome::Output(if shown.is_empty() {
            format!("{} is not set", one_line(key))
        } else {
            shown.join("\n")
        }));
    }
    let value: Value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
    let shown = one_line(&format!("{key} = {value}"));
    let file = context.machine.change_setting(key.to_owned(), value).await?;
    Ok(Outcome::Output(format!("{shown} is set in {file}.")))
}

/// So many messages say what going back to them would change; older ones are listed without.
const MEASURED_PROMPTS: usize = 20;

pub(super) async fn rewind(rest: &str, context: &CommandContext) -> Performed {
    let (id, scope) = verb(rest);
    if id.is_empty() {
        return Ok(Outcome::Panel(rewind_panel(context).await));
    }
    let dry = matches!(scope, "" | "dry");
    let answer = context.client.request(rewind_request(id, if dry { "both" } else { scope }, dry)).await?;
    if let Some(problem) = answer["error"].as_str() {
        return Err(CommandError::Usage(problem.to_owned()));
    }
    let mut text = rewind_figures(&answer);
    for file in answer["filesChanged"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text.push_str(&format!("\n  {}", one_line(file)));
    }
    if dry {
        return Ok(Outcome::Output(format!("Going back would change {text}")));
    }
    Ok(Outcome::Rewound(format!("Went back: {text}"), scope != "files"))
}

fn rewind_request(id: &str, scope: &str, dry: bool) -> HostRequest {
    HostRequest::Rewind { user_message_id: id.to_owned(), scope: Some(scope.to_owned()), dry_run: Some(dry) }
}

/// What going back changes, in a few words.
fn rewind_figures(answer: &Value) -> String {
    let files = answer["filesChanged"].as_array().map_or(0, Vec::len);
    let figure = |name: &str| answer[name].as_u64().unwrap_or(0);
    let word = if files == 1 { "file" } else { "files" };
    format!("{files} {word} +{} -{}", figure("insertions"), figure("deletions"))
}

/// The messages to go back to, with what that would change; all of them are asked about at once.
async fn rewind_panel(context: &CommandContext) -> panels::Panel {
    let mut asked = tokio::task::JoinSet::new();
    for prompt in context.known.prompts.iter().rev().take(MEASURED_PROMPTS) {
        let (client, id) = (Arc::clone(&context.client), prompt.uuid.clone());
        asked.spawn(async move {
            let answer = client.request(rewind_request(&id, "both", true)).await;
            // Without checkpoints the conversation can still be taken back.
            let figures = answer.ok().filter(|answer| answer["error"].is_null());
            (id, figures.map(|answer| rewind_figures(&answer)).unwrap_or_default())
        });
    }
    let figures = asked.join_all().await.into_iter().collect();
    panels::rewind_panel(&context.known.prompts, &figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_settings_write_them() {
        for text in ["Bash", "Bash(npm test:*)", "Edit(src/**)", "Bash(echo \\(x\\))"] {
            assert_eq!(rule_value(text).text(), text);
        }
    }
}
