//! What the repository's own commands share: child processes, packages of others, and where the repository is.

pub mod packages;
pub mod process;

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The workspace's root: the folder above the running crate's.
pub fn repository_root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("run me as `cargo xtask`")?;
    let root = PathBuf::from(here).parent().context("this crate's folder has no parent")?.to_path_buf();
    Ok(root)
}
