//! The tool host of a session: in a container where the operator wants it, else on this machine, confined as commands are.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_runtime::tool_host::{Launch, Start, ToolHost};
use serde_json::json;

use crate::drive::node::Node;
use crate::drive::options::{hosts, secret_variables};
use crate::drive::shared::Shared;
use crate::environment::{ContainerLauncher, LocalLauncher, Places};
use crate::model::event::NewEvent;
use crate::model::ids::hex;
use crate::model::session::SessionSecrets;
use crate::store::SeatRow;

/// Tools that touch files. On this machine commands have a confinement of their own.
const FILE_TOOLS: [&str; 6] = ["Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"];
/// Tools that run in a container.
const CONTAINER_TOOLS: [&str; 7] = ["Bash", "Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"];

/// What runs the tools of a session.
#[derive(Debug, Clone)]
pub(in crate::drive) struct SessionHost {
    /// The host.
    pub(in crate::drive) tools: Arc<ToolHost>,
    /// True when commands run in it, too.
    pub(in crate::drive) is_container: bool,
}

/// The host of a session, which starts with its first call; `None` where tools run in this process.
pub(in crate::drive) fn provide(
    node: &Node,
    row: &SeatRow,
    places: &Places,
    secrets: &SessionSecrets,
    shared: &Arc<Shared>,
) -> Option<SessionHost> {
    let outputs = places.host_outputs.clone();
    if let Some(engine) = &node.containers {
        let home = places.home.to_string_lossy().into_owned();
        let mut variables = BTreeMap::from([("HOME".to_owned(), home)]);
        variables.extend(secrets.variables.clone());
        let shared = Arc::clone(shared);
        let report = move |message: String| {
            let error = json!({ "type": "unknown_error", "message": message, "retry_status": { "type": "retrying" } });
            shared.report(NewEvent::new("session.error", &json!({ "error": error })));
        };
        let launcher = ContainerLauncher {
            engine: Arc::clone(engine),
            places: places.clone(),
            hosts: hosts(&row.environment),
            setup: row.environment.image_setup(),
            tenant: hex(&row.tenant.0),
            start: Start { variables, secrets: secret_variables(secrets), proxy: None },
            report: Arc::new(report),
        };
        let tools = ToolHost::new(Arc::new(launcher) as Arc<dyn Launch>, &CONTAINER_TOOLS, outputs);
        return Some(SessionHost { tools, is_container: true });
    }
    let program = node.local_host()?;
    // Values of variables are redacted where results are recorded; file tools have none of them.
    let launcher = LocalLauncher::new(program, places.clone(), Start::default());
    let tools = ToolHost::new(Arc::new(launcher) as Arc<dyn Launch>, &FILE_TOOLS, outputs);
    Some(SessionHost { tools, is_container: false })
}
