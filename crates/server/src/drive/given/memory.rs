//! Memory stores of a session as folders. Before the session wakes and before it rests, what its agent changed in them becomes
//! versions, and what others changed in the stores is written into them. The last one who writes a memory counts; what was there
//! before stays as a version.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use qoder_core::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::drive::node::Node;
use crate::environment::{FoundText, Places, Stamp, TextFolder};
use crate::model::event::NewEvent;
use crate::model::ids::{MemoryId, MemoryStoreId, TenantId, hex};
use crate::model::memories::{Actor, LONGEST_CONTENT, Memory, MemoryUpdate, NewMemory, digest};
use crate::model::memory_mount::{Access, MemoryMount};
use crate::model::memory_path;
use crate::model::metadata::Metadata;
use crate::model::refusal::Refusal;
use crate::store::{DbError, KeptAnswer, MemoryChange, Once, SeatRow, Store};

/// A memory as it was when folder and store were the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    memory: String,
    sha256: String,
    stamp: Stamp,
}

/// What the server notes about a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Notes {
    /// The folder.
    mount_path: String,
    is_open: bool,
    /// The memories that are in it.
    known: BTreeMap<String, Known>,
    /// What is in it and cannot be kept; each is reported once.
    refused: BTreeMap<String, Stamp>,
}

/// A store that is mounted.
struct MountedStore {
    store: MemoryStoreId,
    mount: MemoryMount,
    mount_path: String,
    folder: TextFolder,
    notes: PathBuf,
}

/// The memory stores of a session.
pub(in crate::drive) struct Memories {
    store: Store,
    tenant: TenantId,
    by: Actor,
    quota: u64,
    redactor: Redactor,
    mounted: Vec<MountedStore>,
    /// Problems that were reported.
    reported: Mutex<BTreeSet<String>>,
}

fn folder(places: &Places, mount_path: &str, is_open: bool) -> TextFolder {
    let below = mount_path.trim_start_matches("/mnt/");
    TextFolder::new(if is_open { &places.session } else { &places.mounts }, below, is_open)
}

impl Memories {
    /// The stores of a session; `secrets` are values that no memory gets.
    pub(in crate::drive) fn new(node: &Node, row: &SeatRow, places: &Places, secrets: Vec<String>) -> Self {
        let session = &row.session.session;
        let mounts = session.body.resources.iter().filter_map(|resource| {
            let mount = resource.memory()?.clone();
            let store = mount.id()?;
            Some(MountedStore {
                store,
                folder: folder(places, &resource.mount_path, mount.access == Access::ReadWrite),
                mount_path: resource.mount_path.clone(),
                mount,
                notes: places.notes.join(format!("memory-{}.json", hex(&store.0))),
            })
        });
        let mounted: Vec<MountedStore> = mounts.collect();
        remove_others(places, &mounted);
        Self {
            store: node.store.clone(),
            tenant: row.tenant,
            by: Actor::Session(session.id),
            quota: node.settings.storage_quota,
            redactor: Redactor::new(secrets),
            mounted,
            reported: Mutex::default(),
        }
    }

    /// What the model reads about its stores.
    pub(in crate::drive) fn facts(&self) -> Vec<String> {
        if self.mounted.is_empty() {
            return Vec::new();
        }
        let title = "Memory stores: folders of notes that outlive this session. Before you begin, look there for what is known \
                     already; while you work, keep there what later sessions need.";
        let line = |one: &MountedStore| {
            let access = match one.mount.access {
                Access::ReadOnly => "read only",
                Access::ReadWrite => "read and write",
            };
            let path = one.folder.path();
            let mut line = format!("- {} ({}, {access}): {}", one.mount_path, one.mount.name, path.display());
            for text in [Some(&one.mount.description), one.mount.instructions.as_ref()].into_iter().flatten()
            {
                line.push_str(if text.is_empty() { "" } else { "\n  " });
                line.push_str(text);
            }
            line
        };
        std::iter::once(title.to_owned()).chain(self.mounted.iter().map(line)).collect()
    }

    /// Makes folders and stores the same. Answers with what could not be done, as events.
    pub(in crate::drive) async fn synchronise(&self) -> Vec<NewEvent> {
        let mut events = Vec::new();
        for one in &self.mounted {
            let mut problems = Vec::new();
            if let Err(problem) = self.synchronise_store(one, &mut problems).await {
                problems.push(format!("The memory store `{}` cannot be used: {problem}.", one.store));
            }
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            let new = problems.into_iter().filter(|problem| reported.insert(problem.clone()));
            events.extend(new.map(|message| {
                let error = json!({ "type": "unknown_error", "message": message,
                    "retry_status": { "type": "retrying" } });
                NewEvent::new("session.error", &json!({ "error": error }))
            }));
        }
        events
    }

    async fn synchronise_store(&self, one: &MountedStore, problems: &mut Vec<String>) -> Result<(), String> {
        let is_open = one.mount.access == Access::ReadWrite;
        let before = load(&one.notes);
        let mut notes = before.clone().unwrap_or_default();
        (notes.mount_path, notes.is_open) = (one.mount_path.clone(), is_open);
        let found = blocking(one, |folder| folder.scan()).await?;
        if is_open && before.is_some() {
            self.keep_changes(one, &found, &mut notes, problems).await?;
        }
        self.write_others(one, &found, &mut notes, problems).await?;
        if before.as_ref() != Some(&notes) {
            save(&one.notes, &notes).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// What the agent changed becomes versions.
    async fn keep_changes(
        &self,
        one: &MountedStore,
        found: &[FoundText],
        notes: &mut Notes,
        problems: &mut Vec<String>,
    ) -> Result<(), String> {
        notes.refused.retain(|path, _| found.iter().any(|text| text.path == *path));
        let gone = notes.known.keys().filter(|path| !found.iter().any(|text| text.path == **path));
        for path in gone.cloned().collect::<Vec<_>>() {
            if let Some(known) = notes.known.remove(&path) {
                self.delete(one, &known).await?;
            }
        }
        for text in found {
            let seen =
                notes.known.get(&text.path).map(|known| &known.stamp).or(notes.refused.get(&text.path));
            if seen == Some(&text.stamp) {
                continue;
            }
            match self.keep(one, text, notes).await {
                Ok(()) => {
                    notes.refused.remove(&text.path);
                }
                Err(problem) => {
                    problems.push(format!("{}{} is not kept: {problem}.", one.mount_path, text.path));
                    notes.refused.insert(text.path.clone(), text.stamp);
                }
            }
        }
        Ok(())
    }

    async fn keep(&self, one: &MountedStore, text: &FoundText, notes: &mut Notes) -> Result<(), String> {
        if !text.is_text {
            return Err("it is not a file, or its name is not UTF-8".to_owned());
        }
        if memory_path::read(&text.path).as_deref() != Ok(text.path.as_str()) {
            return Err("no memory can have this path".to_owned());
        }
        let path = text.path.clone();
        let (content, stamp) =
            blocking(one, move |folder| folder.read(&path, LONGEST_CONTENT as u64)).await?;
        let content = content.ok_or(format!("it is not UTF-8 or has more than {LONGEST_CONTENT} bytes"))?;
        let content = self.redactor.without_values(&content).into_owned();
        let sha256 = digest(&content);
        let memory = match notes.known.get(&text.path) {
            Some(known) if known.sha256 == sha256 => known.memory.clone(),
            Some(known) => match self.change(one, MemoryId::parse(&known.memory), &content).await? {
                Some(memory) => memory.id.to_string(),
                None => self.create(one, &text.path, content).await?,
            },
            None => self.create(one, &text.path, content).await?,
        };
        notes.known.insert(text.path.clone(), Known { memory, sha256, stamp });
        Ok(())
    }

    fn by(&self, one: &MountedStore) -> MemoryChange {
        MemoryChange { tenant: self.tenant, store: one.store, by: self.by.clone(), quota: self.quota }
    }

    /// Changes a memory; `None` when it was deleted meanwhile.
    async fn change(
        &self,
        one: &MountedStore,
        id: Option<MemoryId>,
        content: &str,
    ) -> Result<Option<Memory>, String> {
        let Some(id) = id else { return Ok(None) };
        let update = MemoryUpdate { content: Some(content.to_owned()), ..MemoryUpdate::default() };
        match self.store.db.update_memory(self.by(one), id, update, unasked()).await {
            Ok(crate::store::Done::Now(memory, _)) => Ok(Some(memory)),
            Ok(crate::store::Done::Before(_)) | Err(DbError::Refused(Refusal::NotFound(_))) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Creates a memory, or changes the one that another created at the same path.
    async fn create(&self, one: &MountedStore, path: &str, content: String) -> Result<String, String> {
        let listed = self.store.db.memories(self.tenant, one.store, path.to_owned(), false).await;
        let there = listed.map_err(|error| error.to_string())?.into_iter().find(|memory| memory.path == path);
        if let Some(memory) = self.change(one, there.map(|memory| memory.id), &content).await? {
            return Ok(memory.id.to_string());
        }
        let new = NewMemory { path: path.to_owned(), content, metadata: Metadata::default() };
        match self.store.db.create_memory(self.by(one), new, unasked()).await {
            Ok(crate::store::Done::Now(memory, _)) => Ok(memory.id.to_string()),
            Ok(crate::store::Done::Before(_)) => Err("internal error: it was created before".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Deletes a memory, unless another changed it meanwhile: then it is written into the folder again.
    async fn delete(&self, one: &MountedStore, known: &Known) -> Result<(), String> {
        let Some(id) = MemoryId::parse(&known.memory) else { return Ok(()) };
        let expected = Some(known.sha256.clone());
        match self.store.db.delete_memory(self.by(one), id, expected, unasked()).await {
            Ok(_) | Err(DbError::Refused(Refusal::NotFound(_) | Refusal::Conflict { .. })) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What others changed is written into the folder.
    async fn write_others(
        &self,
        one: &MountedStore,
        found: &[FoundText],
        notes: &mut Notes,
        problems: &mut Vec<String>,
    ) -> Result<(), String> {
        let listed = self.store.db.memories(self.tenant, one.store, "/".to_owned(), false).await;
        let memories = listed.map_err(|error| error.to_string())?;
        let is_there = |path: &str| found.iter().any(|text| text.path == path);
        for path in notes.known.keys().cloned().collect::<Vec<_>>() {
            if !memories.iter().any(|memory| memory.path == path) {
                let gone = path.clone();
                blocking(one, move |folder| folder.remove(&gone)).await?;
                notes.known.remove(&path);
            }
        }
        for memory in memories {
            let known = notes.known.get(&memory.path);
            let is_same = known.is_some_and(|known| known.sha256 == memory.sha256 && is_there(&memory.path));
            if is_same {
                continue;
            }
            let memory = self.store.db.memory(self.tenant, one.store, memory.id).await;
            let memory = memory.map_err(|error| error.to_string())?;
            let (path, content) = (memory.path.clone(), memory.content.unwrap_or_default());
            match blocking(one, move |folder| folder.write(&path, &content)).await {
                Ok(stamp) => {
                    let known = Known { memory: memory.id.to_string(), sha256: memory.sha256, stamp };
                    notes.known.insert(memory.path, known);
                }
                Err(problem) => {
                    problems.push(format!("{}{} cannot be written: {problem}.", one.mount_path, memory.path));
                }
            }
        }
        Ok(())
    }
}

/// Runs what touches the disk where it may wait.
async fn blocking<T: Send + 'static>(
    one: &MountedStore,
    work: impl FnOnce(TextFolder) -> std::io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let folder = one.folder.clone();
    let done = tokio::task::spawn_blocking(move || work(folder)).await;
    done.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(|error| error.to_string())
}

/// No client waits for the answer.
fn unasked<T>() -> Once<T> {
    Once { key: None, render: Box::new(|_: &T| KeptAnswer { status: 200, body: Vec::new() }) }
}

fn load(path: &std::path::Path) -> Option<Notes> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Replaces the notes at once, so that a crash leaves those before or those after.
fn save(path: &std::path::Path, notes: &Notes) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, serde_json::to_vec(notes)?)?;
    std::fs::rename(beside, path)
}

/// Removes the texts of stores that the session no longer has.
fn remove_others(places: &Places, mounted: &[MountedStore]) {
    let Ok(entries) = std::fs::read_dir(&places.notes) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_memory = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("memory-"));
        if !is_memory || mounted.iter().any(|one| one.notes == path) {
            continue;
        }
        let Some(notes) = load(&path) else { continue };
        let folder = folder(places, &notes.mount_path, notes.is_open);
        // A copy that stays harms no one; it is no longer kept.
        notes.known.keys().for_each(|text| drop(folder.remove(text)));
        drop(std::fs::remove_file(&path));
    }
}
