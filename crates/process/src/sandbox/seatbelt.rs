//! The profile text by which macOS confines a command: everything readable but what is denied, writing in the writable
//! places without the protected ones, no network.
//!
//! The protected names are matched wherever they would be, so absent ones are covered. Renaming a root, or a folder
//! above a protected place, would move it out of the rules; that is denied too.

#![cfg_attr(
    not(target_os = "macos"),
    allow(dead_code, reason = "used on macOS; its text is tested everywhere")
)]

use std::path::Path;

use qoder_types::workspace::{PROTECTED_FILES, PROTECTED_FOLDERS};

use super::error::SandboxError;
use super::plan::SandboxPlan;

/// The profile for a plan.
pub(crate) fn profile(plan: &SandboxPlan) -> Result<String, SandboxError> {
    if plan.network.is_open() {
        let reason = "hosts cannot be told apart on this system".to_owned();
        return Err(SandboxError::Unenforceable { what: "a list of hosts", reason });
    }
    let mut text = String::from(
        "(version 1)\n(deny default)\n(allow process-exec process-fork signal (target same-sandbox))\n\
         (allow sysctl-read mach-lookup ipc-posix-shm file-ioctl pseudo-tty)\n(allow file-read*)\n\
         (allow file-write-data (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))\n",
    );
    let mut rule = |verdict: &str, action: &str, filter: &str| {
        text.push_str(&format!("({verdict} {action} {filter})\n"));
    };
    for path in plan.writable.iter().chain([&plan.scratch.temporary()]) {
        rule("allow", "file-write*", &format!("(subpath {})", quoted(path)?));
    }
    let names = PROTECTED_FOLDERS.iter().chain(PROTECTED_FILES);
    let names: Vec<String> = names.map(|name| name.replace('.', "\\.")).collect();
    if plan.workspace.isolation.is_none() {
        rule("deny", "file-write*", &format!("(regex #\"/({})(/|$)\")", names.join("|")));
    }
    for path in &plan.unprotected {
        rule("allow", "file-write*", &format!("(subpath {})", quoted(path)?));
    }
    for path in plan.deny_write.iter().chain([&plan.workspace.config_dir]).filter(|path| path.is_absolute()) {
        rule("deny", "file-write*", &format!("(subpath {})", quoted(path)?));
    }
    for path in &plan.deny_read {
        rule("deny", "file-read* file-write*", &format!("(subpath {})", quoted(path)?));
    }
    for path in &plan.allow_read {
        rule("allow", "file-read*", &format!("(subpath {})", quoted(path)?));
    }
    for path in &plan.writable {
        for above in path.ancestors() {
            rule("deny", "file-write-unlink", &format!("(literal {})", quoted(above)?));
        }
    }
    if plan.network.local_binding {
        rule("allow", "network-bind network-inbound network-outbound", "(local ip \"localhost:*\")");
    }
    if plan.unix_sockets {
        rule("allow", "network*", "(remote unix-socket)");
    }
    Ok(text)
}

/// A path as the profile language writes it.
fn quoted(path: &Path) -> Result<String, SandboxError> {
    match path.to_str() {
        Some(text) if !text.contains(['\n', '\0']) => {
            Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        }
        _ => {
            let source = std::io::Error::other("the path cannot be written in a profile");
            Err(SandboxError::Place { path: path.to_path_buf(), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Sandbox, SandboxPlaces, SandboxSettings};

    #[test]
    fn a_profile_denies_first_and_protects_last() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("a\"b");
        std::fs::create_dir(&root).unwrap();
        let mut settings = SandboxSettings::default();
        settings.filesystem.deny_read = vec!["secret".to_owned()];
        let sandbox = Sandbox::new(settings, SandboxPlaces::default());
        let text = profile(&sandbox.plan(&root, std::slice::from_ref(&root)).unwrap()).unwrap();
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        assert!(at("(deny default)") < at("(allow file-write* (subpath"));
        assert!(text.contains("a\\\"b"), "quotes are escaped");
        assert!(at("(allow file-write* (subpath") < at("(deny file-write* (regex"));
        assert!(text.contains("\\.git|") && text.contains("(deny file-read* file-write* (subpath"));
        assert!(!text.contains("(allow network"));
        let mut settings = SandboxSettings::default();
        settings.network.allowed_domains = vec!["*".to_owned()];
        let sandbox = Sandbox::new(settings, SandboxPlaces::default());
        assert!(profile(&sandbox.plan(&root, std::slice::from_ref(&root)).unwrap()).is_err());
    }
}
