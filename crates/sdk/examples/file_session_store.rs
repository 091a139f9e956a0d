//! A session store in a directory, such as one that several hosts have mounted. Keys can be long and can hold any
//! character, so names of files are made from hashes of them; the first line of each file says what its key is. One host
//! at a time may write a session, which the engine sees to on one machine and you on several.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use futures::StreamExt;
use qoder_agent_sdk::{
    Error, QoderAgentOptions, SessionKey, SessionStore, SessionStoreEntry, SessionStoreError,
    SessionStoreListEntry, StoreResult, query,
};

/// Keeps each log as a file with a JSON object a line.
#[derive(Debug, Clone)]
pub struct FileSessionStore(pub PathBuf);

impl SessionStore for FileSessionStore {
    async fn append(&self, key: &SessionKey, entries: &[SessionStoreEntry]) -> StoreResult<()> {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap_or(&self.0))?;
        let mut text = if path.exists() { String::new() } else { serde_json::to_string(key)? + "\n" };
        for entry in entries {
            text.push_str(&entry.to_string());
            text.push('\n');
        }
        let mut log = fs::OpenOptions::new().append(true).create(true).open(path)?;
        // One write, so that another reader never sees half of an entry that is stored.
        Ok(log.write_all(text.as_bytes())?)
    }

    async fn load(&self, key: &SessionKey) -> StoreResult<Option<Vec<SessionStoreEntry>>> {
        let path = self.path(key);
        if !path.exists() {
            return Ok(None);
        }
        if key_of(&path)? != *key {
            return Err(SessionStoreError::failed(format!("{} is the log of another key", path.display())));
        }
        let text = fs::read_to_string(path)?;
        let entries = text.lines().skip(1).map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Some(entries))
    }

    async fn list_sessions(&self, project_key: &str) -> StoreResult<Vec<SessionStoreListEntry>> {
        let mut sessions = Vec::new();
        for folder in listed(&self.0.join(name(project_key))) {
            let log = folder.join("main.jsonl");
            let Ok(metadata) = log.metadata() else { continue };
            let since = metadata.modified()?.duration_since(UNIX_EPOCH).map_err(SessionStoreError::failed)?;
            let mtime = u64::try_from(since.as_millis()).map_err(SessionStoreError::failed)?;
            sessions.push(SessionStoreListEntry { session_id: key_of(&log)?.session_id, mtime });
        }
        Ok(sessions)
    }

    async fn list_subkeys(&self, key: &SessionKey) -> StoreResult<Vec<String>> {
        let path = self.path(key);
        let mut subpaths = Vec::new();
        for log in listed(path.parent().unwrap_or(&self.0)) {
            subpaths.extend(key_of(&log)?.subpath);
        }
        Ok(subpaths)
    }

    async fn delete(&self, key: &SessionKey) -> StoreResult<()> {
        let path = self.path(key);
        let deleted = match (&key.subpath, path.parent()) {
            (None, Some(folder)) => fs::remove_dir_all(folder),
            (Some(_), _) | (None, None) => fs::remove_file(&path),
        };
        match deleted {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl FileSessionStore {
    fn path(&self, key: &SessionKey) -> PathBuf {
        let log = key.subpath.as_deref().map_or_else(|| "main".to_owned(), name);
        self.0.join(name(&key.project_key)).join(name(&key.session_id)).join(format!("{log}.jsonl"))
    }
}

/// A name for a text: its FNV-1a hash of 128 bits. The first line distinguishes two texts with the same name.
fn name(text: &str) -> String {
    let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let hash = text.bytes().fold(start, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    format!("{hash:032x}")
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(Result::ok).map(|entry| entry.path()).collect()
}

fn key_of(log: &Path) -> StoreResult<SessionKey> {
    let text = fs::read_to_string(log)?;
    Ok(serde_json::from_str(text.lines().next().unwrap_or_default())?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let store = FileSessionStore(std::env::temp_dir().join("qoder-sessions"));
    let session_id = run(QoderAgentOptions::new().session_store(store)).await?;
    println!("{session_id} continues wherever the directory is mounted");
    Ok(())
}

/// Asks, and resumes from what the store has. Returns the session's id.
pub async fn run(options: QoderAgentOptions) -> Result<String, Error> {
    let first = ask("Say hello.", options.clone()).await?;
    let same = ask("Say it again.", options.resume(&first)).await?;
    assert_eq!(first, same, "the same session continues");
    Ok(first)
}

async fn ask(prompt: &str, options: QoderAgentOptions) -> Result<String, Error> {
    let mut id = String::new();
    let mut messages = query(prompt, options)?;
    while let Some(message) = messages.next().await {
        if let Some(result) = message?.as_result() {
            id.clone_from(&result.session_id);
        }
    }
    messages.close().await;
    Ok(id)
}
