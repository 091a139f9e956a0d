//! What a worker has begun and brought to an end, in a file per session: a call is written down before it runs, its result before it
//! is sent. A later process reads which calls must not run again, and sends results that were not delivered.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Progress {
    /// It was about to run.
    Started,
    /// It has this result, which may not be delivered yet.
    Ended {
        /// The event that delivers it.
        event: Value,
    },
}

#[derive(Serialize, Deserialize)]
struct Line {
    call: String,
    #[serde(flatten)]
    progress: Progress,
}

/// The calls of one session.
pub struct CallLog {
    file: File,
    calls: BTreeMap<String, Progress>,
}

impl CallLog {
    /// Opens the log of a session; what an earlier process left incomplete at its end is dropped.
    pub fn open(path: &Path) -> io::Result<Self> {
        let known = match std::fs::read_to_string(path) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let lines = known.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let calls = lines.map(|line| (line.call, line.progress)).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if !known.is_empty() && !known.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(Self { file, calls })
    }

    /// How far a call is; `None` for one that never began.
    pub fn progress(&self, call: &str) -> Option<&Progress> {
        self.calls.get(call)
    }

    /// Writes down how far a call is, for good.
    pub fn note(&mut self, call: &str, progress: Progress) -> io::Result<()> {
        let line = Line { call: call.to_owned(), progress: progress.clone() };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.calls.insert(call.to_owned(), progress);
        Ok(())
    }
}

/// The items that a worker has, as files: a later process continues their leases.
pub struct Items(PathBuf);

impl Items {
    /// The items of a worker, below its folder.
    pub fn open(folder: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let items = folder.join("items");
        // What an item holds opens its session.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&items)?;
        Ok(Self(items))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    /// Keeps an item as it is now.
    pub fn keep(&self, id: &str, item: &Value) -> io::Result<()> {
        let beside = self.path(id).with_extension("new");
        std::fs::write(&beside, item.to_string())?;
        std::fs::rename(beside, self.path(id))
    }

    /// Forgets an item.
    pub fn forget(&self, id: &str) {
        // One that is not there is forgotten.
        let _ = std::fs::remove_file(self.path(id));
    }

    /// Every item that is kept.
    pub fn all(&self) -> Vec<Value> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let is_item = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_item);
        let texts = paths.filter_map(|path| std::fs::read_to_string(path).ok());
        texts.filter_map(|text| serde_json::from_str(&text).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_later_process_knows_what_began_and_what_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls.jsonl");
        let ended = Progress::Ended { event: json!({ "type": "user.tool_result" }) };
        {
            let mut log = CallLog::open(&path).unwrap();
            assert_eq!(log.progress("evt_1"), None);
            log.note("evt_1", Progress::Started).unwrap();
            log.note("evt_1", ended.clone()).unwrap();
            log.note("evt_2", Progress::Started).unwrap();
        }
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"call\":\"evt_3\",\"st").unwrap();
        let mut log = CallLog::open(&path).unwrap();
        assert_eq!(log.progress("evt_1"), Some(&ended));
        assert_eq!(log.progress("evt_2"), Some(&Progress::Started));
        assert_eq!(log.progress("evt_3"), None, "it was cut off");
        log.note("evt_4", Progress::Started).unwrap();
        assert_eq!(CallLog::open(&path).unwrap().progress("evt_4"), Some(&Progress::Started));
    }

    #[test]
    fn items_are_kept_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let items = Items::open(folder.path()).unwrap();
        items.keep("work_1", &json!({ "id": "work_1" })).unwrap();
        items.keep("work_1", &json!({ "id": "work_1", "last_heartbeat": "x" })).unwrap();
        assert_eq!(items.all(), [json!({ "id": "work_1", "last_heartbeat": "x" })]);
        items.forget("work_1");
        items.forget("work_1");
        assert!(items.all().is_empty());
    }
}
