//! The question about a folder: what would count if it were trusted, and whether the person has decided already. The files are
//! read for this list alone; nothing of them is used.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use qoder_files::read_regular;
use qoder_runtime::events::NoticeKind;
use qoder_runtime::setup::Setup;
use qoder_terminal::TrustFacts;
use serde_json::Value;

use crate::listings::hooks;

/// The largest file that is looked at.
const LARGEST: u64 = 1024 * 1024;
/// Where it is remembered that a folder is not to be trusted.
const REFUSED: &str = "untrusted-folders.json";

/// What trusting the folder would enable; nothing when it is trusted, cannot be, has nothing to offer, or was refused as it is.
pub fn question(setup: &Setup) -> Option<TrustFacts> {
    if setup.config.trust.is_trusted() {
        return None;
    }
    let notice = setup.warnings.iter().find(|notice| notice.kind == NoticeKind::UntrustedFolder)?;
    let home = qoder_config::home::home(&setup.options.environment);
    let home = home.canonicalize().unwrap_or(home);
    if qoder_config::trust::is_too_wide(&setup.cwd, &home) {
        return None;
    }
    let root = &setup.config.project_root;
    let facts = TrustFacts { folder: root.display().to_string(), enables: enables(root, &notice.files) };
    let refused = refused(&setup.config.config_root);
    (refused.get(&facts.folder) != Some(&digest(&facts))).then_some(facts)
}

/// Remembers that the person said no, until something about the folder changes.
pub fn refuse(config_root: &Path, facts: &TrustFacts) {
    let mut all = refused(config_root);
    all.insert(facts.folder.clone(), digest(facts));
    let text = serde_json::to_vec_pretty(&all).unwrap_or_default();
    let path = config_root.join(REFUSED);
    let written = std::fs::create_dir_all(config_root).and_then(|()| {
        let mut file =
            std::fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)?;
        std::io::Write::write_all(&mut file, &text)
    });
    // Otherwise the question comes again.
    drop(written);
}

fn refused(config_root: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read(config_root.join(REFUSED)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn digest(facts: &TrustFacts) -> u64 {
    let mut hasher = DefaultHasher::new();
    facts.enables.hash(&mut hasher);
    // Numbers of JSON are exact up to here.
    hasher.finish() >> 12
}

fn enables(root: &Path, files: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    let (found, _) = qoder_config::hooks::hooks_of_folder(root);
    lines.extend(found.iter().map(|hook| format!("hook {}", hooks::line(hook))));
    lines.extend(servers(&root.join(".mcp.json"), root));
    for name in ["settings.json", "settings.local.json"] {
        let path = root.join(".qoder").join(name);
        lines.extend(servers(&path, root));
        lines.extend(allow_rules(&path, root));
    }
    let short = |path: &PathBuf| path.strip_prefix(root).unwrap_or(path).display().to_string();
    lines.extend(files.iter().map(|path| format!("file {}", short(path))));
    lines
}

fn json_file(path: &Path, root: &Path) -> Option<Value> {
    let (bytes, _) = read_regular(path, Some(root), LARGEST).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// MCP servers with their whole command lines.
fn servers(path: &Path, root: &Path) -> Vec<String> {
    let Some(file) = json_file(path, root) else { return Vec::new() };
    let servers = file["mcpServers"].as_object().cloned().unwrap_or_default();
    let line = |(name, server): (&String, &Value)| {
        let words = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let command = server["command"]
            .as_str()
            .map(|command| std::iter::once(command).chain(words).collect::<Vec<_>>().join(" "));
        let target = command.or_else(|| server["url"].as_str().map(str::to_owned)).unwrap_or_default();
        format!("MCP server {name}: {target}")
    };
    servers.iter().map(line).collect()
}

fn allow_rules(path: &Path, root: &Path) -> Vec<String> {
    let Some(file) = json_file(path, root) else { return Vec::new() };
    let rules = file["permissions"]["allow"].as_array().cloned().unwrap_or_default();
    rules.iter().filter_map(Value::as_str).map(|rule| format!("rule allow {rule}")).collect()
}
