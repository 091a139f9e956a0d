//! Files that the terminal reads and writes: earlier prompts, images, paths below a folder, files that a command writes.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qoder_terminal::{ImageContent, MachineError};
use serde::{Deserialize, Serialize};

/// How many earlier prompts are kept and read.
const MOST_PROMPTS: usize = 1_000;
/// The longest prompt that is kept.
const LONGEST_PROMPT: usize = 16 * 1024;
/// The file is written anew when it has this many lines.
const MOST_LINES: usize = 3_000;
/// How many paths are offered.
const MOST_PATHS: usize = 200_000;
/// The largest image that is sent.
const LARGEST_IMAGE: u64 = 10 * 1024 * 1024;

/// A prompt that was sent.
#[derive(Debug, Serialize, Deserialize)]
struct SentPrompt {
    text: String,
    project: String,
    at: String,
}

/// Earlier prompts: those of other projects first, then those of this one, newest last.
pub fn history(root: &Path, project: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("history.jsonl")).unwrap_or_default();
    let kept: Vec<SentPrompt> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let (own, others): (Vec<SentPrompt>, Vec<SentPrompt>) =
        kept.into_iter().partition(|one| one.project == project);
    let all: Vec<String> = others.into_iter().chain(own).map(|one| one.text).collect();
    let from = all.len().saturating_sub(MOST_PROMPTS);
    all.into_iter().skip(from).collect()
}

/// Keeps a prompt in a file that only its owner can read.
pub fn keep_prompt(root: &Path, project: &str, text: &str) -> std::io::Result<()> {
    if text.len() > LONGEST_PROMPT {
        return Ok(());
    }
    let path = root.join("history.jsonl");
    let kept =
        SentPrompt { text: text.to_owned(), project: project.to_owned(), at: qoder_store::timestamp() };
    let line = serde_json::to_string(&kept)?;
    // The first prompt of all comes before anything else is kept.
    std::fs::create_dir_all(root)?;
    let mut file =
        std::fs::OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(&path)?;
    // A whole line in one call, because other terminals write too.
    file.write_all(format!("{line}\n").as_bytes())?;
    if file.metadata()?.len() > 256 * 1024 {
        shorten(&path)?;
    }
    Ok(())
}

/// Leaves the newest lines.
fn shorten(path: &Path) -> std::io::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= MOST_LINES {
        return Ok(());
    }
    let kept = lines[lines.len() - MOST_PROMPTS..].join("\n");
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&temporary)?;
    file.write_all(kept.as_bytes())?;
    file.write_all(b"\n")?;
    std::fs::rename(&temporary, path)
}

/// Paths below a folder that no ignore file leaves out; those of directories end in `/`.
pub fn paths(folder: &Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(folder)
        .hidden(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut found = Vec::new();
    for entry in walk.filter_map(Result::ok).skip(1) {
        let Ok(below) = entry.path().strip_prefix(folder) else { continue };
        let Some(text) = below.to_str() else { continue };
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        found.push(if is_folder { format!("{text}/") } else { text.to_owned() });
        if found.len() == MOST_PATHS {
            break;
        }
    }
    found
}

/// An image in a file.
pub fn image(path: &Path) -> Result<ImageContent, MachineError> {
    let wrong = |problem: &dyn std::fmt::Display| MachineError(format!("{}: {problem}", path.display()));
    let facts = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    if !facts.is_file() || facts.len() > LARGEST_IMAGE {
        return Err(wrong(&"an image is a file of at most 10 MiB"));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(&error))?;
    file.take(LARGEST_IMAGE).read_to_end(&mut bytes).map_err(|error| wrong(&error))?;
    let media_type = media_type(&bytes).ok_or_else(|| wrong(&"it is not a PNG, JPEG, GIF or WebP image"))?;
    Ok(ImageContent {
        media_type: media_type.to_owned(),
        size: dimensions(&bytes),
        data: STANDARD.encode(&bytes),
    })
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// Width and height, from the head of a PNG or GIF.
fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let small = |at: usize| Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    match media_type(bytes)? {
        "image/png" => Some((big(16)?, big(20)?)),
        "image/gif" => Some((small(6)?, small(8)?)),
        "image/jpeg" => jpeg_dimensions(bytes),
        _ => None,
    }
}

/// Width and height of a JPEG: in its first frame header.
fn jpeg_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let mut at = 2;
    while *bytes.get(at)? == 0xff {
        let marker = *bytes.get(at + 1)?;
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return Some((word(at + 7)?, word(at + 5)?));
        }
        at += 2 + usize::try_from(word(at + 2)?).ok()?;
    }
    None
}

/// Writes a file that does not exist; answers with its full path.
pub fn write_new(path: &Path, text: &str) -> Result<String, MachineError> {
    let wrong =
        |error: std::io::Error| MachineError(format!("{} cannot be written: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(wrong)?;
    }
    let mut file =
        std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(path).map_err(wrong)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    Ok(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()).display().to_string())
}

/// A private folder that is removed with the value.
pub fn private_folder() -> Result<PathBuf, MachineError> {
    use std::os::unix::fs::DirBuilderExt;
    let path = std::env::temp_dir().join(format!("qodercli-{}", uuid::Uuid::new_v4().simple()));
    std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(MachineError::new)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_this_project_come_last_and_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        for (project, text) in [("/a", "one"), ("/b", "two"), ("/a", "three\nlines")] {
            keep_prompt(root.path(), project, text).unwrap();
        }
        assert_eq!(history(root.path(), "/b"), ["one", "three\nlines", "two"]);
        let mode = std::fs::metadata(root.path().join("history.jsonl")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn paths_leave_out_what_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(".git")).unwrap();
        std::fs::create_dir_all(folder.path().join("src")).unwrap();
        for (name, text) in [(".gitignore", "*.log\n"), ("src/a.rs", ""), ("x.log", ""), (".git/config", "")]
        {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut found = paths(folder.path());
        found.sort();
        assert_eq!(found, [".gitignore", "src/", "src/a.rs"]);
    }

    #[test]
    fn images_are_known_by_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let png = [
            &[0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R'][..],
            &[0, 0, 4, 176, 0, 0, 3, 32],
        ]
        .concat();
        let path = folder.path().join("a.bin");
        std::fs::write(&path, png).unwrap();
        let image = image(&path).unwrap();
        assert_eq!((image.media_type.as_str(), image.size), ("image/png", Some((1200, 800))));
        std::fs::write(&path, "text").unwrap();
        assert!(super::image(&path).is_err());
    }
}
