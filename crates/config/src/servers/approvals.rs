//! What the person has approved: servers of a folder, each bound to the folder's real path and a digest of its whole
//! description. Kept in the user's own configuration; a file that cannot be read approves nothing.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::settings::{WriteError, replace_file};

/// The most bytes that are read.
const LONGEST: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ApprovedServer {
    project: PathBuf,
    server: String,
    digest: String,
}

/// The approvals of a person.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Approvals {
    servers: Vec<ApprovedServer>,
}

fn file(config_root: &Path) -> PathBuf {
    config_root.join("mcp-approvals.json")
}

impl Approvals {
    /// Reads them.
    #[must_use]
    pub fn load(config_root: &Path) -> Self {
        let mut bytes = Vec::new();
        let read = std::fs::File::open(file(config_root))
            .and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
        read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// True when exactly this description was approved for the project.
    #[must_use]
    pub fn has(&self, project: &Path, server: &str, digest: &str) -> bool {
        let same =
            |one: &ApprovedServer| one.project == project && one.server == server && one.digest == digest;
        self.servers.iter().any(same)
    }

    /// Approves a description in place of what was approved under its name before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(config_root: &Path, project: &Path, server: &str, digest: &str) -> Result<(), WriteError> {
        let approval = ApprovedServer {
            project: project.to_path_buf(),
            server: server.to_owned(),
            digest: digest.to_owned(),
        };
        Self::change(config_root, project, server, Some(&approval))
    }

    /// Approves a description beside others of its name: several agents may each describe a server of one name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add_beside(
        config_root: &Path,
        project: &Path,
        server: &str,
        digest: &str,
    ) -> Result<(), WriteError> {
        let approval = ApprovedServer {
            project: project.to_path_buf(),
            server: server.to_owned(),
            digest: digest.to_owned(),
        };
        let others = |one: &ApprovedServer| {
            one.project != project || one.server != server || one.digest != approval.digest
        };
        Self::rewrite(config_root, others, Some(&approval))
    }

    /// Takes an approval back.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remove(config_root: &Path, project: &Path, server: &str) -> Result<(), WriteError> {
        Self::change(config_root, project, server, None)
    }

    fn change(
        config_root: &Path,
        project: &Path,
        server: &str,
        approval: Option<&ApprovedServer>,
    ) -> Result<(), WriteError> {
        Self::rewrite(config_root, |one| one.project != project || one.server != server, approval)
    }

    fn rewrite(
        config_root: &Path,
        stays: impl Fn(&ApprovedServer) -> bool,
        approval: Option<&ApprovedServer>,
    ) -> Result<(), WriteError> {
        replace_file(&file(config_root), || {
            let mut all = Self::load(config_root);
            all.servers.retain(&stays);
            all.servers.extend(approval.cloned());
            let mut bytes = serde_json::to_vec_pretty(&all).map_err(|error| error.to_string())?;
            bytes.push(b'\n');
            Ok(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::sources::digest;

    #[test]
    fn an_approval_holds_for_one_description_of_one_folder() {
        let root = tempfile::tempdir().unwrap();
        let value = json!({ "command": "a", "args": ["b"] });
        let mark = digest("git", &value);
        assert_eq!(mark, digest("git", &json!({ "args": ["b"], "command": "a" })));
        assert_ne!(mark, digest("git", &json!({ "command": "a", "args": ["b", "c"] })));
        assert_ne!(mark, digest("gi", &value));
        Approvals::add(root.path(), Path::new("/p"), "git", &mark).unwrap();
        let approvals = Approvals::load(root.path());
        assert!(approvals.has(Path::new("/p"), "git", &mark));
        assert!(!approvals.has(Path::new("/q"), "git", &mark));
        Approvals::add(root.path(), Path::new("/p"), "git", "other").unwrap();
        assert!(!Approvals::load(root.path()).has(Path::new("/p"), "git", &mark));
        for _ in 0..2 {
            Approvals::add_beside(root.path(), Path::new("/p"), "git", &mark).unwrap();
        }
        let both = Approvals::load(root.path());
        assert!(both.has(Path::new("/p"), "git", &mark) && both.has(Path::new("/p"), "git", "other"));
        assert_eq!(both.servers.len(), 2);
        Approvals::remove(root.path(), Path::new("/p"), "git").unwrap();
        assert!(Approvals::load(root.path()).servers.is_empty());
    }

    #[test]
    fn a_damaged_file_approves_nothing() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(file(root.path()), "{\"servers\": [{]").unwrap();
        assert!(Approvals::load(root.path()).servers.is_empty());
    }
}
