//! The credentials of a session's vaults, as the session uses them: tokens for its MCP servers by their addresses, and variables of
//! its commands. Whatever is secret is removed from everything that the session shows.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::credentials::OpenedCredential;
use crate::drive::node::Node;
use crate::drive::opening::OpenFailure;
use crate::drive::shared::Shared;
use crate::model::auth::{Auth, comparable};
use crate::model::environment::{EnvironmentBody, EnvironmentConfig, Networking};
use crate::model::event::NewEvent;
use crate::model::session::SessionSecrets;
use crate::secrets::DataKey;
use crate::store::SeatRow;

/// Tokens of MCP servers, by the names of the servers.
pub(in crate::drive) type Tokens = HashMap<String, String>;

/// Opens the credentials of a session. Its variables and everything that nothing may show are added to its secrets.
pub(in crate::drive) async fn open(
    node: &Node,
    row: &SeatRow,
    secrets: &mut SessionSecrets,
    shared: &Shared,
) -> Result<Tokens, OpenFailure> {
    let vaults = row.session.session.body.vaults();
    if vaults.is_empty() {
        return Ok(Tokens::new());
    }
    let key = node.keys.data_key(row.tenant, &row.data_key);
    let key = key.map_err(|error| OpenFailure::Session(error.to_string()))?;
    let opened = node.credentials.of_vaults(row.tenant, vaults, &key).await?;
    variables(&opened, row, secrets, shared);
    let tokens = tokens(node, row, &key, &opened, shared).await;
    let hidden = opened.iter().flat_map(|one| one.secrets.values()).chain(tokens.values());
    for (index, value) in hidden.enumerate() {
        secrets.credentials.insert(format!("vault:{index}"), value.clone());
    }
    Ok(tokens)
}

/// The variables of commands. The session's own outrank those of vaults, and an earlier vault a later one.
fn variables(opened: &[OpenedCredential], row: &SeatRow, secrets: &mut SessionSecrets, shared: &Shared) {
    for one in opened {
        let Auth::EnvironmentVariable { secret_name, allowed_hosts, .. } = &one.credential().body.auth else {
            continue;
        };
        if !is_kept_inside(allowed_hosts.as_deref(), &row.environment) {
            let message = format!(
                "The variable {secret_name} is for certain hosts, and commands of this environment reach others. Limit the \
                 networking of the environment to those hosts, or let the credential be used with any host."
            );
            let error = json!({ "type": "credential_host_unreachable_error", "message": message,
                "credential_id": one.credential().id, "vault_id": one.credential().vault });
            report(shared, error);
            continue;
        }
        secrets.variables.entry(secret_name.clone()).or_insert_with(|| one.secrets.token.clone());
    }
}

/// True when commands can send a value to no other host than these. They see the value itself, so the environment's own limits
/// have to hold it.
fn is_kept_inside(allowed: Option<&[String]>, environment: &EnvironmentBody) -> bool {
    let Some(allowed) = allowed else { return true };
    match &environment.config {
        EnvironmentConfig::Cloud { networking, .. } => match networking {
            Networking::Limited { allowed_hosts, allow_package_managers, .. } => {
                !allow_package_managers && allowed_hosts.iter().all(|host| allowed.contains(host))
            }
            Networking::Unrestricted => false,
        },
        EnvironmentConfig::SelfHosted { .. } => false,
    }
}

/// The tokens of MCP servers, renewed where they are over.
async fn tokens(
    node: &Node,
    row: &SeatRow,
    key: &DataKey,
    opened: &[OpenedCredential],
    shared: &Shared,
) -> Tokens {
    let mut tokens = Tokens::new();
    for server in &row.session.session.body.servers() {
        let wanted = comparable(&server.url);
        let is_it = |one: &&OpenedCredential| {
            one.credential().body.auth.server().is_some_and(|url| comparable(url) == wanted)
        };
        let Some(found) = opened.iter().find(is_it) else { continue };
        match node.credentials.current(row.tenant, key, found.clone()).await {
            Ok(current) => drop(tokens.insert(server.name.clone(), current.secrets.token)),
            Err(problem) => {
                let message = format!("The credential of {} cannot be renewed: {problem}.", server.url);
                let error = json!({ "type": "mcp_authentication_failed_error", "mcp_server_name": server.name,
                    "message": message });
                report(shared, error);
            }
        }
    }
    tokens
}

fn report(shared: &Shared, mut error: Value) {
    error["retry_status"] = json!({ "type": "retrying" });
    shared.report(NewEvent::new("session.error", &json!({ "error": error })));
}
