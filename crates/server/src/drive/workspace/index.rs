//! What is kept of a workspace, and what its files looked like then: files that look the same are not read again, and content that is
//! kept is not sent again.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Shelf, write_whole};
use crate::environment::workspace::{FileEntry, Inventory, PathText, Seen};
use crate::store::DbError;

/// In the notes: what the files looked like.
const FILE: &str = "workspace.index";

/// What is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// The inventory; none before anything was kept.
    pub(super) inventory: Option<Inventory>,
    entries: HashMap<PathText, FileEntry>,
    by_hash: HashMap<String, (String, u64)>,
    seen: HashMap<PathText, Seen>,
}

/// The index as a file.
#[derive(Serialize, Deserialize)]
struct Stored {
    name: String,
    inventory: Inventory,
    seen: Vec<(PathText, Seen)>,
}

impl Index {
    pub(super) fn new(inventory: Inventory, seen: Vec<(PathText, Seen)>) -> Self {
        let entries = inventory.files.iter().map(|entry| (entry.path.clone(), entry.clone())).collect();
        let by_hash = inventory
            .files
            .iter()
            .map(|entry| (entry.sha256.clone(), (entry.object.clone(), entry.size)))
            .collect();
        Self { entries, by_hash, seen: seen.into_iter().collect(), inventory: Some(inventory) }
    }

    /// The index of an inventory: from the notes when it is that one's, else what the object store has.
    pub(super) async fn load(notes: &Path, shelf: &Shelf, name: Option<&str>) -> Result<Self, DbError> {
        let Some(name) = name else { return Ok(Self::default()) };
        let stored = std::fs::read(notes.join(FILE)).ok();
        let stored = stored.and_then(|bytes| serde_json::from_slice::<Stored>(&bytes).ok());
        if let Some(stored) = stored.filter(|stored| stored.name == name) {
            return Ok(Self::new(stored.inventory, stored.seen));
        }
        let found = shelf.objects.get(&shelf.inventory(name)).await?;
        let inventory = found.as_deref().and_then(Inventory::read);
        Ok(inventory.map(|inventory| Self::new(inventory, Vec::new())).unwrap_or_default())
    }

    /// Keeps the index in the notes. Without it files are read again, which harms nothing.
    pub(super) fn store(&self, notes: &Path, name: &str) {
        let Some(inventory) = self.inventory.clone() else { return };
        let seen = self.seen.iter().map(|(path, seen)| (path.clone(), *seen)).collect();
        let stored = Stored { name: name.to_owned(), inventory, seen };
        if let Ok(bytes) = serde_json::to_vec(&stored) {
            let _ = write_whole(&notes.join(FILE), &bytes);
        }
    }

    /// What is kept of a file that looks as it did then.
    pub(super) fn unchanged(&self, path: &PathText, seen: Seen) -> Option<&FileEntry> {
        self.entries.get(path).filter(|_| self.seen.get(path) == Some(&seen))
    }

    /// The object that has this content.
    pub(super) fn object(&self, sha256: &str, size: u64) -> Option<&str> {
        self.by_hash.get(sha256).filter(|(_, kept)| *kept == size).map(|(object, _)| object.as_str())
    }

    /// The objects of files.
    pub(super) fn objects(&self) -> BTreeSet<&str> {
        self.entries.values().map(|entry| entry.object.as_str()).collect()
    }
}
