//! Clones the repositories of a session into its workspace before it wakes, each once: what the session does with them afterwards is
//! its own. One that cannot be cloned is reported, tried again at the next wake, and the session runs without it.

use std::path::Path;

use serde_json::{Value, json};
use url::Url;

use crate::drive::node::Node;
use crate::drive::shared::Shared;
use crate::environment::{Checkout, CloneError, Places, RepositoryClone};
use crate::model::event::NewEvent;
use crate::model::resources::{Mounted, Repository, Resource};
use crate::model::session::SessionSecrets;
use crate::outgoing::PrivateAddresses;
use crate::store::SeatRow;

/// In a clone: the resource that it was made for. It moves with the clone, so that a crash in between makes no second one.
const MARK: &str = ".git/qoder-resource";

/// Clones what is not there yet. Answers with what the model reads about it.
pub(in crate::drive) async fn provide(
    node: &Node,
    row: &SeatRow,
    places: &Places,
    secrets: &SessionSecrets,
    shared: &Shared,
) -> Vec<String> {
    let mut lines = Vec::new();
    for resource in &row.session.session.body.resources {
        // The user names that hosts accept beside a token.
        let (repository, user) = match &resource.mounted {
            Mounted::GithubRepository(repository) => (repository, "x-access-token"),
            Mounted::GitRepository(repository) => (repository, "git"),
            Mounted::File { .. } | Mounted::MemoryStore(_) => continue,
        };
        let credential = secrets.credentials.get(&resource.id).map(|secret| (user, secret.as_str()));
        match mount(node, resource, repository, credential, places).await {
            Ok(path) => lines.push(format!("- {} ({}): {path}", resource.mount_path, repository.url)),
            Err(error) => {
                let message = format!("The repository cannot be cloned to {}: {error}.", resource.mount_path);
                let error = json!({ "type": error.kind(), "message": message, "repository_url": repository.url,
                    "retry_status": { "type": "retrying" } });
                shared.report(NewEvent::new("session.error", &json!({ "error": error })));
            }
        }
    }
    if !lines.is_empty() {
        lines.insert(0, "Repositories that were cloned for you, with the path of each:".to_owned());
    }
    lines
}

async fn mount(
    node: &Node,
    resource: &Resource,
    repository: &Repository,
    credential: Option<(&str, &str)>,
    places: &Places,
) -> Result<String, CloneError> {
    let taken = |problem: String| CloneError::Checkout(problem);
    let point = places.mount_point(&resource.mount_path);
    let point = point.ok_or_else(|| taken("the path is not in the session's folders".to_owned()))?;
    let shown = point.path().display().to_string();
    let note = places.notes.join(format!("cloned-{}", resource.id));
    let failed = |error: std::io::Error| CloneError::Clone(error.to_string());
    if note.exists() {
        return Ok(shown);
    }
    if std::fs::symlink_metadata(point.path().join(MARK)).is_ok() {
        std::fs::write(&note, &repository.url).map_err(failed)?;
        return Ok(shown);
    }
    let url = Url::parse(&repository.url).map_err(|error| CloneError::Clone(error.to_string()))?;
    let allowed = &node.settings.private_addresses;
    if url.scheme() == "http" && credential.is_some() && !PrivateAddresses::default().refuses(url.as_str()) {
        return Err(CloneError::Clone("a credential is sent to an `https` address alone".to_owned()));
    }
    let environment = &node.settings.runtime.environment;
    let resolved = allowed.resolve(&url, environment).await;
    let resolved = resolved.map_err(|error| CloneError::Clone(error.to_string()))?;
    let checkout = checkout(repository.checkout.as_ref());
    let staging = places.notes.join(format!("cloning-{}", resource.id));
    remove(&staging)?;
    let clone = RepositoryClone { url: &url, checkout, credential, resolved, environment };
    clone.make(&staging).await?;
    std::fs::write(staging.join(MARK), &resource.id).map_err(failed)?;
    point.place(&staging).map_err(|error| taken(format!("the path is taken: {error}")))?;
    std::fs::write(&note, &repository.url).map_err(failed)?;
    Ok(shown)
}

fn checkout(value: Option<&Value>) -> Checkout<'_> {
    let field = |key: &str| value.and_then(|value| value.get(key)).and_then(Value::as_str);
    match (field("name"), field("sha")) {
        (Some(name), _) => Checkout::Branch(name),
        (None, Some(sha)) => Checkout::Commit(sha),
        (None, None) => Checkout::Default,
    }
}

/// Removes what a clone that did not end has left.
fn remove(folder: &Path) -> Result<(), CloneError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(CloneError::Clone(error.to_string()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
