//! The `if` of a hook: a tool, or a tool with a glob for what its call is about, such as `Bash(git *)`. The glob is no
//! regular expression; a star stands for anything, slashes included.

use globset::GlobBuilder;
use serde_json::Value;

/// Tools that have two names; a matcher may use either.
const TWO_NAMES: [(&str, &str); 1] = [("Task", "Agent")];
/// The fields that calls are about, the first that is there.
const SUBJECTS: [&str; 11] = [
    "command",
    "file_path",
    "notebook_path",
    "path",
    "url",
    "query",
    "skill",
    "agent",
    "subagent_type",
    "pattern",
    "prompt",
];

/// The tool and the glob.
fn parts(text: &str) -> Result<(&str, Option<&str>), String> {
    let text = text.trim();
    let bad = || format!("`if` is `{text}`; it is a tool, or a tool and a glob such as `Bash(git *)`");
    let (tool, glob) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(bad)?)),
    };
    let tool = tool.trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
    if tool.is_empty() || !tool.chars().all(plain) {
        return Err(bad());
    }
    Ok((tool, glob.filter(|glob| !glob.is_empty() && *glob != "*")))
}

fn matches_glob(glob: &str, text: &str) -> Result<bool, String> {
    let glob = GlobBuilder::new(glob).literal_separator(false).backslash_escape(true).build();
    let glob = glob.map_err(|error| format!("the glob of `if` cannot be used: {error}"))?;
    Ok(glob.compile_matcher().is_match(text))
}

/// Whether the text can be used.
pub(super) fn check(text: &str) -> Result<(), String> {
    let (tool, glob) = parts(text)?;
    for glob in glob.into_iter().chain([tool]) {
        matches_glob(glob, "")?;
    }
    Ok(())
}

/// True when a call is meant.
pub fn holds(text: &str, tool: &str, input: &Value) -> bool {
    let Ok((wanted, glob)) = parts(text) else { return false };
    let is_wanted = |tool: &str| wanted == tool || matches_glob(wanted, tool).unwrap_or(false);
    let same = is_wanted(tool) || other_name(tool).is_some_and(is_wanted);
    let Some(glob) = glob else { return same };
    let about = SUBJECTS.iter().find_map(|field| input.get(field).and_then(Value::as_str));
    same && about.is_some_and(|about| matches_glob(glob, about).unwrap_or(false))
}

/// The other name of a tool that has two.
#[must_use]
pub fn other_name(name: &str) -> Option<&'static str> {
    TWO_NAMES.iter().find_map(|(old, new)| match name {
        _ if name == *old => Some(*new),
        _ if name == *new => Some(*old),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_argument_part_is_a_glob_and_not_a_regex() {
        let git = json!({"command": "git push origin/main"});
        assert!(
            holds("Bash(git *)", "Bash", &git)
                && holds("Bash", "Bash", &git)
                && holds("Bash(*)", "Bash", &git)
        );
        assert!(!holds("Bash(rm *)", "Bash", &git) && !holds("Read(git *)", "Bash", &git));
        assert!(!holds("Bash(git .*)", "Bash", &git), "a dot is a dot");
        let file = json!({"file_path": "/p/src/deep/a.rs"});
        assert!(holds("Edit(*.rs)", "Edit", &file) && !holds("Edit(*.py)", "Edit", &file));
        assert!(holds("mcp__git__*", "mcp__git__push", &json!({})));
        assert!(!holds("Bash(git *)", "Bash", &json!({})), "nothing to look at");
        let agent = json!({"agent": "Explore"});
        assert!(holds("Task", "Agent", &agent) && holds("Task(Explore)", "Agent", &agent));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for bad in ["", "(x)", "Bash(a", "Bash([)", "Bash Edit"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
