//! API keys that a person stored with `/login`: in the system's keychain, else in one file that only its owner can read. They
//! count where the environment has no such variable. The file names what is stored, so that a start without stored keys asks
//! no keychain.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file in the configuration folder.
const FILE_NAME: &str = "keys.json";
/// Larger ones are not ours.
const LARGEST: u64 = 256 * 1024;
/// Keys are at most this long.
const LONGEST_KEY: usize = 4096;

/// Why a key cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The provider is not known.
    #[error(
        "`{0}` is not a provider that a key can be stored for; there are anthropic, openai, qoder, and providers of your settings with `apiKeyEnv`"
    )]
    Provider(String),
    /// It is not a key.
    #[error("this is not a key: {0}")]
    NotAKey(&'static str),
    /// The file cannot be used.
    #[error("{} {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Where a key is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Stored {
    /// In the keychain.
    Keychain,
    /// Here.
    Key(String),
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    /// By the variable that each stands for.
    keys: BTreeMap<String, Stored>,
}

/// The variable that the key of a provider stands for. `named` gives the variables of providers in the settings.
pub fn variable(provider: &str, named: impl Fn(&str) -> Option<String>) -> Result<String, KeyError> {
    match provider {
        "anthropic" => Ok("ANTHROPIC_API_KEY".to_owned()),
        "openai" => Ok("OPENAI_API_KEY".to_owned()),
        "qoder" => Ok("QODER_PERSONAL_ACCESS_TOKEN".to_owned()),
        other => named(other).ok_or_else(|| KeyError::Provider(other.to_owned())),
    }
}

/// Adds stored keys to an environment, where it has none. A file that cannot be read is a warning.
pub fn add_to(environment: &mut BTreeMap<String, String>) -> Option<String> {
    let root = qoder_config::home::config_root(environment);
    let path = root.join(FILE_NAME);
    if !path.exists() {
        return None;
    }
    let content = match read(&path) {
        Ok(content) => content,
        Err(error) => return Some(format!("stored keys are not used: {error}")),
    };
    for (name, stored) in content.keys {
        if environment.get(&name).is_some_and(|value| !value.is_empty()) {
            continue;
        }
        let key = match stored {
            Stored::Key(key) => Some(key),
            Stored::Keychain => keychain::get(&name),
        };
        environment.extend(key.map(|key| (name, key)));
    }
    None
}

/// Stores a key; answers with the place in words.
pub fn store(root: &Path, name: &str, key: &str) -> Result<String, KeyError> {
    let key = key.trim();
    if key.is_empty()
        || key.len() > LONGEST_KEY
        || key.chars().any(|sign| sign.is_whitespace() || sign.is_control())
    {
        return Err(KeyError::NotAKey("it is empty, too long, or has blanks in it"));
    }
    let path = root.join(FILE_NAME);
    let mut content = read(&path)?;
    let (stored, place) = if keychain::set(name, key) {
        (Stored::Keychain, "the system's keychain".to_owned())
    } else {
        (Stored::Key(key.to_owned()), format!("{} (mode 600)", path.display()))
    };
    content.keys.insert(name.to_owned(), stored);
    write(root, &path, &content)?;
    Ok(place)
}

/// Removes all stored keys; answers with how many there were.
pub fn remove_all(root: &Path) -> Result<usize, KeyError> {
    let path = root.join(FILE_NAME);
    let content = read(&path)?;
    for (name, stored) in &content.keys {
        if matches!(stored, Stored::Keychain) {
            keychain::remove(name);
        }
    }
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(content.keys.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(KeyError::File { path, problem: format!("cannot be removed: {error}") }),
    }
}

fn read(path: &Path) -> Result<Content, KeyError> {
    let wrong = |problem: String| KeyError::File { path: path.to_path_buf(), problem };
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or(0))
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Content { version: 1, keys: BTreeMap::new() });
        }
        Err(error) => return Err(wrong(format!("cannot be opened: {error}"))),
    };
    let facts = file.metadata().map_err(|error| wrong(format!("cannot be looked at: {error}")))?;
    if !facts.is_file() || facts.len() > LARGEST {
        return Err(wrong("is not a file of keys".to_owned()));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(wrong("belongs to another user".to_owned()));
    }
    if facts.mode() & 0o077 != 0 {
        return Err(wrong("can be read or written by others; set its mode to 600".to_owned()));
    }
    let mut text = String::new();
    file.take(LARGEST)
        .read_to_string(&mut text)
        .map_err(|error| wrong(format!("cannot be read: {error}")))?;
    // The parser's own words may quote what it stumbled over.
    serde_json::from_str(&text)
        .map_err(|error| wrong(format!("is not readable (line {}, column {})", error.line(), error.column())))
}

fn write(root: &Path, path: &Path, content: &Content) -> Result<(), KeyError> {
    let wrong = |problem: String| KeyError::File { path: path.to_path_buf(), problem };
    let text = serde_json::to_vec_pretty(content).map_err(|_| wrong("cannot be put together".to_owned()))?;
    let temporary = root.join(format!(".keys-{}.tmp", std::process::id()));
    let written = (|| -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        let mut file =
            std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&temporary)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        File::open(root)?.sync_all()
    })();
    written.map_err(|error| {
        // Often it is not there at all.
        let _ = std::fs::remove_file(&temporary);
        wrong(format!("cannot be written: {error}"))
    })
}

/// The system's keychain. One that does not answer in time is not used.
#[cfg(feature = "keychain")]
mod keychain {
    use std::sync::mpsc;
    use std::time::Duration;

    use keyring::Entry;

    const SERVICE: &str = "qodercli-keys";
    /// A keychain may want to ask a person who is not there.
    const PATIENCE: Duration = Duration::from_secs(3);

    fn ask<T: Send + 'static>(question: impl FnOnce() -> keyring::Result<T> + Send + 'static) -> Option<T> {
        let (sender, answer) = mpsc::sync_channel(1);
        std::thread::Builder::new()
            .name("keychain".to_owned())
            .spawn(move || {
                // The receiver is gone when it took too long.
                let _ = sender.send(question());
            })
            .ok()?;
        answer.recv_timeout(PATIENCE).ok()?.ok()
    }

    pub(super) fn get(name: &str) -> Option<String> {
        let name = name.to_owned();
        ask(move || Entry::new(SERVICE, &name)?.get_password())
    }

    /// True when it is kept, and can be read again.
    pub(super) fn set(name: &str, key: &str) -> bool {
        let (name, kept) = (name.to_owned(), key.to_owned());
        let read = ask(move || {
            let entry = Entry::new(SERVICE, &name)?;
            entry.set_password(&kept)?;
            entry.get_password()
        });
        read.as_deref() == Some(key)
    }

    pub(super) fn remove(name: &str) {
        let name = name.to_owned();
        // One that is gone already is what was wanted.
        let _ = ask(move || Entry::new(SERVICE, &name)?.delete_credential());
    }
}

/// Without a keychain everything is in the file.
#[cfg(not(feature = "keychain"))]
mod keychain {
    pub(super) fn get(_: &str) -> Option<String> {
        None
    }

    pub(super) fn set(_: &str, _: &str) -> bool {
        false
    }

    pub(super) fn remove(_: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_kept_privately_and_counts_where_the_environment_has_none() {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), "OPENAI_API_KEY", " sk-one ").unwrap();
        let file = folder.path().join(FILE_NAME);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let root = folder.path().display().to_string();
        let mut environment = BTreeMap::from([("QODER_CONFIG_DIR".to_owned(), root.clone())]);
        assert_eq!(add_to(&mut environment), None);
        assert_eq!(environment.get("OPENAI_API_KEY").map(String::as_str), Some("sk-one"));
        let mut own = BTreeMap::from([
            ("QODER_CONFIG_DIR".to_owned(), root),
            ("OPENAI_API_KEY".to_owned(), "mine".to_owned()),
        ]);
        add_to(&mut own);
        assert_eq!(own.get("OPENAI_API_KEY").map(String::as_str), Some("mine"));
        assert_eq!(remove_all(folder.path()).unwrap(), 1);
        assert_eq!(remove_all(folder.path()).unwrap(), 0);
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), "X_KEY", "one").unwrap();
        let file = folder.path().join(FILE_NAME);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut environment =
            BTreeMap::from([("QODER_CONFIG_DIR".to_owned(), folder.path().display().to_string())]);
        let warning = add_to(&mut environment).unwrap();
        assert!(warning.contains("mode to 600") && !environment.contains_key("X_KEY"), "{warning}");
    }

    #[test]
    fn only_keys_of_known_providers_are_stored() {
        let named = |name: &str| (name == "mine").then(|| "MY_KEY".to_owned());
        assert_eq!(variable("anthropic", named).unwrap(), "ANTHROPIC_API_KEY");
        assert_eq!(variable("mine", named).unwrap(), "MY_KEY");
        assert!(variable("other", named).is_err());
        let folder = tempfile::tempdir().unwrap();
        assert!(store(folder.path(), "X", "two words").is_err());
    }
}
