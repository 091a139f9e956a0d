//! Keeps a workspace in the object store: content first, then the inventory, then the head names it. A kill in between leaves objects
//! that nothing names.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::index::Index;
use super::{Shelf, Tracked, on_disk};
use crate::environment::workspace::{
    FileEntry, Inventory, LIMITS, PathText, ScanError, Seen, WorkspaceFile, open_found, scan,
};
use crate::model::ids::{self, hex};

/// Files that are sent at a time.
const AT_A_TIME: usize = 8;
/// Files up to this length are read at once.
const SHORT: u64 = 4 * 1024 * 1024;
const PIECE: usize = 1024 * 1024;
/// Left-out entries that a message names.
const NAMED: usize = 3;

/// What became of a file.
struct Sent {
    entry: FileEntry,
    /// None when it changed while it was read, so that it is read again next time.
    seen: Option<Seen>,
}

/// Objects of this run, by hash, so that the same content is sent once.
type Fresh = Arc<Mutex<HashMap<String, String>>>;

impl Tracked {
    /// Keeps what changed. Answers with a message about what is left out. An error means that nothing was kept, with the reason unless it
    /// is the configuration.
    pub(super) async fn keep(&mut self) -> Result<Option<String>, Option<String>> {
        let root = self.root.clone();
        let Some(shelf) = self.shelf.clone() else {
            // Without an object store all that can be known is whether there is something to lose.
            let is_empty = on_disk(move || Ok(std::fs::read_dir(root)?.next().is_none())).await;
            return if is_empty.unwrap_or(false) { Ok(None) } else { Err(None) };
        };
        if self.index.is_none() {
            let loaded = Index::load(&self.notes, &shelf, self.reference.inventory.as_deref()).await;
            self.index = Some(Arc::new(loaded.map_err(|error| not_kept(&error.to_string()))?));
        }
        let before = self.index.take().unwrap_or_default();
        let kept = gather(&shelf, root, Arc::clone(&before)).await;
        let (index, left_out) = match kept {
            Ok((index, left_out)) => (Arc::new(index), left_out),
            Err(problem) => {
                self.index = Some(before);
                return Err(not_kept(&problem));
            }
        };
        let message = left_out_message(&left_out);
        if index.inventory == before.inventory {
            if let Some(name) = &self.reference.inventory {
                index.store(&self.notes, name);
            }
            self.index = Some(index);
            return Ok(message);
        }
        let name = hex(&ids::random());
        let bytes = serde_json::to_vec(&index.inventory).map_err(|error| not_kept(&error.to_string()))?;
        if let Err(error) = shelf.objects.put(&shelf.inventory(&name), Bytes::from(bytes)).await {
            self.index = Some(before);
            return Err(not_kept(&error.to_string()));
        }
        let old = before.objects();
        let new = index.objects();
        self.superseded.extend(old.difference(&new).map(|object| shelf.file(object)));
        self.superseded.extend(self.reference.inventory.take().map(|old| shelf.inventory(&old)));
        index.store(&self.notes, &name);
        self.index = Some(index);
        self.note_kept(name);
        Ok(message)
    }
}

fn not_kept(problem: &str) -> Option<String> {
    Some(format!(
        "The workspace cannot be kept for other nodes: {problem}. On another node the session would continue with the files that \
         were kept last."
    ))
}

fn left_out_message(left_out: &[PathBuf]) -> Option<String> {
    let first: Vec<String> =
        left_out.iter().take(NAMED).map(|path| format!("`{}`", path.display())).collect();
    let more = left_out.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!first.is_empty()).then(|| {
        format!(
            "Some of the workspace is not kept for other nodes, because it is not a file, folder or link, or cannot be read: {}{rest}.",
            first.join(", ")
        )
    })
}

/// Looks at everything and sends what is not kept yet.
async fn gather(shelf: &Shelf, root: PathBuf, before: Arc<Index>) -> Result<(Index, Vec<PathBuf>), String> {
    let at = root.clone();
    let scanned = tokio::task::spawn_blocking(move || scan(&at, LIMITS)).await;
    let scanned =
        scanned.map_err(|error| error.to_string())?.map_err(|error: ScanError| error.to_string())?;
    let mut left_out = scanned.left_out;
    let (mut files, mut seen, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for found in scanned.files {
        let text = PathText::of(&found.path);
        match before.unchanged(&text, found.seen) {
            Some(entry) => {
                seen.push((text, found.seen));
                files.push(entry.clone());
            }
            None => changed.push(found),
        }
    }
    let (shelf, fresh) = (shelf.clone(), Fresh::default());
    let sent = futures::stream::iter(changed).map(move |found| {
        let (shelf, root) = (shelf.clone(), root.clone());
        let (before, fresh) = (Arc::clone(&before), Arc::clone(&fresh));
        async move {
            match send(&shelf, root, &found, (&before, &fresh)).await {
                Err(Problem::Local) => Ok(Err(found.path)),
                Err(Problem::Store(problem)) => Err(problem),
                Ok(sent) => Ok(Ok(sent)),
            }
        }
    });
    let outcomes: Vec<Result<Option<Sent>, PathBuf>> = sent.buffer_unordered(AT_A_TIME).try_collect().await?;
    for outcome in outcomes {
        match outcome {
            Ok(Some(sent)) => {
                seen.extend(sent.seen.map(|seen| (sent.entry.path.clone(), seen)));
                files.push(sent.entry);
            }
            Ok(None) => {}
            Err(path) => left_out.push(path),
        }
    }
    left_out.sort_unstable();
    let inventory = Inventory::new(scanned.folders, files, scanned.links);
    Ok((Index::new(inventory, seen), left_out))
}

enum Problem {
    /// The file cannot be read.
    Local,
    /// The object store does not work.
    Store(String),
}

impl From<std::io::Error> for Problem {
    fn from(_: std::io::Error) -> Self {
        Self::Local
    }
}

/// Sends one file, unless its content is kept. `None` when it is gone.
async fn send(
    shelf: &Shelf,
    root: PathBuf,
    found: &WorkspaceFile,
    (before, fresh): (&Index, &Fresh),
) -> Result<Option<Sent>, Problem> {
    let path = found.path.clone();
    let Some((file, opened)) = on_disk(move || open_found(&root, &path)).await? else { return Ok(None) };
    // Nothing behind the length at its opening is read, so a file that grows ends.
    let (sha256, size, object, file) = if opened.size <= SHORT {
        let (content, file) = on_disk(move || {
            let mut content = Vec::new();
            (&file).take(opened.size).read_to_end(&mut content)?;
            Ok((content, file))
        })
        .await?;
        let (sha256, size) = (hex(&Sha256::digest(&content)), content.len() as u64);
        let (object, is_new) = place(before, fresh, &sha256, size);
        if is_new {
            let put = shelf.objects.put(&shelf.file(&object), Bytes::from(content)).await;
            put.map_err(|error| Problem::Store(error.to_string()))?;
        }
        (sha256, size, object, file)
    } else {
        send_long(shelf, file, opened.size, before).await?
    };
    let after = on_disk(move || file.metadata()).await?;
    let is_steady = after.len() == opened.size && mtime(&after) == opened.mtime && size == opened.size;
    let entry = FileEntry {
        path: PathText::of(&found.path),
        mode: found.mode,
        mtime: opened.mtime,
        size,
        sha256,
        object,
    };
    Ok(Some(Sent { entry, seen: is_steady.then_some(opened) }))
}

fn mtime(metadata: &std::fs::Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

fn name(sha256: &str) -> String {
    format!("{sha256}-{}", hex(&ids::random()[..4]))
}

/// The object for content, and whether it has to be sent. When sending fails nothing of this run is named, so others may name it at
/// once.
fn place(before: &Index, fresh: &Fresh, sha256: &str, size: u64) -> (String, bool) {
    if let Some(object) = before.object(sha256, size) {
        return (object.to_owned(), false);
    }
    let mut fresh = fresh.lock().unwrap_or_else(PoisonError::into_inner);
    match fresh.get(sha256) {
        Some(object) => (object.clone(), false),
        None => {
            let object = name(sha256);
            fresh.insert(sha256.to_owned(), object.clone());
            (object, true)
        }
    }
}

/// The next piece of a file, at most up to a length.
async fn piece(file: File, left: u64) -> std::io::Result<(Bytes, File)> {
    on_disk(move || {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let mut piece = vec![0; most];
        let length = (&file).read(&mut piece)?;
        piece.truncate(length);
        Ok((Bytes::from(piece), file))
    })
    .await
}

/// Sends a long file in pieces: it is read for its hash first, because most often its content is kept.
async fn send_long(
    shelf: &Shelf,
    file: File,
    length: u64,
    before: &Index,
) -> Result<(String, u64, String, File), Problem> {
    let mut file = file;
    let mut hash = Sha256::new();
    let mut size = 0;
    loop {
        let (bytes, same) = piece(file, length - size).await?;
        file = same;
        if bytes.is_empty() {
            break;
        }
        hash.update(&bytes);
        size += bytes.len() as u64;
    }
    let sha256 = hex(&hash.finalize());
    if let Some(object) = before.object(&sha256, size) {
        return Ok((sha256, size, object.to_owned(), file));
    }
    // What is sent is hashed again: the file may be another one by now. So no other file of this run names it.
    let object = name(&sha256);
    let begun = shelf.objects.begin(&shelf.file(&object));
    let mut writer = begun.map_err(|error| Problem::Store(error.to_string()))?;
    file = on_disk(move || {
        use std::io::Seek;
        file.rewind()?;
        Ok(file)
    })
    .await?;
    let mut hash = Sha256::new();
    let mut sent = 0;
    loop {
        let (bytes, same) = piece(file, length - sent).await?;
        file = same;
        if bytes.is_empty() {
            break;
        }
        hash.update(&bytes);
        sent += bytes.len() as u64;
        writer.write(bytes).await.map_err(|error| Problem::Store(error.to_string()))?;
    }
    writer.finish().await.map_err(|error| Problem::Store(error.to_string()))?;
    Ok((hex(&hash.finalize()), sent, object, file))
}
