//! Installs the packages of a session's environment and runs its setup script before the session first runs: in its workspace, with the variables of its
//! commands, and confined as they are. A script that fails is reported, and tried again when the session is next opened.

use std::time::Duration;

use qoder_runtime::setup::Setup;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::drive::node::Node;
use crate::drive::options::Given;
use crate::drive::shared::Shared;
use crate::environment::Places;
use crate::model::event::NewEvent;
use crate::model::ids::hex;
use crate::model::session::SessionSecrets;
use crate::model::toolset::Toolset;
use crate::store::SeatRow;

/// How long a script may take.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Runs the script, unless it has run in this session.
pub(in crate::drive) async fn provide(
    node: &Node,
    row: &SeatRow,
    (secrets, toolset): (&SessionSecrets, &Toolset),
    places: &Places,
    shared: &Shared,
) {
    // An image has it.
    let script = row.environment.setup().filter(|_| node.containers.is_none());
    let Some(script) = script else { return };
    let note = places.notes.join(format!("setup-{}", hex(&Sha256::digest(&script)[..16])));
    if note.exists() {
        return;
    }
    let session = &row.session.session;
    let options = node.settings.runtime.options(
        session,
        &row.environment,
        secrets,
        (toolset, places),
        Given::default(),
    );
    let handle = tokio::runtime::Handle::current();
    let run = tokio::task::spawn_blocking(move || {
        let setup = Setup::prepare(options).map_err(|error| error.to_string())?;
        handle.block_on(setup.run_script(&script, PATIENCE)).map_err(|error| error.to_string())
    });
    let outcome = run.await.unwrap_or_else(|error| Err(format!("internal error: {error}")));
    let problem = match outcome {
        Ok(end) if end.exit_code == 0 => std::fs::write(&note, "").err().map(|error| error.to_string()),
        Ok(end) => Some(format!("it ended with exit code {}: {}", end.exit_code, end.output.trim())),
        Err(problem) => Some(problem),
    };
    if let Some(problem) = problem {
        let mut message = format!("The setup of the environment failed: {problem}");
        for secret in crate::drive::options::secret_values(secrets) {
            message = message.replace(&secret, "[redacted]");
        }
        let error =
            json!({ "type": "unknown_error", "message": message, "retry_status": { "type": "retrying" } });
        shared.report(NewEvent::new("session.error", &json!({ "error": error })));
    }
}
