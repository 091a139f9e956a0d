//! Names of servers and of their tools, as models, rules and hooks see them. A model is offered `mcp__server__tool`; where
//! a provider would not accept that, the tool's part is made safe by the same rule every time, so that rules can name it
//! before the server was ever reached. Which tool of the server is meant is kept beside the name, never read out of it.

use sha2::{Digest, Sha256};

/// The longest name that every provider accepts.
pub const LONGEST_NAME: usize = 64;
/// The longest name of a server: what is left must hold a few letters of the tool's name and its mark.
pub const LONGEST_SERVER_NAME: usize = 46;
/// Hexadecimal digits that tell apart names which would look alike once they are safe.
const MARK: usize = 8;

/// Why a server cannot have this name; `None` when it can.
#[must_use]
pub fn server_name_problem(name: &str) -> Option<String> {
    let rule = "use letters, digits, `-` and single `_`";
    if name.is_empty() {
        return Some(format!("the name of a server is empty; {rule}"));
    }
    if name.len() > LONGEST_SERVER_NAME {
        return Some(format!(
            "the name has {} characters; at most {LONGEST_SERVER_NAME} leave room for tools",
            name.len()
        ));
    }
    if let Some(letter) = name.chars().find(|letter| !is_safe(*letter)) {
        return Some(format!("the name has the character {letter:?}; {rule}"));
    }
    // `mcp__a__b` must name one server, whatever others there are.
    if name.contains("__") || name.ends_with('_') {
        return Some(format!("the name has a `_` where it cannot be told from the separator `__`; {rule}"));
    }
    None
}

/// The name under which a model calls the tool `tool` of the server `server`.
#[must_use]
pub fn tool_name(server: &str, tool: &str) -> String {
    let start = format!("mcp__{server}__");
    if !tool.is_empty() && tool.chars().all(is_safe) && start.len() + tool.len() <= LONGEST_NAME {
        return start + tool;
    }
    let room = LONGEST_NAME.saturating_sub(start.len() + 1 + MARK);
    let safe: String =
        tool.chars().map(|letter| if is_safe(letter) { letter } else { '_' }).take(room).collect();
    let mark: String = Sha256::digest(tool).iter().take(MARK / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{start}{safe}_{mark}")
}

fn is_safe(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(tool_name("my-tools", "find_it"), "mcp__my-tools__find_it");
        assert_eq!(tool_name("kb", "a__b"), "mcp__kb__a__b");
    }

    #[test]
    fn any_other_name_is_made_safe_the_same_way_each_time() {
        for tool in ["with space", "quo\"te", "naïve", "", "a.b/c", &"x".repeat(300), "\u{0}\n"] {
            let name = tool_name("kb", tool);
            assert!(name.len() <= LONGEST_NAME && name.chars().all(is_safe), "{name}");
            assert!(name.starts_with("mcp__kb__"), "{name}");
            assert_eq!(name, tool_name("kb", tool));
        }
        assert_ne!(tool_name("kb", "a b"), tool_name("kb", "a.b"));
        assert_ne!(tool_name("kb", &"x".repeat(300)), tool_name("kb", &"x".repeat(301)));
        let longest = "s".repeat(LONGEST_SERVER_NAME);
        assert_eq!(tool_name(&longest, "a b").len(), 64);
    }

    #[test]
    fn names_that_could_be_read_two_ways_are_refused() {
        for good in ["kb", "my-tools", "my_tools", "a1", "_a"] {
            assert_eq!(server_name_problem(good), None, "{good}");
        }
        for bad in ["", "a__b", "a_", "a b", "a.b", "ä", "a/b", &"x".repeat(47)] {
            assert!(server_name_problem(bad).is_some(), "{bad}");
        }
    }
}
