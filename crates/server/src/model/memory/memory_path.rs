//! The paths of memories: `/projects/notes.md`. A path names a text or is above others, never both, because stores are mounted as
//! folders.

use crate::model::problem::Problem;

const MOST_PARTS: usize = 20;
const LONGEST: usize = 1_024;

/// Reads the path of a memory. One without a slash at its beginning gets one.
///
/// # Errors
/// When no memory can have it.
pub fn read(text: &str) -> Result<String, Problem> {
    let path = if text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let is_plain = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains(is_invisible);
    if parts.len() > MOST_PARTS || path.len() > LONGEST || !parts.iter().all(is_plain) {
        let problem = format!(
            "must have 1 to {MOST_PARTS} parts between slashes, without `.`, `..` and invisible characters, and at most \
             {LONGEST} bytes"
        );
        return Err(Problem::field("path", problem));
    }
    Ok(path)
}

/// Reads the prefix of a list: a folder.
///
/// # Errors
/// When no memory can have it.
pub fn read_prefix(text: &str) -> Result<String, Problem> {
    let inner = text.trim_matches('/');
    if inner.is_empty() {
        return Ok("/".to_owned());
    }
    let path = read(inner).map_err(|problem| Problem {
        field: Some("path_prefix".to_owned()),
        message: problem.message.replacen("`path`", "`path_prefix`", 1),
        ..problem
    })?;
    Ok(format!("{path}/"))
}

/// Characters that no one sees, or that change how others are read.
fn is_invisible(each: char) -> bool {
    each.is_control()
        || matches!(each, '\u{ad}' | '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
}

/// The folders above a path, the outermost first.
pub fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(at, _)| &path[..at])
}

/// Where a path is shown in a list of so many levels below a prefix: at itself, or at a folder above it. Zero levels are all.
#[must_use]
pub fn rolled_up<'a>(path: &'a str, prefix: &str, depth: u64) -> &'a str {
    let below = path.strip_prefix(prefix).unwrap_or(path);
    let level = usize::try_from(depth).unwrap_or(usize::MAX);
    match below.match_indices('/').nth(level.wrapping_sub(1)) {
        Some((at, _)) if level > 0 => &path[..path.len() - below.len() + at + 1],
        _ => path,
    }
}

/// The last part of the place at which a store is mounted, made from its name.
#[must_use]
pub fn slug(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|each: char| !each.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-");
    if slug.is_empty() { "memory".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_and_plain() {
        assert_eq!(read("MEMORY.md").unwrap(), "/MEMORY.md");
        assert_eq!(read("/a/b c/ü.md").unwrap(), "/a/b c/ü.md");
        let deep = "/a".repeat(21);
        let long = "x".repeat(1_024);
        for wrong in ["", "/", "a//b", "/a/", "../a", "/a/./b", "a\nb", "a\u{202e}b", &deep, &long] {
            assert_eq!(read(wrong).unwrap_err().field.as_deref(), Some("path"), "{wrong:?}");
        }
        assert_eq!(read_prefix("notes").unwrap(), "/notes/");
        assert_eq!(read_prefix("/").unwrap(), "/");
        assert_eq!(read_prefix("/a/../").unwrap_err().field.as_deref(), Some("path_prefix"));
        assert_eq!(above("/a/b/c").collect::<Vec<_>>(), ["/a", "/a/b"]);
        assert_eq!((slug("Ana's  Notes!"), slug("…")), ("ana-s-notes".to_owned(), "memory".to_owned()));
    }

    #[test]
    fn lists_show_so_many_levels() {
        assert_eq!(rolled_up("/a/b/c", "/", 0), "/a/b/c");
        assert_eq!(rolled_up("/a/b/c", "/", 1), "/a/");
        assert_eq!(rolled_up("/a/b/c", "/", 2), "/a/b/");
        assert_eq!(rolled_up("/a/b/c", "/", 3), "/a/b/c");
        assert_eq!(rolled_up("/a/b/c", "/a/", 1), "/a/b/");
        assert_eq!(rolled_up("/a/b", "/a/", 1), "/a/b");
    }
}
