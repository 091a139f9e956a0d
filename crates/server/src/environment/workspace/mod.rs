//! What a workspace contains, as it is kept for other nodes: an inventory of its folders, files and links, and the content of files.
//! Commands of the session may change anything at any moment, so nothing here follows a link, waits for a pipe or believes a size.

mod inventory;
mod restore;
mod scan;

pub use inventory::{FileEntry, FolderEntry, Inventory, LinkEntry, PathText, Seen};
pub use restore::Restoration;
pub use scan::{LIMITS, Limits, Scan, ScanError, WorkspaceFile, open_found, scan};
