//! `qodercli mcp`: adds servers, prints their status, approves those of a folder, and signs in.

mod add;
mod approve;
mod arguments;
mod auth;
pub mod conformance;
pub mod get;
mod status;

use std::collections::BTreeMap;
use std::path::PathBuf;

use qoder_config::servers::{self as mcp_sources, Described, Place};
use qoder_runtime::setup::{Options, Setup};

use crate::exit::{Exit, Fault};
use crate::screen::{hide_secrets, print_note};
use arguments::ScopeName;

pub use approve::{approve_marked, waiting_server};
pub use arguments::{HELP, McpAction, Where};

/// Runs a command about servers.
pub fn run(action: McpAction, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    match action {
        McpAction::Add(add) => {
            let setup = prepare(&add.place, environment)?;
            add::run(&setup, &add)
        }
        McpAction::AddJson { name, json, scope, place } => {
            add::from_json(&prepare(&place, environment)?, &name, &json, scope)
        }
        McpAction::List { json, place } => status::list(&prepare(&place, environment)?, json),
        McpAction::Get { name, json, place } => get::run(&prepare(&place, environment)?, &name, json),
        McpAction::Status { name, json, place } => {
            status::status(&prepare(&place, environment)?, name.as_deref(), json)
        }
        McpAction::Remove { name, scope, place } => add::remove(&prepare(&place, environment)?, &name, scope),
        McpAction::Approve { names, all, place } => approve::run(&prepare(&place, environment)?, &names, all),
        McpAction::Auth { name, no_browser, place } => {
            auth::sign_in(&prepare(&place, environment)?, &name, no_browser)
        }
        McpAction::Logout { name, place } => auth::sign_out(&prepare(&place, environment)?, &name),
    }
}

pub fn prepare(place: &Where, environment: BTreeMap<String, String>) -> Result<Setup, Fault> {
    let options = Options {
        cwd: place.cwd.clone().unwrap_or_default(),
        settings: place.settings.clone(),
        trust: place.trust,
        environment,
        ..Options::default()
    };
    let setup = Setup::prepare(options)?;
    hide_secrets(&setup);
    for warning in &setup.warnings {
        print_note(&format!("warning: {warning}"));
    }
    Ok(setup)
}

/// Runs something that waits for servers.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Fault> {
    qoder_process::own_process_tree();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault { exit: Exit::General, message: error.to_string(), hint: String::new() })?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// The file of a scope.
fn file(setup: &Setup, scope: ScopeName) -> PathBuf {
    match scope {
        ScopeName::User => setup.config.config_root.join("settings.json"),
        ScopeName::Local => setup.config.project_root.join(".qoder").join("settings.local.json"),
        ScopeName::Project => setup.config.project_root.join(".mcp.json"),
    }
}

/// The scope whose file holds a description, when commands can change it there.
fn scope_of(place: Place) -> Option<ScopeName> {
    match place {
        Place::User => Some(ScopeName::User),
        Place::Local => Some(ScopeName::Local),
        Place::Project => Some(ScopeName::Project),
        Place::Plugin | Place::ProjectSettings | Place::Settings | Place::Flag => None,
    }
}

/// Every description in force or waiting, the winning one of a name last.
fn described(setup: &Setup) -> Vec<Described> {
    let mut warnings = Vec::new();
    let all = mcp_sources::described(&setup.config, &setup.plugins().servers, &mut warnings);
    for warning in warnings {
        print_note(&format!("warning: {warning}"));
    }
    all
}

/// The description that counts for a name.
fn find(setup: &Setup, name: &str) -> Result<Described, Fault> {
    let all = described(setup);
    let Some(one) = all.iter().rev().find(|one| one.name == name) else {
        return Err(unknown(setup, name, &all));
    };
    Ok(one.clone())
}

fn unknown(setup: &Setup, name: &str, all: &[Described]) -> Fault {
    let mut known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let hint = match (known.is_empty(), setup.config.trust.is_trusted()) {
        (false, _) => format!("known are: {}", known.join(", ")),
        (true, true) => format!("`qodercli mcp add {name} -- COMMAND` describes one"),
        (true, false) => {
            "servers of this folder are not looked at: it is not trusted; `qodercli trust` changes that"
                .to_owned()
        }
    };
    Fault::input(format!("there is no MCP server named `{name}`"), hint)
}
