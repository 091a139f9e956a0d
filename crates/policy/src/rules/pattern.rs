//! Path patterns of rules, in the manner of gitignore, with four anchors: `//x` from the root of the file system,
//! `~/x` from home, `/x` from the project root, and anything else from where the session was started (a bare name at any
//! depth below it). A pattern that names a directory covers what is in it.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use qoder_types::workspace::Workspace;

/// True where the file system usually treats upper and lower case alike.
const FOLDS_CASE: bool = cfg!(any(target_os = "macos", target_os = "windows"));

/// A compiled pattern.
#[derive(Debug)]
pub struct PathPattern {
    anchor: PathBuf,
    matcher: GlobMatcher,
    literal: bool,
    /// The folder below which everything that is covered lies.
    fixed: PathBuf,
}

impl PathPattern {
    /// Compiles a pattern for this workspace; `None` when it is not a valid glob.
    #[must_use]
    pub fn compile(pattern: &str, workspace: &Workspace) -> Option<Self> {
        let (anchor, body): (&Path, String) = if let Some(rest) = pattern.strip_prefix("//") {
            (Path::new("/"), rest.to_owned())
        } else if let Some(rest) = pattern.strip_prefix("~/") {
            (workspace.home.as_path(), rest.to_owned())
        } else if pattern == "~" {
            (workspace.home.as_path(), "**".to_owned())
        } else if let Some(rest) = pattern.strip_prefix('/') {
            (workspace.project_root.as_path(), rest.to_owned())
        } else {
            let rest = pattern.strip_prefix("./");
            let body = rest.unwrap_or(pattern);
            let bare = rest.is_none() && !body.trim_end_matches('/').contains('/');
            (workspace.cwd.as_path(), if bare { format!("**/{body}") } else { body.to_owned() })
        };
        let literal = !body.trim_start_matches("**/").contains(['*', '?', '[', '{']);
        let (anchor, body) = climb(anchor, &body)?;
        let matcher = GlobBuilder::new(body.trim_end_matches('/'))
            .literal_separator(true)
            .backslash_escape(true)
            .case_insensitive(FOLDS_CASE)
            .build()
            .ok()?
            .compile_matcher();
        let fixed = fixed_part(&anchor, &body);
        Some(Self { anchor, matcher, literal, fixed })
    }

    /// True when the pattern covers `path` or a directory above it.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        if !self.may_cover(path.as_os_str().as_encoded_bytes()) {
            return false;
        }
        let Ok(relative) = path.strip_prefix(&self.anchor) else { return false };
        relative.ancestors().any(|part| !part.as_os_str().is_empty() && self.matcher.is_match(part))
            || (relative.as_os_str().is_empty() && self.matcher.is_match(Path::new("")))
    }

    /// False for most paths that are not covered: bytes are compared faster than components, and the last byte of the
    /// fixed part separates patterns that start alike.
    fn may_cover(&self, path: &[u8]) -> bool {
        let start = self.fixed.as_os_str().as_encoded_bytes();
        let last = start.len().wrapping_sub(1);
        FOLDS_CASE || start.is_empty() || (path.get(last) == start.get(last) && path.starts_with(start))
    }

    /// True when something below `folder` may be covered.
    #[must_use]
    pub fn reaches_below(&self, folder: &Path) -> bool {
        self.fixed.starts_with(folder) || folder.starts_with(&self.fixed)
    }

    /// True when whatever is put into `folder` is covered, however it is called.
    #[must_use]
    pub fn covers_all_in(&self, folder: &Path) -> bool {
        // No pattern names this, so only a pattern for everything fits.
        self.covers(&folder.join("\u{1}"))
    }

    /// True when the pattern has no wildcards: it names one place.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.literal
    }
}

/// Takes `.`, `..` and doubled slashes out of a pattern; what climbs above the pattern moves its anchor. `None` when it
/// climbs out of a folder that may be at any depth.
fn climb(anchor: &Path, body: &str) -> Option<(PathBuf, String)> {
    let mut anchor = anchor.to_path_buf();
    let mut parts: Vec<&str> = Vec::new();
    for part in body.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.pop() {
                Some("**") => return None,
                Some(_) => {}
                None => {
                    anchor.pop();
                }
            },
            part => parts.push(part),
        }
    }
    // A folder by itself stands for what is in it.
    let body = if parts.is_empty() { "**".to_owned() } else { parts.join("/") };
    Some((anchor, body))
}

/// Where the parts without wildcards lead to.
fn fixed_part(anchor: &Path, body: &str) -> PathBuf {
    let plain = |part: &&str| !FOLDS_CASE && !part.contains(['*', '?', '[', '{', '\\']);
    let mut fixed = anchor.to_path_buf();
    fixed.extend(body.split('/').take_while(plain).filter(|part| !part.is_empty()));
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace {
            cwd: "/w/p/sub".into(),
            project_root: "/w/p".into(),
            home: "/home/u".into(),
            roots: vec!["/w/p".into()],
            config_dir: "/home/u/.qoder".into(),
            protected: Vec::new(),
            isolation: None,
        }
    }

    #[test]
    fn anchors_and_depth() {
        let covers = |pattern: &str, path: &str| {
            PathPattern::compile(pattern, &workspace()).unwrap().covers(Path::new(path))
        };
        let must_match = [
            ("/src/**", "/w/p/src/a/b.rs"),
            ("/src", "/w/p/src/a/b.rs"),
            ("~/Documents/**", "/home/u/Documents/x"),
            ("//srv/data/**", "/srv/data/x"),
            ("*.secret", "/w/p/sub/a/b.secret"),
            ("./x", "/w/p/sub/x"),
            ("a/*.txt", "/w/p/sub/a/1.txt"),
            ("../x", "/w/p/x"),
            ("{a,b}/c", "/w/p/sub/b/c"),
            ("secrets/", "/w/p/sub/secrets/key"),
            ("a/secrets/", "/w/p/sub/a/secrets"),
            ("./a/../b", "/w/p/sub/b"),
            ("/x/.././y//z", "/w/p/y/z"),
            ("../../../../etc/x", "/etc/x"),
        ];
        for (pattern, path) in must_match {
            assert!(covers(pattern, path), "{pattern} must cover {path}");
        }
        let must_not_match = [
            ("/src/**", "/w/p/sub/src/b.rs"),
            ("/src", "/w/p/src-old/b.rs"),
            ("*.secret", "/w/p/b.secret"),
            ("./x", "/w/p/sub/y/x"),
            ("a/*.txt", "/w/p/sub/a/b/1.txt"),
            ("//srv/data/**", "/srv/data-old/x"),
            ("~/x", "/home/user2/x"),
        ];
        for (pattern, path) in must_not_match {
            assert!(!covers(pattern, path), "{pattern} must not cover {path}");
        }
    }
}
