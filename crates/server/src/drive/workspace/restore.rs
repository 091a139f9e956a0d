//! Builds the folder of a session from what is kept of its workspace.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::index::Index;
use super::{OpenFailure, Shelf, Tracked, local, on_disk};
use crate::environment::workspace::{FileEntry, Inventory, PathText, Restoration, Seen};
use crate::model::ids::{self, hex};
use crate::store::DbError;

/// Files that are fetched at a time.
const AT_A_TIME: usize = 8;
/// Bytes that are written at a time.
const PIECE: usize = 1024 * 1024;
/// Missing files that a notice names.
const NAMED: usize = 10;

impl Tracked {
    /// Builds the folder; `was_ahead` when another node may have changes that are not kept. Answers with what the model is to know.
    pub(super) async fn bring(&mut self, was_ahead: bool) -> Result<Option<String>, OpenFailure> {
        let kept = match (&self.shelf, &self.reference.inventory) {
            (Some(shelf), Some(name)) => {
                let found = shelf.objects.get(&shelf.inventory(name)).await?;
                found.as_deref().and_then(Inventory::read).map(|inventory| (shelf.clone(), inventory))
            }
            (Some(_) | None, _) => None,
        };
        let had_some = self.reference.inventory.is_some();
        forget_notes(self.notes.clone(), kept.is_none()).await.map_err(local)?;
        let (root, aside) = (self.root.clone(), self.notes.join(format!("old-{}", hex(&ids::random()[..8]))));
        // Without an object store a folder that was left behind may be all that there is; it goes with the session.
        let keeps = self.shelf.is_none();
        let restoration = on_disk(move || Restoration::begin(&root, &aside, keeps)).await.map_err(local)?;
        let Some((shelf, inventory)) = kept else {
            self.reference.inventory = None;
            self.reference.saved_at = None;
            let is_loss = was_ahead || had_some;
            return Ok(is_loss.then(|| EMPTY.to_owned()));
        };
        let (index, missing) = fetch(&shelf, &restoration, inventory).await?;
        if let Some(name) = &self.reference.inventory {
            index.store(&self.notes, name);
        }
        self.index = Some(Arc::new(index));
        Ok(notice(was_ahead, self.reference.saved_at.as_deref(), &missing))
    }
}

const EMPTY: &str = "The session continues on another machine, and the files of its workspace could not be brought along: the \
    workspace is empty now, except for files and repositories that were given to the session. Files that you made or changed \
    before are not there.";

fn notice(was_ahead: bool, saved_at: Option<&str>, missing: &[PathBuf]) -> Option<String> {
    let mut sentences = Vec::new();
    if was_ahead {
        let at = saved_at.unwrap_or("an earlier time");
        sentences.push(format!(
            "The session continues on another machine. The workspace is as it was at {at}; changes after that were lost with the \
             other machine. Check files before you rely on them."
        ));
    }
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().take(NAMED).map(|path| path.display().to_string()).collect();
        sentences.push(format!(
            "{} files of the workspace could not be restored, among them: {}.",
            missing.len(),
            names.join(", ")
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Forgets what was cloned into a folder that is made anew, and what a setup script left there unless it is brought along.
async fn forget_notes(notes: PathBuf, is_empty: bool) -> std::io::Result<()> {
    on_disk(move || {
        for entry in std::fs::read_dir(&notes)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("cloned-") || (is_empty && name.starts_with("setup-")) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    })
    .await
}

/// Fetches everything; answers with the index, and the files whose content is missing.
async fn fetch(
    shelf: &Shelf,
    restoration: &Restoration,
    inventory: Inventory,
) -> Result<(Index, Vec<PathBuf>), OpenFailure> {
    let (folders, of) = (restoration.clone(), inventory.clone());
    on_disk(move || folders.make_folders(&of)).await.map_err(local)?;
    let (from, into) = (shelf.clone(), restoration.clone());
    let fetched = futures::stream::iter(inventory.files.clone()).map(move |entry| {
        let (shelf, restoration) = (from.clone(), into.clone());
        async move {
            let seen = file(&shelf, &restoration, &entry).await?;
            Ok::<_, OpenFailure>((entry.path, seen))
        }
    });
    let fetched: Vec<(PathText, Option<Seen>)> = fetched.buffer_unordered(AT_A_TIME).try_collect().await?;
    let (links, of) = (restoration.clone(), inventory.clone());
    on_disk(move || links.finish(&of)).await.map_err(local)?;
    let (mut seen, mut missing) = (Vec::new(), Vec::new());
    for (path, found) in fetched {
        match found {
            Some(found) => seen.push((path, found)),
            None => missing.extend(path.path()),
        }
    }
    missing.sort_unstable();
    Ok((Index::new(inventory, seen), missing))
}

/// Fetches one file. `None` when its content is missing, or another one.
async fn file(
    shelf: &Shelf,
    restoration: &Restoration,
    entry: &FileEntry,
) -> Result<Option<Seen>, OpenFailure> {
    let Some(mut content) = shelf.objects.open(&shelf.file(&entry.object)).await? else { return Ok(None) };
    let (into, of) = (restoration.clone(), entry.clone());
    let mut file = on_disk(move || into.create(&of)).await.map_err(local)?;
    let (mut hash, mut size, mut waiting) = (Sha256::new(), 0_u64, Vec::new());
    loop {
        let piece = content.next().await.transpose()?;
        if let Some(piece) = &piece {
            hash.update(piece);
            size += piece.len() as u64;
            if size > entry.size {
                return Err(damaged(entry).into());
            }
            waiting.extend_from_slice(piece);
        }
        if waiting.len() >= PIECE || piece.is_none() {
            let bytes = std::mem::take(&mut waiting);
            file = on_disk(move || file.write_all(&bytes).map(|()| file)).await.map_err(local)?;
        }
        if piece.is_none() {
            break;
        }
    }
    if size != entry.size || hex(&hash.finalize()) != entry.sha256 {
        return Err(damaged(entry).into());
    }
    let of = entry.clone();
    let seen = on_disk(move || Restoration::finish_file(&file, &of)).await.map_err(local)?;
    Ok(Some(seen))
}

fn damaged(entry: &FileEntry) -> DbError {
    DbError::Corrupt(format!("the object {} of a workspace has other content than was kept", entry.object))
}
