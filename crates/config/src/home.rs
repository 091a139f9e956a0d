//! Where a person's configuration lies: the configuration root and the home directory, by the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

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
