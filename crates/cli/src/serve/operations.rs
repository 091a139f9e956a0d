//! What an operator does beside a server.

use qoder_server::admin::{self, NewTokenOptions};
use qoder_server::config::Config;
use qoder_server::model::time::Time;
use serde_json::{Value, json};

use super::arguments::{KeysAction, ServeAction, ServeSessionsAction, TokenAction};
use super::fault;
use crate::exit::{Exit, Fault};
use crate::screen;

/// Does it.
pub(super) async fn run(action: ServeAction, config: Config) -> Result<Exit, Fault> {
    match action {
        ServeAction::Token { action } => token(action, &config).await,
        ServeAction::Doctor { json } => doctor(&config, json).await,
        ServeAction::Migrate { check } => migrate(&config, check).await,
        ServeAction::Backup { file } => {
            admin::backup(&config, &file).await.map_err(|error| fault(&error))?;
            screen::print_line(&format!("copied the database to {}", file.display()))?;
            Ok(Exit::Success)
        }
        ServeAction::Nodes => {
            for node in admin::nodes(&config).await.map_err(|error| fault(&error))? {
                let state = if node.is_draining { "draining" } else { "active" };
                let row = format!(
                    "{}  {state}  {}  {}  since {}",
                    node.id, node.address, node.version, node.started_at
                );
                screen::print_row(&row)?;
            }
            Ok(Exit::Success)
        }
        ServeAction::Sessions { action } => sessions(action, &config).await,
        ServeAction::Keys { action: KeysAction::Rotate } => {
            let count = admin::rotate_keys(&config).await.map_err(|error| fault(&error))?;
            screen::print_line(&format!("the new master key seals {count} keys; restart the server"))?;
            Ok(Exit::Success)
        }
    }
}

async fn token(action: TokenAction, config: &Config) -> Result<Exit, Fault> {
    match action {
        TokenAction::Create { user, tenant, scopes, expires } => {
            let expires_at = match &expires {
                None => None,
                Some(text) => Some(admin::parse_lifetime(text, Time::now()).ok_or_else(|| {
                    Fault::input(
                        format!("`--expires` is `{text}`"),
                        "give a number and a unit: 90d, 12h, 30m or 60s",
                    )
                })?),
            };
            let options = NewTokenOptions { user, tenant, scopes, expires_at };
            let token = admin::create_token(config, options).await.map_err(|error| fault(&error))?;
            screen::print_line(&token.text)?;
            Ok(Exit::Success)
        }
        TokenAction::List { json } => {
            let tokens = admin::list_tokens(config).await.map_err(|error| fault(&error))?;
            for token in tokens {
                let state = match (token.revoked_at, token.expires_at) {
                    (Some(_), _) => "revoked",
                    (None, Some(at)) if at <= Time::now() => "expired",
                    (None, _) => "active",
                };
                if json {
                    let row = json!({
                        "id": token.id, "user": token.user, "tenant": token.tenant.name, "scopes": token.scopes,
                        "state": state, "created_at": token.created_at, "expires_at": token.expires_at,
                        "used_at": token.used_at, "revoked_at": token.revoked_at,
                    });
                    screen::print_json_line(row.to_string())?;
                } else {
                    let used =
                        token.used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
                    let scopes = token.scopes.join(",");
                    let (id, user, tenant) = (&token.id, &token.user, &token.tenant.name);
                    screen::print_row(&format!("{id}  {state}  {user}  tenant {tenant}  {scopes}  {used}"))?;
                }
            }
            Ok(Exit::Success)
        }
        TokenAction::Revoke { id } => {
            if admin::revoke_token(config, &id).await.map_err(|error| fault(&error))? {
                screen::print_line(&format!("revoked {id}"))?;
                return Ok(Exit::Success);
            }
            let hint = "run `qodercli serve token list` to see tokens";
            Err(Fault {
                exit: Exit::General,
                message: format!("there is no active token `{id}`"),
                hint: hint.to_owned(),
            })
        }
    }
}

async fn doctor(config: &Config, as_json: bool) -> Result<Exit, Fault> {
    let checked = admin::doctor(config).await;
    let is_good = checked.iter().all(|check| check.problem.is_none());
    if as_json {
        let rows: Vec<Value> = checked
            .iter()
            .map(|check| json!({ "check": check.what, "found": check.found, "problem": check.problem }))
            .collect();
        screen::print_json_line(json!({ "ok": is_good, "checks": rows }).to_string())?;
    } else {
        for check in &checked {
            let word = if check.problem.is_none() { "ok  " } else { "FAIL" };
            screen::print_row(&format!("{word}  {:<16} {}", check.what, check.found))?;
            if let Some(problem) = &check.problem {
                screen::print_row(&format!("      {:<16} {problem}", ""))?;
            }
        }
    }
    Ok(if is_good { Exit::Success } else { Exit::General })
}

async fn migrate(config: &Config, check: bool) -> Result<Exit, Fault> {
    let before = admin::migration(config).await.map_err(|error| fault(&error))?;
    if check {
        screen::print_line(&format!("schema {}, this program has {}", before.found, before.known))?;
        return Ok(if before.found < before.known { Exit::General } else { Exit::Success });
    }
    let after = admin::migrate(config).await.map_err(|error| fault(&error))?;
    screen::print_line(&format!("schema {} (was {})", after.found, before.found))?;
    Ok(Exit::Success)
}

async fn sessions(action: ServeSessionsAction, config: &Config) -> Result<Exit, Fault> {
    match action {
        ServeSessionsAction::Quarantined => {
            for session in admin::quarantined(config).await.map_err(|error| fault(&error))? {
                screen::print_row(&format!(
                    "{}  {}  since {}",
                    session.id,
                    session.status.as_str(),
                    session.at
                ))?;
            }
            Ok(Exit::Success)
        }
        ServeSessionsAction::Release { id } => {
            if admin::release(config, &id).await.map_err(|error| fault(&error))? {
                screen::print_line(&format!("{id} continues"))?;
                return Ok(Exit::Success);
            }
            let hint = "run `qodercli serve sessions quarantined` to see those that are";
            let message = format!("the session `{id}` is not quarantined");
            Err(Fault { exit: Exit::Session, message, hint: hint.to_owned() })
        }
        ServeSessionsAction::Export { id } => {
            let Some(lines) = admin::export(config, &id).await.map_err(|error| fault(&error))? else {
                let message = format!("there is no session `{id}`");
                let hint = "give the ID as the interface returns it, `sess_…`".to_owned();
                return Err(Fault { exit: Exit::Session, message, hint });
            };
            for line in lines {
                screen::print_json_line(String::from_utf8_lossy(&line).into_owned())?;
            }
            Ok(Exit::Success)
        }
    }
}
