//! `qodercli mcp conformance-client SERVER_URL`: drives our client and its OAuth for the public conformance suite of the
//! protocol. For that suite only, so no help mentions it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use qoder_runtime::mcp::conformance;

use crate::exit::{Exit, Fault};

/// True when the words of the command line ask for this.
pub fn is_meant(words: &[OsString]) -> bool {
    words.get(1).is_some_and(|word| word == "mcp")
        && words.get(2).is_some_and(|word| word == "conformance-client")
}

/// Has the conversation.
pub fn run(words: &[OsString], environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    let Some(url) = words.get(3).and_then(|word| word.to_str()) else {
        return Err(Fault::input("there is no server", "qodercli mcp conformance-client SERVER_URL"));
    };
    let general = |message: String| Fault { exit: Exit::General, message, hint: String::new() };
    // Tokens of test servers do not belong among a person's own, unless a folder is named.
    let named = environment.get("QODER_CONFIG_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let temporary =
        std::env::temp_dir().join(format!("qodercli-conformance-{}", uuid::Uuid::new_v4().simple()));
    let root = named.clone().unwrap_or_else(|| temporary.clone());
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&root)
        .map_err(|error| general(format!("{} cannot be made: {error}", root.display())))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| general(error.to_string()))?;
    let outcome = runtime.block_on(conformance::run(url, environment, root));
    runtime.shutdown_background();
    if named.is_none() {
        // What stays is in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&temporary);
    }
    outcome.map(|()| Exit::Success).map_err(|error| general(error.to_string()))
}
