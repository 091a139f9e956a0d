//! Whether files of skills and agents changed since they were read. They are looked at when a turn begins; a folder that
//! is not there costs nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sources::Kind;
use crate::sources::files::MOST_ENTRIES;
use crate::sources::{Stamp, stamp};

/// What was there.
pub(super) type Seen = BTreeMap<PathBuf, (Kind, Stamp)>;

/// What is there now.
pub(super) fn look(places: &[(Kind, PathBuf)]) -> Seen {
    let mut seen = Seen::new();
    for (kind, place) in places {
        for file in files(*kind, place) {
            if let Some(stamp) = stamp(&file) {
                seen.insert(file, (*kind, stamp));
            }
        }
    }
    seen
}

fn files(kind: Kind, place: &Path) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(place) else { return vec![place.to_path_buf()] };
    let entries = listed.filter_map(Result::ok).map(|entry| entry.path()).take(MOST_ENTRIES);
    match kind {
        Kind::Skills => entries.map(|folder| folder.join(crate::skills::FILE)).collect(),
        Kind::Agents | Kind::Commands => {
            entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
        }
    }
}

/// The files that came, went or are not what they were.
pub(super) fn differences(before: &Seen, now: &Seen) -> Vec<(Kind, PathBuf)> {
    let changed = now.iter().filter(|(file, seen)| before.get(*file) != Some(*seen));
    let gone = before.iter().filter(|(file, _)| !now.contains_key(*file));
    changed.chain(gone).map(|(file, (kind, _))| (*kind, file.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_come_change_and_go_are_named_with_their_kind() {
        let folder = tempfile::tempdir().unwrap();
        let (skills, agents) = (folder.path().join("skills"), folder.path().join("agents"));
        let places = [(Kind::Skills, skills.clone()), (Kind::Agents, agents.clone())];
        let empty = look(&places);
        assert!(empty.is_empty());
        std::fs::create_dir_all(skills.join("pdf")).unwrap();
        std::fs::create_dir_all(&agents).unwrap();
        std::fs::write(skills.join("pdf/SKILL.md"), "a").unwrap();
        std::fs::write(skills.join("pdf/other.md"), "a").unwrap();
        std::fs::write(agents.join("a.md"), "a").unwrap();
        std::fs::write(agents.join("a.txt"), "a").unwrap();
        let first = look(&places);
        let (skill, agent) = (skills.join("pdf/SKILL.md"), agents.join("a.md"));
        assert_eq!(
            differences(&empty, &first),
            [(Kind::Agents, agent.clone()), (Kind::Skills, skill.clone())]
        );
        std::fs::write(&agent, "longer").unwrap();
        std::fs::remove_file(&skill).unwrap();
        assert_eq!(differences(&first, &look(&places)), [(Kind::Agents, agent), (Kind::Skills, skill)]);
    }
}
