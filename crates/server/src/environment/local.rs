//! The folders of sessions on this machine. Each session has its own, which no other can read; what is in them is never
//! interpreted as configuration.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use qoder_types::workspace::Isolation;

use super::mounts::MountPoint;
use crate::model::ids::{SessionId, hex};

/// The folders of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Where its tools work.
    pub workspace: PathBuf,
    /// What else belongs to it.
    pub session: PathBuf,
    /// The home of its commands.
    pub home: PathBuf,
    /// What the server keeps of outputs; the session reads it and cannot change it, so the server can trust its paths.
    pub outputs: PathBuf,
    /// What the tool host keeps of outputs.
    pub host_outputs: PathBuf,
    /// What is mounted beside the workspace; the session reads it and cannot change it.
    pub mounts: PathBuf,
    /// What the server notes about the other folders; the session cannot reach it.
    pub notes: PathBuf,
}

impl Places {
    /// What the session has for itself, and what it reads.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        let isolation = Isolation::new(vec![self.workspace.clone(), self.session.clone()]);
        Isolation { mounted: vec![self.mounts.clone(), self.outputs.clone()], ..isolation }
    }

    /// Where a path of the interface is; `None` when it is in none of the session's folders.
    #[must_use]
    pub fn mount_point(&self, path: &str) -> Option<MountPoint> {
        MountPoint::of(path, &self.workspace, &self.mounts)
    }
}

/// The folders of all sessions.
#[derive(Debug, Clone)]
pub struct LocalEnvironments(PathBuf);

impl LocalEnvironments {
    /// Below this folder.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self(root.to_path_buf())
    }

    /// The folder below which all are.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }

    fn folder(&self, session: SessionId) -> PathBuf {
        self.0.join(hex(&session.0))
    }

    /// The folders of a session, which are made if they are not there.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn prepare(&self, session: SessionId) -> io::Result<Places> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        // Tools and containers name these folders from other working directories, and by their real paths.
        let folder = Self(self.0.canonicalize()?).folder(session);
        let own = folder.join("session");
        let places = Places {
            workspace: folder.join("workspace"),
            home: own.join("home"),
            outputs: folder.join("outputs"),
            host_outputs: own.join("outputs"),
            session: own,
            mounts: folder.join("mounts"),
            notes: folder.join("notes"),
        };
        let all = [&places.workspace, &places.home, &places.outputs, &places.mounts, &places.notes];
        for folder in all {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Ok(places)
    }

    /// Removes a file that was mounted.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn unmount(&self, session: SessionId, path: &str) -> io::Result<()> {
        let folder = self.folder(session);
        let point = MountPoint::of(path, &folder.join("workspace"), &folder.join("mounts"));
        point.map_or(Ok(()), |point| point.remove())
    }

    /// Removes everything of a session.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn remove(&self, session: SessionId) -> io::Result<()> {
        match std::fs::remove_dir_all(self.folder(session)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_session_has_private_folders_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let environments = LocalEnvironments::new(folder.path());
        let (one, other) = (SessionId([1; 16]), SessionId([2; 16]));
        let places = environments.prepare(one).unwrap();
        assert_eq!(environments.prepare(one).unwrap(), places, "made once");
        assert_ne!(environments.prepare(other).unwrap().workspace, places.workspace);
        for path in [&places.workspace, &places.home, &places.outputs, &environments.folder(one)] {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
        environments.remove(one).unwrap();
        environments.remove(one).unwrap();
        assert!(!places.workspace.exists() && environments.prepare(other).unwrap().workspace.exists());
    }
}
