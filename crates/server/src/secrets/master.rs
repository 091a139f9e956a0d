//! The master key: where it comes from, and its generations. The newest one seals; the one before it still opens.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::seal::{self, KEY_LENGTH, SealError, Sealed};

/// The variable that holds the master key.
pub const VARIABLE: &str = "QODER_MASTER_KEY";
/// How many generations a file keeps.
const GENERATIONS: usize = 2;

/// A master key that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The text is not a key.
    #[error("{place} does not hold a master key: {problem}")]
    Malformed {
        /// The variable, file or command.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// The system refused.
    #[error("cannot {what} the master key {}: {problem}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// The command failed.
    #[error("the command for the master key failed: {problem}")]
    Command {
        /// How.
        problem: String,
    },
    /// A key that the server does not keep cannot be replaced by it.
    #[error("the master key comes from {place}, which the server does not write")]
    NotOurs {
        /// The variable or command.
        place: String,
    },
    /// Sealing failed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

impl SecretsError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "master_key_malformed",
            Self::Io { .. } => "master_key_io",
            Self::Command { .. } => "master_key_command",
            Self::NotOurs { .. } => "master_key_not_ours",
            Self::Seal(error) => error.code(),
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Malformed { .. } => {
                "give 32 bytes as 64 hexadecimal digits or as base64; `openssl rand -hex 32` makes one"
                    .to_owned()
            }
            Self::Io { .. } => "check the permissions of the file and its folder".to_owned(),
            Self::Command { .. } => {
                "run the command by hand; it has to print the key and nothing else".to_owned()
            }
            Self::NotOurs { .. } => {
                format!(
                    "set {VARIABLE} to the new key and the old one, separated by a comma, and run the command again"
                )
            }
            Self::Seal(error) => error.hint().to_owned(),
        }
    }
}

/// Where the master key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MasterSource {
    /// The text of the variable.
    Variable(String),
    /// What a command prints.
    Command(String),
    /// A file of the server, made when it is not there.
    File(PathBuf),
}

impl MasterSource {
    /// The place in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Variable(_) => format!("the variable {VARIABLE}"),
            Self::Command(_) => "a command".to_owned(),
            Self::File(path) => format!("the file {}", path.display()),
        }
    }
}

/// The generations of the master key, the newest first.
#[derive(Clone)]
pub struct MasterKey(Vec<(u8, [u8; KEY_LENGTH])>);

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "MasterKey({} generations)", self.0.len())
    }
}

impl MasterKey {
    /// Gets the key; a file that is not there is made.
    ///
    /// # Errors
    /// When it cannot be had, or is not a key.
    pub fn load(source: &MasterSource) -> Result<Self, SecretsError> {
        match source {
            MasterSource::Variable(text) => Self::parse(text, &source.describe()),
            MasterSource::Command(command) => {
                let output = Command::new("/bin/sh").arg("-c").arg(command).output();
                let output = output.map_err(|error| SecretsError::Command { problem: error.to_string() })?;
                if !output.status.success() {
                    return Err(SecretsError::Command { problem: output.status.to_string() });
                }
                Self::parse(&String::from_utf8_lossy(&output.stdout), &source.describe())
            }
            MasterSource::File(path) => {
                let text = match std::fs::read_to_string(path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => create(path)?,
                    read => read.map_err(|error| io("read", path, &error))?,
                };
                Self::parse(&text, &source.describe())
            }
        }
    }

    /// Adds a generation to the file that holds the key.
    ///
    /// # Errors
    /// When the key is not in a file of the server's, or the file cannot be written.
    pub fn rotate(source: &MasterSource) -> Result<Self, SecretsError> {
        let MasterSource::File(path) = source else {
            return Err(SecretsError::NotOurs { place: source.describe() });
        };
        let next = Self::load(source)?.next()?;
        let temporary = path.with_extension("new");
        // What an earlier attempt left is of no use.
        let _ = std::fs::remove_file(&temporary);
        write_new(&temporary, &next.text())?;
        std::fs::rename(&temporary, path).map_err(|error| io("write", path, &error))?;
        Ok(next)
    }

    /// A new key.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn random() -> Result<Self, SecretsError> {
        Ok(Self(vec![(1, seal::random()?)]))
    }

    /// This key with a new generation.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn next(&self) -> Result<Self, SecretsError> {
        let mut next = vec![(self.newest().0.wrapping_add(1), seal::random()?)];
        next.extend(self.0.iter().take(GENERATIONS - 1));
        Ok(Self(next))
    }

    /// Reads a key that is kept in `place`.
    ///
    /// # Errors
    /// When it is not a key.
    pub fn read(text: &[u8], place: &str) -> Result<Self, SecretsError> {
        Self::parse(&String::from_utf8_lossy(text), place)
    }

    /// Generations separated by commas or lines, each `NUMBER:KEY` or a key alone, the newest first.
    fn parse(text: &str, place: &str) -> Result<Self, SecretsError> {
        let wrong =
            |problem: &str| SecretsError::Malformed { place: place.to_owned(), problem: problem.to_owned() };
        let parts: Vec<&str> =
            text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() || parts.len() > GENERATIONS {
            return Err(wrong("it needs one key, or the newest one and the one before it"));
        }
        let mut keys = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let (number, key) = match part.split_once(':') {
                Some((number, key)) => {
                    (number.parse().map_err(|_| wrong("a generation is not a number"))?, key)
                }
                None => (u8::try_from(parts.len() - index).unwrap_or(1), *part),
            };
            let key = decode(key).ok_or_else(|| wrong("it is not 32 bytes"))?;
            keys.push((number, key));
        }
        Ok(Self(keys))
    }

    fn newest(&self) -> (u8, &[u8; KEY_LENGTH]) {
        // Parsing has made sure that there is one.
        self.0.first().map_or((0, &[0; KEY_LENGTH]), |(number, key)| (*number, key))
    }

    /// The key as it is kept.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().map(|(number, key)| format!("{number}:{}\n", crate::model::ids::hex(key))).collect()
    }

    pub(super) fn seal(&self, place: &str, content: &[u8]) -> Result<Sealed, SealError> {
        let (generation, key) = self.newest();
        seal::seal(key, generation, place, content)
    }

    pub(super) fn open(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let wanted = seal::generation(sealed).ok_or(SealError::Unreadable)?;
        let key = self.0.iter().find(|(number, _)| *number == wanted).ok_or(SealError::Unreadable)?;
        seal::open(&key.1, place, sealed)
    }

    /// True when bytes were sealed with the newest generation.
    #[must_use]
    pub fn is_newest(&self, sealed: &[u8]) -> bool {
        seal::generation(sealed) == Some(self.newest().0)
    }
}

fn io(what: &'static str, path: &Path, error: &std::io::Error) -> SecretsError {
    SecretsError::Io { what, path: path.to_path_buf(), problem: error.to_string() }
}

fn decode(text: &str) -> Option<[u8; KEY_LENGTH]> {
    let text = text.trim();
    let bytes = if text.len() == 2 * KEY_LENGTH {
        let pairs = (0..KEY_LENGTH).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok());
        pairs.collect::<Option<Vec<u8>>>()?
    } else {
        STANDARD.decode(text).ok()?
    };
    bytes.try_into().ok()
}

/// Makes the file with a new key. Another process may do the same at this moment; the first one counts.
fn create(path: &Path) -> Result<String, SecretsError> {
    let text = MasterKey::random()?.text();
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let _ = std::fs::remove_file(&temporary);
    write_new(&temporary, &text)?;
    let linked = std::fs::hard_link(&temporary, path);
    let _ = std::fs::remove_file(&temporary);
    match linked {
        Ok(()) => Ok(text),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            std::fs::read_to_string(path).map_err(|error| io("read", path, &error))
        }
        Err(error) => Err(io("write", path, &error)),
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), SecretsError> {
    let written =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
    written.map_err(|error| io("write", path, &error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_made_once_and_read_by_everyone() {
        let folder = tempfile::tempdir().unwrap();
        let source = MasterSource::File(folder.path().join("master.key"));
        let one = MasterKey::load(&source).unwrap();
        let sealed = one.seal("p", b"x").unwrap();
        assert_eq!(MasterKey::load(&source).unwrap().open("p", &sealed).unwrap(), b"x");
        let mode = std::fs::metadata(folder.path().join("master.key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn the_generation_before_the_newest_still_opens() {
        let folder = tempfile::tempdir().unwrap();
        let source = MasterSource::File(folder.path().join("master.key"));
        let first = MasterKey::load(&source).unwrap().seal("p", b"x").unwrap();
        let second = MasterKey::rotate(&source).unwrap();
        assert!(!second.is_newest(&first));
        assert_eq!(second.open("p", &first).unwrap(), b"x");
        let third = MasterKey::rotate(&source).unwrap();
        assert_eq!(third.open("p", &first), Err(SealError::Unreadable));
    }

    #[test]
    fn keys_are_hexadecimal_or_base64_and_nothing_else() {
        let (hex, base64) = ("ab".repeat(32), STANDARD.encode([7; 32]));
        for text in [hex.clone(), base64.clone(), format!("{hex}\n"), format!("2:{hex},1:{base64}")] {
            assert!(MasterKey::load(&MasterSource::Variable(text)).is_ok());
        }
        for text in
            ["", "short", &hex[1..], &"zz".repeat(32), &format!("{hex},{hex},{hex}"), &format!("x:{hex}")]
        {
            let error = MasterKey::load(&MasterSource::Variable((*text).to_owned())).unwrap_err();
            assert_eq!(error.code(), "master_key_malformed", "{text}");
            assert!(!text.contains("zz") || !error.to_string().contains("zz"), "the key is not printed");
        }
        let command = MasterSource::Command(format!("echo {hex}"));
        assert!(MasterKey::load(&command).is_ok());
        assert!(MasterKey::load(&MasterSource::Command("exit 3".to_owned())).is_err());
    }
}
