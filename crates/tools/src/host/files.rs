//! A file of the environment, read through its tool host.

use std::path::Path;
use std::sync::Arc;

use super::error::HostError;
use super::link::Link;
use super::message::ToHost;
use super::pending::FileAnswer;

/// A regular file that is open in a tool host.
pub struct HostFile {
    link: Arc<Link>,
    number: u64,
    /// How many bytes it had when it was opened.
    pub size: u64,
}

impl std::fmt::Debug for HostFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HostFile").field("size", &self.size).finish_non_exhaustive()
    }
}

impl HostFile {
    pub(crate) async fn open(link: Arc<Link>, path: &Path) -> Result<Self, HostError> {
        let number = link.number();
        let message = ToHost::OpenFile { file: number, path: path.to_path_buf() };
        let answer = link.pending.ask_for_file(number, &message).await?;
        match answer {
            FileAnswer::Opened(size) => Ok(Self { link, number, size }),
            FileAnswer::Failed(problem) => Err(HostError::File(problem)),
            FileAnswer::Piece(_) => Err(HostError::File("it cannot be opened".to_owned())),
        }
    }

    /// The next piece; an empty one at the end.
    ///
    /// # Errors
    /// When it cannot be read, or the host has ended.
    pub async fn read(&mut self) -> Result<Vec<u8>, HostError> {
        let message = ToHost::ReadFile { file: self.number };
        match self.link.pending.ask_for_file(self.number, &message).await? {
            FileAnswer::Piece(piece) => Ok(piece),
            FileAnswer::Failed(problem) => Err(HostError::File(problem)),
            FileAnswer::Opened(_) => Err(HostError::File("it cannot be read".to_owned())),
        }
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        self.link.sender.send(&ToHost::CloseFile { file: self.number });
    }
}
