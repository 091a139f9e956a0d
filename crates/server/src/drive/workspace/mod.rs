//! The workspace of a session that may continue on another node. What tools changed is kept in the object store before the session
//! rests; another node builds its folder from that before any tool runs there. Which folder is the workspace is part of the head and
//! changes under the lease, so a folder that was left behind is never taken for it.

mod index;
mod keep;
mod restore;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use self::index::Index;
use super::node::Node;
use super::opening::OpenFailure;
use super::shared::Shared;
use crate::environment::Places;
use crate::model::event::NewEvent;
use crate::model::ids::{self, NodeId, hex};
use crate::model::time::Time;
use crate::store::{DbError, Objects, SeatRow, WorkspaceChange, workspace_folder};

/// In the notes: names the folder of the workspace.
const PLACE: &str = "workspace.place";

/// What the head says about a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reference {
    /// The folder that is the workspace, by the name in its notes.
    place: String,
    /// The inventory of what is kept, by its name in the object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inventory: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saved_at: Option<String>,
}

/// Where the files of a session are kept.
#[derive(Debug, Clone)]
struct Shelf {
    objects: Objects,
    folder: String,
}

impl Shelf {
    fn file(&self, object: &str) -> String {
        format!("{}/files/{object}", self.folder)
    }

    fn inventory(&self, name: &str) -> String {
        format!("{}/inventories/{name}", self.folder)
    }
}

/// A workspace whose session may continue elsewhere.
#[derive(Debug)]
struct Tracked {
    /// None when no object store is configured: then another node begins with an empty folder.
    shelf: Option<Shelf>,
    home: NodeId,
    root: PathBuf,
    notes: PathBuf,
    reference: Reference,
    /// True while this folder has, or may have, what is kept nowhere else.
    is_ahead: bool,
    /// True when tools ran since it was last kept.
    has_acted: bool,
    /// True when the head does not say yet what it is to say.
    is_news: bool,
    /// True when that is worth a commit of its own.
    must_commit: bool,
    /// What is kept, as far as it was read.
    index: Option<Arc<Index>>,
    /// Objects that nothing names once the head is committed.
    superseded: Vec<String>,
    /// The problem that clients know of.
    reported: Option<String>,
}

/// The workspace of a session that is open.
#[derive(Debug)]
pub(super) struct Workspace(Option<Tracked>);

impl Workspace {
    /// Makes sure that the folder is the session's workspace: as it was left here, or built from what is kept of it.
    pub(super) async fn open(
        node: &Node,
        row: &SeatRow,
        places: &Places,
        shared: &Shared,
    ) -> Result<Self, OpenFailure> {
        let session = row.session.session.id;
        let shelf = node.store.objects.clone().map(|objects| {
            let folder = workspace_folder(row.tenant, session);
            Shelf { objects, folder }
        });
        let moves = node.store.db.is_shared() && !node.settings.shares_workspaces;
        if shelf.is_none() && !moves {
            return Ok(Self(None));
        }
        let known: Option<Reference> =
            row.workspace.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let noted = std::fs::read_to_string(places.notes.join(PLACE)).ok();
        let is_here = known.as_ref().is_none_or(|known| noted.as_ref() == Some(&known.place));
        let mut tracked = Tracked {
            shelf,
            home: node.settings.home,
            root: places.workspace.clone(),
            notes: places.notes.clone(),
            is_ahead: is_here && row.home == Some(node.settings.home),
            has_acted: is_here && row.home.is_some(),
            is_news: known.is_none(),
            must_commit: false,
            reference: known.unwrap_or_else(|| Reference {
                place: noted.unwrap_or_default(),
                inventory: None,
                saved_at: None,
            }),
            index: None,
            superseded: Vec::new(),
            reported: None,
        };
        if !is_here {
            let notice = tracked.bring(row.home.is_some()).await?;
            tracked.settle().map_err(local)?;
            if let Some(text) = notice {
                shared.prepend_notice(format!("{session}:workspace:{}", tracked.reference.place), &text);
            }
        } else if tracked.reference.place.is_empty() {
            tracked.settle().map_err(local)?;
        }
        Ok(Self(Some(tracked)))
    }

    /// A tool was started.
    pub(super) fn act(&mut self) {
        if let Some(tracked) = &mut self.0 {
            tracked.has_acted = true;
            tracked.be_ahead(true);
        }
    }

    /// Keeps what tools have changed; `is_over` when nothing runs that may change more. Answers with what clients are to know.
    pub(super) async fn save(&mut self, is_over: bool) -> Vec<NewEvent> {
        let Some(tracked) = self.0.as_mut().filter(|tracked| tracked.has_acted) else { return Vec::new() };
        let problem = match tracked.keep().await {
            Ok(left_out) => {
                tracked.has_acted = !is_over;
                tracked.be_ahead(!is_over);
                left_out
            }
            Err(problem) => problem,
        };
        if problem.is_none() || tracked.reported == problem {
            return Vec::new();
        }
        tracked.reported.clone_from(&problem);
        let message = problem.unwrap_or_default();
        let error =
            json!({ "type": "unknown_error", "message": message, "retry_status": { "type": "retrying" } });
        vec![NewEvent::new("session.error", &json!({ "error": error }))]
    }

    /// What the head is to say, when it does not yet.
    pub(super) fn change(&self) -> Option<WorkspaceChange> {
        let tracked = self.0.as_ref().filter(|tracked| tracked.is_news)?;
        let reference = serde_json::to_string(&tracked.reference).ok()?;
        Some(WorkspaceChange { reference, home: tracked.is_ahead.then_some(tracked.home) })
    }

    /// True when the head is to be changed also when nothing else is.
    pub(super) fn must_be_committed(&self) -> bool {
        self.0.as_ref().is_some_and(|tracked| tracked.must_commit)
    }

    /// The head says what it was to say.
    pub(super) fn committed(&mut self) {
        let Some(tracked) = &mut self.0 else { return };
        if !std::mem::take(&mut tracked.is_news) {
            return;
        }
        tracked.must_commit = false;
        let superseded = std::mem::take(&mut tracked.superseded);
        if let Some(shelf) = tracked.shelf.clone().filter(|_| !superseded.is_empty()) {
            // Each upload has a name of its own, so no one can name these again. What is not removed goes with the session.
            tokio::spawn(async move {
                for object in superseded {
                    drop(shelf.objects.remove(&object).await);
                }
            });
        }
    }
}

impl Tracked {
    fn be_ahead(&mut self, is_ahead: bool) {
        if self.is_ahead != is_ahead {
            self.is_ahead = is_ahead;
            self.is_news = true;
            self.must_commit |= !is_ahead;
        }
    }

    /// Names the folder; it is the workspace once the head says so.
    fn settle(&mut self) -> std::io::Result<()> {
        self.reference.place = hex(&ids::random());
        self.is_news = true;
        write_whole(&self.notes.join(PLACE), self.reference.place.as_bytes())
    }

    fn note_kept(&mut self, inventory: String) {
        self.reference.inventory = Some(inventory);
        self.reference.saved_at = Some(Time::now().to_string());
        self.is_news = true;
        self.must_commit = true;
    }
}

/// Writes a file that is there as a whole or not at all.
fn write_whole(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let part = path.with_extension("part");
    std::fs::write(&part, content)?;
    std::fs::rename(part, path)
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
fn local(error: std::io::Error) -> OpenFailure {
    OpenFailure::Store(DbError::Unavailable(format!("the workspace cannot be made: {error}")))
}

/// Runs work that waits for the disk.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}
