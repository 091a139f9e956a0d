//! How servers are doing: all are connected at once, within a bound, and what came of it is shown. Colour is for terminals
//! alone.

use std::collections::BTreeMap;

use qoder_config::servers::{Approvals, Flags, OfAgent, of_agents, standing};
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::setup::Setup;
use serde_json::{Value, json};

use super::get::{described_as, plain};
use super::{described, unknown};
use crate::exit::{Exit, Fault};
use crate::screen::{Ink, Paint, print_json, print_line, print_note, print_painted, print_row};

/// One line for each server.
pub fn list(setup: &Setup, as_json: bool) -> Result<Exit, Fault> {
    let mut rows = rows(setup, None)?;
    rows.extend(rows_of_agents(setup)?);
    if as_json {
        let rows: Vec<Value> = rows.iter().map(brief).collect();
        print_json(&Value::Array(rows))?;
        return Ok(Exit::Success);
    }
    explain_missing(setup, rows.is_empty())?;
    let paint = Paint::of_stdout(&setup.options.environment);
    let width = rows.iter().map(|row| text(row, "name").len()).max().unwrap_or_default();
    for row in &rows {
        let target = target(&row["config"]);
        let count = row["tools"]
            .as_array()
            .map(|tools| format!(", {} {}", tools.len(), if tools.len() == 1 { "tool" } else { "tools" }))
            .unwrap_or_default();
        let error =
            row.get("error").map(|error| format!(": {}", first_line(&plain(error)))).unwrap_or_default();
        let status = text(row, "status");
        let agent =
            row.get("agent").map(|agent| format!(", for the agent {}", plain(agent))).unwrap_or_default();
        let line = paint.line().plain(&format!("{:<width$}  ", text(row, "name"))).ink(ink(status), status);
        let rest = format!("{count}{error}  [{}{agent}] {target}", text(row, "scope"));
        print_painted(&line.plain(&rest))?;
    }
    Ok(Exit::Success)
}

/// Everything that is known about one server, or all.
pub fn status(setup: &Setup, name: Option<&str>, as_json: bool) -> Result<Exit, Fault> {
    let rows = rows(setup, name)?;
    if as_json {
        let value =
            if name.is_some() { rows.into_iter().next().unwrap_or_default() } else { Value::Array(rows) };
        print_json(&value)?;
        return Ok(Exit::Success);
    }
    explain_missing(setup, rows.is_empty() && name.is_none())?;
    let paint = Paint::of_stdout(&setup.options.environment);
    for row in &rows {
        let status = text(row, "status");
        let line = paint.line().plain(&format!("{}  ", text(row, "name"))).ink(ink(status), status);
        print_painted(&line)?;
        print_row(&format!("  scope   {}", text(row, "scope")))?;
        print_row(&format!("  reached {}", target(&row["config"])))?;
        if let Some(info) = row.get("serverInfo") {
            print_row(&format!("  server  {} {}", plain(&info["name"]), plain(&info["version"])))?;
        }
        if let Some(error) = row.get("error") {
            print_row(&format!("  error   {}", plain(error)))?;
        }
        for tool in row["tools"].as_array().into_iter().flatten() {
            let badges = BADGES.iter().filter(|(hint, _)| tool["annotations"][hint] == json!(true));
            let hints: String = badges.map(|(_, badge)| format!(" [{badge}]")).collect();
            let about = first_line(&plain(&tool["description"]));
            print_row(&format!("  tool    {}{hints}  {about}", plain(&tool["name"])))?;
        }
    }
    Ok(Exit::Success)
}

/// Says why a list is empty, and what an untrusted folder leaves out of one that is not.
fn explain_missing(setup: &Setup, is_empty: bool) -> Result<(), Fault> {
    let folder = &setup.config.project_root;
    let names = [".mcp.json", ".qoder/settings.json", ".qoder/settings.local.json"];
    // Whether they are there is all that is looked at: nothing in such a folder is read.
    let unread: Vec<&str> = match setup.config.trust.is_trusted() {
        true => Vec::new(),
        false => names.into_iter().filter(|name| folder.join(name).exists()).collect(),
    };
    let unread = match unread.is_empty() {
        true => None,
        false => Some(format!(
            "{} of this folder {} not read, because the folder is not trusted; `qodercli trust` changes that",
            unread.join(" and "),
            if unread.len() == 1 { "is" } else { "are" }
        )),
    };
    match (is_empty, unread) {
        (true, Some(unread)) => print_line(&format!("no MCP servers: {unread}")),
        (true, None) => {
            let user = setup.config.config_root.join("settings.json");
            print_line(&format!(
                "no MCP servers: neither {} nor the files of this folder (.mcp.json, .qoder/settings.local.json) describe \
                 one; `qodercli mcp add NAME -- COMMAND` does",
                user.display()
            ))
        }
        (false, Some(unread)) => {
            print_note(&format!("warning: {unread}"));
            Ok(())
        }
        (false, None) => Ok(()),
    }
}

/// Connects to one server, or all, and answers with the documented rows.
fn rows(setup: &Setup, name: Option<&str>) -> Result<Vec<Value>, Fault> {
    let mut callbacks = Callbacks::default();
    for warning in setup.bring_servers(&Flags::default(), &mut callbacks)? {
        print_note(&format!("warning: {warning}"));
    }
    if let Some(name) = name {
        callbacks.servers.retain(|server| server.name == name);
        callbacks.refused_servers.retain(|server| server.name == name);
        if callbacks.servers.is_empty() && callbacks.refused_servers.is_empty() {
            return Err(unknown(setup, name, &described(setup)));
        }
    }
    Ok(super::block_on(setup.server_rows(&callbacks))??)
}

/// The servers that agents describe for themselves. They run while their agent works, so nothing is connected.
fn rows_of_agents(setup: &Setup) -> Result<Vec<Value>, Fault> {
    let approvals = Approvals::load(&setup.config.config_root);
    let row = |one: &OfAgent| {
        let (shown, problem) = described_as(&one.server);
        let reason =
            standing(&one.server, &setup.config.settings, &approvals, &setup.config).reason(&one.server.name);
        let status = match (&problem, &reason) {
            (Some(_), _) => "failed",
            (None, Some(_)) => "disabled",
            (None, None) => "pending",
        };
        let mut row = json!({
            "name": one.server.name, "agent": one.agent, "status": status, "config": shown,
            "scope": one.server.place.scope().as_str(),
        });
        if let Some(error) = problem.or(reason) {
            row["error"] = json!(error);
        }
        row
    };
    Ok(of_agents(&setup.extensions(BTreeMap::new())?.agents).iter().map(row).collect())
}

/// What a server claims of a tool, as people read it.
const BADGES: [(&str, &str); 3] =
    [("readOnly", "read-only"), ("destructive", "destructive"), ("openWorld", "open-world")];

/// The row of a list: as many tools as there are, not which.
fn brief(row: &Value) -> Value {
    let mut brief = row.clone();
    let count = row["tools"].as_array().map(Vec::len);
    if let Some(fields) = brief.as_object_mut() {
        fields.remove("tools");
        fields.extend(count.map(|count| ("toolCount".to_owned(), json!(count))));
    }
    brief
}

/// What is started, or where it is.
fn target(config: &Value) -> String {
    match config.get("url") {
        Some(url) => format!("{} ({})", plain(url), text(config, "type")),
        None => {
            let args = config["args"].as_array().into_iter().flatten().map(plain);
            let words: Vec<String> = std::iter::once(plain(&config["command"])).chain(args).collect();
            words.join(" ")
        }
    }
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

fn ink(status: &str) -> Ink {
    match status {
        "connected" => Ink::Good,
        "failed" => Ink::Bad,
        "needs-auth" => Ink::Warning,
        _ => Ink::Faint,
    }
}
