//! Where things are on disk: the configuration root, a project's key, and the files of a session. Everything follows
//! the configuration root, so moving that moves all.

use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// The name of a project's folder under `projects/`: every character of the canonical path that is not a letter or
/// digit becomes `-`; long names are cut and get a hash.
#[must_use]
pub fn project_key(canonical_cwd: &Path) -> String {
    let path: String = canonical_cwd.to_string_lossy().nfc().collect();
    let name: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if name.len() <= 200 {
        return name;
    }
    let hash = path.chars().fold(0_i32, |hash, c| hash.wrapping_mul(31).wrapping_add(c as i32));
    format!("{}-{}", &name[..200], base36(u64::from(hash.unsigned_abs())))
}

fn base36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    loop {
        digits.push(DIGITS[(number % 36) as usize]);
        number /= 36;
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

/// How names of logs end.
pub const LOG_ENDING: &str = ".jsonl";
/// The folder of a session's agents, in its side folder.
pub const AGENTS: &str = "subagents";
/// How names of the files of agents begin.
pub const AGENT_PREFIX: &str = "agent-";

/// How names of agents' sidecars end.
const SIDECAR_ENDING: &str = ".meta.json";

/// The files of one session.
#[derive(Debug, Clone)]
pub struct SessionPaths {
    /// The log.
    pub log: PathBuf,
    /// The folder beside it.
    pub side: PathBuf,
}

impl SessionPaths {
    /// The files of session `id` in the project folder `project`.
    #[must_use]
    pub fn new(project: &Path, id: &str) -> Self {
        Self { log: project.join(format!("{id}{LOG_ENDING}")), side: project.join(id) }
    }

    /// The files of the session whose folder is `side`.
    #[must_use]
    pub fn of_side(side: &Path) -> Self {
        let mut log = side.as_os_str().to_owned();
        log.push(LOG_ENDING);
        Self { log: log.into(), side: side.to_path_buf() }
    }

    /// The files of another session in the same folder.
    #[must_use]
    pub fn beside(&self, id: &str) -> Self {
        Self::new(self.log.parent().unwrap_or(Path::new("")), id)
    }

    /// True when the folder of its log has other logs.
    #[must_use]
    pub fn has_others(&self) -> bool {
        let Some(Ok(kept)) = self.log.parent().map(std::fs::read_dir) else { return false };
        let mut others =
            kept.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| *path != self.log);
        others.any(|path| path.to_str().is_some_and(|path| path.ends_with(LOG_ENDING)))
    }

    /// Held by the process that drives the session.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.side.join("lock")
    }

    /// Content that is too large for a record.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.side.join("blobs")
    }

    /// What other processes leave for the one that drives the session.
    #[must_use]
    pub fn inbox(&self) -> PathBuf {
        self.side.join("inbox")
    }

    /// The agents that the session, or agent, has started.
    #[must_use]
    pub fn agents(&self) -> PathBuf {
        self.side.join(AGENTS)
    }

    /// The files of an agent that the session, or agent, has started.
    #[must_use]
    pub fn agent(&self, agent_id: &str) -> Self {
        Self::new(&self.agents(), &format!("{AGENT_PREFIX}{agent_id}"))
    }

    /// The ids of the agents that the session, or agent, has started, in order: those with a log or a sidecar.
    #[must_use]
    pub fn agent_ids(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.agents()).into_iter().flatten().filter_map(Result::ok);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let id = |name: String| {
            let name = name.strip_prefix(AGENT_PREFIX)?;
            Some(name.strip_suffix(LOG_ENDING).or_else(|| name.strip_suffix(SIDECAR_ENDING))?.to_owned())
        };
        let mut ids: Vec<String> = names.filter_map(id).collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// What says which agent it is and which call started it, beside the log of an agent.
    #[must_use]
    pub fn sidecar(&self) -> PathBuf {
        let mut path = self.side.as_os_str().to_owned();
        path.push(SIDECAR_ENDING);
        path.into()
    }

    /// What files were before the session changed them.
    #[must_use]
    pub fn checkpoints(&self) -> PathBuf {
        self.side.join("checkpoints")
    }

    /// Tool outputs that are too long for the model.
    #[must_use]
    pub fn outputs(&self) -> PathBuf {
        self.side.join("outputs")
    }
}

/// The folder with the folders of all projects.
#[must_use]
pub fn projects(config_root: &Path) -> PathBuf {
    config_root.join("projects")
}

/// The folder of a project's sessions.
#[must_use]
pub fn project_folder(config_root: &Path, canonical_cwd: &Path) -> PathBuf {
    projects(config_root).join(project_key(canonical_cwd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_document() {
        let long = format!("/{}", "a".repeat(250));
        let cases = [
            ("/home/u/my project.x", "-home-u-my-project-x".to_owned()),
            ("/a_b-c/D9", "-a-b-c-D9".to_owned()),
            ("/srv/Ünï/🦀", "-srv--n---".to_owned()),
            (long.as_str(), format!("-{}-feo44x", "a".repeat(199))),
        ];
        for (path, key) in cases {
            assert_eq!(project_key(Path::new(path)), key);
        }
    }
}
