//! The bound on the room that all checkpoints of a configuration root take together. It is counted when something is to be
//! kept and not before. When it is reached, the checkpoints of those sessions go first that were worked on longest ago;
//! those of a session that a process drives are never touched.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::CheckpointError;
use super::index::Folder;
use crate::catalog::is_session_id;
use crate::layout::{SessionPaths, projects};

/// Other processes keep files too: what is there is counted anew after this part of the bound.
const COUNT_AGAIN: u64 = 16;

/// Room for checkpoints.
#[derive(Debug)]
pub(super) struct Space {
    config_root: PathBuf,
    most: u64,
    /// What is taken, as far as it is known.
    taken: Option<u64>,
    /// What was taken here since it was counted.
    since: u64,
}

/// The checkpoints of one session.
struct SessionCheckpoints {
    folder: Folder,
    lock: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

impl Space {
    pub(super) fn new(config_root: &Path, most: u64) -> Self {
        Self { config_root: config_root.to_path_buf(), most, taken: None, since: 0 }
    }

    /// Takes room for `bytes` in `own`, collecting checkpoints of other sessions when there is too little.
    pub(super) fn take(&mut self, own: &Folder, bytes: u64) -> Result<(), CheckpointError> {
        let stale = self.since > self.most / COUNT_AGAIN;
        let taken = match self.taken.filter(|_| !stale) {
            Some(taken) if taken.saturating_add(bytes) <= self.most => taken,
            Some(_) | None => self.make_room(own, bytes)?,
        };
        self.taken = Some(taken + bytes);
        self.since += bytes;
        Ok(())
    }

    /// Counts, and collects as much as has to go. Answers with what is taken then.
    fn make_room(&mut self, own: &Folder, bytes: u64) -> Result<u64, CheckpointError> {
        let mut all = self.kept();
        all.sort_by_key(|kept| kept.modified);
        let mut taken: u64 = all.iter().map(|kept| kept.bytes).sum();
        for kept in all.iter().filter(|kept| kept.folder.path() != own.path()) {
            if taken.saturating_add(bytes) <= self.most {
                break;
            }
            if collect(kept) {
                taken -= kept.bytes;
            }
        }
        self.since = 0;
        if taken.saturating_add(bytes) > self.most {
            self.taken = None;
            return Err(CheckpointError::Full {
                folder: own.path().to_path_buf(),
                most: self.most,
                taken,
                bytes,
            });
        }
        Ok(taken)
    }

    fn kept(&self) -> Vec<SessionCheckpoints> {
        let mut all = Vec::new();
        for project in folders(&projects(&self.config_root)) {
            for side in folders(&project) {
                let Some(id) = side.file_name().and_then(|name| name.to_str()) else { continue };
                if !is_session_id(id) {
                    continue;
                }
                let folder = Folder::of_session(&side);
                let Ok(metadata) = folder.path().symlink_metadata() else { continue };
                if !metadata.is_dir() {
                    continue;
                }
                let newest = folder.newest().or_else(|| metadata.modified().ok());
                all.push(SessionCheckpoints {
                    bytes: size(folder.path()) + size(&folder.blobs()),
                    modified: newest.unwrap_or(SystemTime::UNIX_EPOCH),
                    lock: SessionPaths::new(&project, id).lock(),
                    folder,
                });
            }
        }
        all
    }
}

/// The folders in a folder; links are none.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// The size of the files in a folder.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|metadata| metadata.len())
        .sum()
}

/// Removes the checkpoints of a session that no process drives. False when they stay.
fn collect(kept: &SessionCheckpoints) -> bool {
    let held = File::open(&kept.lock);
    // Without a lock file no process has driven it since it was written.
    if held.as_ref().is_ok_and(|lock| lock.try_lock().is_err()) {
        return false;
    }
    std::fs::remove_dir_all(kept.folder.path()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::index::{CheckpointIndex, Line};
    use super::*;

    /// A session with checkpoints of `bytes` bytes, written last.
    fn session(root: &Path, number: u32, bytes: usize) -> Folder {
        let side = root.join("projects/p").join(format!("00000000-0000-4000-8000-{number:012}"));
        let folder = Folder::of_session(&side);
        let mut index = CheckpointIndex::open(&folder).unwrap();
        index.append(&[Line::Message { uuid: number.to_string() }]).unwrap();
        index.keep(&vec![b'0' + u8::try_from(number).unwrap(); bytes]).unwrap();
        let age = std::time::Duration::from_secs(1_000 - u64::from(number));
        let written = File::options().append(true).open(folder.path().join("manifest.jsonl")).unwrap();
        written.set_modified(SystemTime::now() - age).unwrap();
        folder
    }

    #[test]
    fn the_oldest_go_first_and_one_that_is_driven_stays() {
        let place = tempfile::tempdir().unwrap();
        let all: Vec<Folder> = (1..=4).map(|number| session(place.path(), number, 1_000)).collect();
        let lock = File::create(all[0].path().with_file_name("lock")).unwrap();
        lock.lock().unwrap();
        let mut space = Space::new(place.path(), 4_400);
        space.take(&all[3], 100).unwrap();
        assert!(all.iter().all(|folder| folder.path().exists()));
        space.take(&all[3], 1_000).unwrap();
        let left: Vec<bool> = all.iter().map(|folder| folder.path().exists()).collect();
        assert_eq!(left, [true, false, true, true]);
        let error = space.take(&all[3], 5_000).unwrap_err();
        assert_eq!(error.code(), "checkpoint_store_full");
        assert!(error.to_string().contains(&all[3].path().display().to_string()), "{error}");
    }
}
