//! Signing in to a remote server and out again. The address to open is shown in full; a browser is started with it as one
//! argument, never through a shell, and the callback comes to a listener on the loopback.

use std::process::{Command, Stdio};

use qoder_config::servers::{self as mcp_sources, Flags};
use qoder_runtime::mcp::authorization::{AuthorizationError, Authorizer, Begun};
use qoder_runtime::mcp::oauth::{ServerAuthorizer, Vault};
use qoder_runtime::setup::{Setup, SetupError};
use qoder_types::server::{NamedServer, Transport};

use super::{described, unknown};
use crate::exit::{Exit, Fault};
use crate::screen::{print_line, print_note, print_row};

/// Signs in: without a person when a token is there or can be renewed, else through the browser.
pub fn sign_in(setup: &Setup, name: &str, no_browser: bool) -> Result<Exit, Fault> {
    let authorizer = authorizer(setup, name)?;
    super::block_on(async move {
        let returned = match authorizer.begin(None, None).await.map_err(|error| fault(&error))? {
            Begun::Silent => None,
            Begun::Redirect { auth_url, returned, .. } => {
                print_line(&format!("open this address to give access to {name}:\n{auth_url}"))?;
                if !no_browser {
                    open(&auth_url);
                }
                returned
            }
        };
        if let Some(returned) = returned {
            returned.await.map_err(|error| fault(&error))?;
        }
        print_row(&format!("signed in to {name}"))?;
        Ok(Exit::Success)
    })?
}

/// Forgets what is kept for a server.
pub fn sign_out(setup: &Setup, name: &str) -> Result<Exit, Fault> {
    let authorizer = authorizer(setup, name)?;
    super::block_on(async move { authorizer.clear().await.map_err(|error| fault(&error)) })??;
    print_row(&format!("signed out of {name}"))?;
    Ok(Exit::Success)
}

fn authorizer(setup: &Setup, name: &str) -> Result<ServerAuthorizer, Fault> {
    let server = usable(setup, name)?;
    if let Transport::Stdio { .. } = server.config.transport {
        return Err(Fault::input(
            format!("{name} is a program on this machine, which has no sign-in"),
            "it gets its keys through variables: `env` in its description",
        ));
    }
    let made = ServerAuthorizer::for_server(&server, &Vault::new(&setup.config.config_root));
    match made {
        Some(made) => made.map_err(|error| fault(&error)),
        None => Err(Fault::input(
            format!("{name} has no sign-in: its description brings credentials of its own"),
            "remove the header `Authorization` from it to sign in instead",
        )),
    }
}

/// A described server that may be used.
fn usable(setup: &Setup, name: &str) -> Result<NamedServer, Fault> {
    let sources = mcp_sources::servers(&setup.config, &setup.plugins().servers, &Flags::default())
        .map_err(SetupError::from)?;
    if let Some(server) = sources.servers.into_iter().find(|server| server.name == name) {
        return Ok(server);
    }
    match sources.refused.into_iter().find(|refused| refused.name == name) {
        Some(refused) => Err(Fault::input(format!("{name} cannot be used: {}", refused.reason), "")),
        None => Err(unknown(setup, name, &described(setup))),
    }
}

fn fault(error: &AuthorizationError) -> Fault {
    Fault { exit: Exit::Authentication, message: error.to_string(), hint: error.hint().to_owned() }
}

/// Starts a browser. Without a browser the person opens the address that was shown.
fn open(address: &str) {
    if !(address.starts_with("https://") || address.starts_with("http://")) {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.spawn().is_err() {
        print_note(&format!("{program} is not there; open the address yourself"));
    }
}
