//! Puts the files of a session where its tools find them, before it wakes. What is there already stays; a file that is gone is
//! reported, and the session runs without it.

use std::io::Write;

use futures::StreamExt;
use serde_json::json;

use crate::drive::node::Node;
use crate::drive::shared::Shared;
use crate::environment::{MountPoint, Places};
use crate::model::event::NewEvent;
use crate::model::files::File;
use crate::model::ids::{FileId, TenantId};
use crate::model::resources::Resource;
use crate::store::{FoundFile, SeatRow};

/// Mounts the files of a session. Answers with what the model reads about them.
pub(in crate::drive) async fn provide(
    node: &Node,
    row: &SeatRow,
    places: &Places,
    shared: &Shared,
) -> Vec<String> {
    let mut lines = Vec::new();
    let resources = &row.session.session.body.resources;
    for (resource, id) in resources.iter().filter_map(|resource| Some((resource, resource.file()?))) {
        match mount(node, row.tenant, resource, id, places).await {
            Ok((file, point)) => lines.push(format!(
                "- {} ({}): {}",
                resource.mount_path,
                file.body.filename,
                point.path().display()
            )),
            Err(problem) => {
                let message =
                    format!("The file `{id}` cannot be mounted at {}: {problem}.", resource.mount_path);
                let error = json!({ "type": "unknown_error", "message": message,
                    "retry_status": { "type": "retrying" } });
                shared.report(NewEvent::new("session.error", &json!({ "error": error })));
            }
        }
    }
    if !lines.is_empty() {
        lines.insert(0, "Files that were given to you, with the path where each can be read:".to_owned());
    }
    lines
}

async fn mount(
    node: &Node,
    tenant: TenantId,
    resource: &Resource,
    id: FileId,
    places: &Places,
) -> Result<(File, MountPoint), String> {
    let point = places.mount_point(&resource.mount_path).ok_or("the path is not in the session's folders")?;
    let FoundFile::There(file) = node.store.db.file(tenant, id).await.map_err(|error| error.to_string())?
    else {
        return Err("it was deleted or has expired".to_owned());
    };
    if !point.has(file.body.size) {
        copy(node, tenant, &file, &point).await?;
    }
    Ok((file, point))
}

/// Copies a file, piece by piece; a copy, so that nothing that a session does reaches what others have.
async fn copy(node: &Node, tenant: TenantId, file: &File, point: &MountPoint) -> Result<(), String> {
    let content = node.store.blobs.open(tenant, &file.blob).await.map_err(|error| error.to_string())?;
    let mut content = content.ok_or("its content is missing")?;
    let mut target = point.create().map_err(|error| error.to_string())?;
    while let Some(piece) = content.next().await {
        let piece = piece.map_err(|error| error.to_string())?;
        let written = tokio::task::spawn_blocking(move || target.write_all(&piece).map(|()| target)).await;
        let written = written.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        target = written.map_err(|error| error.to_string())?;
    }
    Ok(())
}
