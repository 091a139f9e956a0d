//! The file beside an agent's log that says which agent it is and which call started it. It is written before the log, so
//! that every log has a known owner.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;

use super::folders;

/// The most bytes of a sidecar.
const LARGEST: u64 = 64 * 1024;

/// Writes it in one step, so that it survives a loss of power: without it the agent cannot be resumed.
pub(crate) fn write(path: &Path, sidecar: &Value) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    folders::create(folder)?;
    let unfinished = path.with_extension("new");
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(&serde_json::to_vec(sidecar)?)?;
    file.sync_data()?;
    std::fs::rename(unfinished, path)?;
    folders::sync(folder)
}

/// Reads it; `None` when it is missing or damaged.
pub(crate) fn read(path: &Path) -> Option<Value> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}
