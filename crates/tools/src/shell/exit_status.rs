//! Whether exit code 1 of a command is an answer and not a failure.
//!
//! `grep` says with it that nothing matched, `diff` that there are differences. The last simple command decides; the
//! reading is coarse on purpose, and whatever it does not understand counts as a failure.

/// Commands whose exit code 1 is an answer.
const ANSWERING: [&str; 8] = ["grep", "rg", "egrep", "fgrep", "find", "diff", "test", "["];

/// Whether exit code 1 of `command` is an answer. `silent` says that nothing came on the error stream: in a chain of
/// `&&` that is what distinguishes the answer of the last command from the failure of one in front of it.
pub(crate) fn one_is_an_answer(command: &str, silent: bool) -> bool {
    let Some(last) = last_simple_command(command) else { return false };
    if last.after_and && !silent {
        return false;
    }
    let mut words = last.text.split_whitespace().skip_while(|word| is_assignment(word));
    let Some(first) = words.next() else { return false };
    let name = first.rsplit('/').next().unwrap_or(first);
    if name == "git" {
        return matches!(words.next(), Some("diff" | "grep"));
    }
    ANSWERING.contains(&name)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

struct LastCommand<'a> {
    text: &'a str,
    after_and: bool,
}

/// The text behind the last operator, when the command is a plain list of simple commands.
fn last_simple_command(command: &str) -> Option<LastCommand<'_>> {
    let command = command.trim_end_matches([' ', '\t', '\n', ';']);
    let bytes = command.as_bytes();
    let mut start = 0;
    let mut after_and = false;
    let mut quote: Option<u8> = None;
    let mut index = 0;
    while index < bytes.len() {
        let byte = bytes[index];
        match (quote, byte) {
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') => quote = None,
            (Some(b'\''), _) => {}
            (_, b'`') | (None, b'(' | b')' | b'{' | b'}' | b'#') => return None,
            (_, b'$') if bytes.get(index + 1) == Some(&b'(') => return None,
            (_, b'\\') => index += 1,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'<') if bytes.get(index + 1) == Some(&b'<') => return None,
            (None, b'&') if matches!(index.checked_sub(1).map(|at| bytes[at]), Some(b'>' | b'<')) => {}
            (None, b'&') if bytes.get(index + 1) == Some(&b'>') => {}
            (None, b'|' | b'&' | b';' | b'\n') => {
                let doubled = bytes.get(index + 1) == Some(&byte);
                // One `&` puts the command into the background: its exit code is not the one that is reported.
                if byte == b'&' && !doubled {
                    return None;
                }
                // Within one chain the failure of any earlier link can end it; a new list starts afresh.
                after_and = (byte == b'&') || (after_and && byte == b'|');
                index += usize::from(doubled && byte != b'\n');
                start = index + 1;
            }
            (None, _) => {}
        }
        index += 1;
    }
    if quote.is_some() {
        return None;
    }
    command.get(start..).map(|text| LastCommand { text, after_and })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_failures() {
        for command in [
            "grep x file",
            "cat file | grep -v x",
            "ls; diff a b",
            "git diff --exit-code",
            "git grep 'a && b'",
            "LC_ALL=C grep x f",
            "test -f x",
            "[ -f x ]",
            "/usr/bin/grep x y 2>&1",
            "echo 'a;b' | rg x",
        ] {
            assert!(one_is_an_answer(command, false), "{command}");
        }
        for command in [
            "false",
            "grep x f && make",
            "grep x f | sort",
            "grep $(make) f",
            "git status",
            "grep x f &",
            "echo 'grep",
            "if true; then grep x; fi",
            "cat <<E\ngrep x\nE",
            "",
        ] {
            assert!(!one_is_an_answer(command, false), "{command}");
        }
    }

    #[test]
    fn a_chain_answers_only_when_it_is_silent() {
        assert!(one_is_an_answer("cd src && grep x f", true));
        assert!(!one_is_an_answer("cd src && grep x f", false));
    }
}
