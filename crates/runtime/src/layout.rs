//! Where things are on disk: the configuration root, a project's key, and the files of a session. Everything follows
//! the configuration root, so moving that moves all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

/// The configuration root, from the environment.
#[must_use]
pub fn config_root(environment: &BTreeMap<String, String>) -> PathBuf {
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A client of the sibling CLI can redirect only its own variable, so that one wins while it is attached.
    let attached = environment.contains_key("CLAUDE_AGENT_SDK_VERSION");
    attached
        .then(|| variable("CLAUDE_CONFIG_DIR"))
        .flatten()
        .or_else(|| variable("QODER_CONFIG_DIR"))
        .or_else(|| variable("CLAUDE_CONFIG_DIR"))
        .unwrap_or_else(|| home(environment).join(".qoder"))
}

/// The person's home directory: the variable, else what the password database says.
#[must_use]
pub fn home(environment: &BTreeMap<String, String>) -> PathBuf {
    let variable = environment.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let known = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    variable.or_else(known).unwrap_or_else(|| PathBuf::from("/"))
}

/// A path of a person's settings, with a leading `~` replaced by the home directory.
#[must_use]
pub fn expand_home(path: &str, environment: &BTreeMap<String, String>) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home(environment),
        Some(rest) if rest.starts_with('/') => home(environment).join(rest.trim_start_matches('/')),
        Some(_) | None => PathBuf::from(path),
    }
}

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
        Self { log: project.join(format!("{id}.jsonl")), side: project.join(id) }
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

    /// Tool outputs that are too long for the model.
    #[must_use]
    pub fn outputs(&self) -> PathBuf {
        self.side.join("outputs")
    }
}

/// The folder of a project's sessions.
#[must_use]
pub fn project_folder(config_root: &Path, canonical_cwd: &Path) -> PathBuf {
    config_root.join("projects").join(project_key(canonical_cwd))
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

    #[test]
    fn the_configuration_root_follows_the_documented_order() {
        let env = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let root = |pairs| config_root(&env(pairs));
        assert_eq!(root(&[("HOME", "/h")]), Path::new("/h/.qoder"));
        assert_eq!(root(&[("QODER_CONFIG_DIR", "/q"), ("CLAUDE_CONFIG_DIR", "/c")]), Path::new("/q"));
        assert_eq!(root(&[("CLAUDE_CONFIG_DIR", "/c"), ("HOME", "/h")]), Path::new("/c"));
        let attached =
            [("CLAUDE_AGENT_SDK_VERSION", "1"), ("QODER_CONFIG_DIR", "/q"), ("CLAUDE_CONFIG_DIR", "/c")];
        assert_eq!(root(&attached), Path::new("/c"));
    }
}
