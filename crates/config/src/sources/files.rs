//! Files and folders of definitions: listing them in a fixed order and within bounds, and keeping links from leading out
//! of the folder whose author may define something.

use std::path::{Path, PathBuf};

use super::{Document, Origin, Problem};

/// The most entries of one folder that are read.
pub const MOST_ENTRIES: usize = 500;
/// The most entries of one folder whose names are looked at.
const MOST_LISTED: usize = 10_000;

/// What lies in a folder, by name. A folder that is not there holds nothing.
pub fn entries(folder: &Path, origin: &Origin, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let problem =
        |text: String| Problem { path: folder.to_path_buf(), line: None, text, origin: origin.clone() };
    let listed = match std::fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            problems.push(problem(format!("cannot be listed: {error}")));
            return Vec::new();
        }
    };
    // Sorted before it is cut: which ones count must not depend on the order in which a system lists them.
    let mut found: Vec<PathBuf> =
        listed.take(MOST_LISTED).filter_map(Result::ok).map(|entry| entry.path()).collect();
    found.sort();
    if found.len() > MOST_ENTRIES {
        let text = format!(
            "has more than {MOST_ENTRIES} entries; those after the first {MOST_ENTRIES} are left out"
        );
        problems.push(problem(text));
        found.truncate(MOST_ENTRIES);
    }
    found
}

/// Reads a file that may be a link, and says where it really lies. Errors use the name that people know.
pub fn read_linked(
    path: &Path,
    origin: &Origin,
    boundary: Option<&Path>,
) -> Result<(Document, PathBuf), Problem> {
    let real = real_file(path, origin, boundary)?;
    let known = |problem: Problem| Problem { path: path.to_path_buf(), ..problem };
    let mut document = Document::read(&real, origin).map_err(known)?;
    document.path = path.to_path_buf();
    Ok((document, real))
}

/// The real path of a file. A link of a project or a plugin must not lead out of it: what lies there was written by
/// another author, for something else.
pub fn real_file(path: &Path, origin: &Origin, boundary: Option<&Path>) -> Result<PathBuf, Problem> {
    let problem =
        |text: String| Problem { path: path.to_path_buf(), line: None, text, origin: origin.clone() };
    let real = path.canonicalize().map_err(|error| problem(format!("cannot be read: {error}")))?;
    let inside = boundary
        .is_none_or(|boundary| boundary.canonicalize().is_ok_and(|boundary| real.starts_with(boundary)));
    if inside {
        Ok(real)
    } else {
        Err(problem(format!("leads out of the {} it belongs to", origin.as_str())))
    }
}
