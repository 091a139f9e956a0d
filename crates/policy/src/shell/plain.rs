//! Lines about which no two grammars of the shell can differ: words of harmless characters and plain quotes, joined by
//! `|`, `||`, `&&` and `;` that stand apart, with the everyday redirections to nothing. They are most lines, and for them
//! a second opinion costs much and says nothing. Everything else has to be seen by both grammars.

/// Words that begin something else than a simple command, or that the other grammar treats by themselves.
const NOT_PLAIN: [&str; 27] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "in", "time", "coproc", "declare", "typeset", "export", "readonly", "local", "unset",
    "unsetenv", "let", "eval", "exec",
];

/// Redirections that write nothing.
const NOTHING: [&str; 7] =
    ["2>&1", ">/dev/null", "2>/dev/null", "1>/dev/null", "&>/dev/null", "</dev/null", ">&2"];

/// True for such lines.
pub(super) fn is_beyond_dispute(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    // A command has to begin, and its first word must not be one that the grammar knows.
    let mut begins = true;
    while at < bytes.len() {
        if bytes[at] == b' ' {
            at += 1;
            continue;
        }
        let Some(end) = word_end(bytes, at) else { return false };
        let word = &text[at..end];
        let apart = end == bytes.len() || bytes[end] == b' ';
        match word {
            _ if !apart => return false,
            "|" | "||" | "&&" | ";" if begins => return false,
            "|" | "||" | "&&" | ";" => begins = true,
            ">" | "2>" => return followed_by_nothing(text, end) && is_rest_beyond_dispute(text, end, begins),
            _ if NOTHING.contains(&word) => {}
            _ if begins && (NOT_PLAIN.contains(&word) || word.contains('=')) => return false,
            _ if word.contains(['>', '<', '&', '|', ';']) && !word.contains(['\'', '"']) => return false,
            _ => begins = false,
        }
        at = end;
    }
    !begins
}

/// True when the null device stands behind a redirection sign.
fn followed_by_nothing(text: &str, end: usize) -> bool {
    let rest = text[end..].trim_start_matches(' ');
    rest == "/dev/null" || rest.starts_with("/dev/null ")
}

/// The line behind `> /dev/null`, which belongs to the same command.
fn is_rest_beyond_dispute(text: &str, end: usize, begins: bool) -> bool {
    let rest = text[end..].trim_start_matches(' ').trim_start_matches("/dev/null");
    if begins {
        return false;
    }
    let rest = rest.trim_start_matches(' ');
    // A word in front stands for the command that has begun.
    rest.is_empty() || is_beyond_dispute(&format!("x {rest}"))
}

/// Where the word or sign that begins at `at` ends; `None` for a character that may mean something else.
fn word_end(bytes: &[u8], at: usize) -> Option<usize> {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,=*?".contains(&byte);
    let sign = |byte: u8| b"|&;><".contains(&byte);
    let mut end = at;
    let mut quoted = false;
    while let Some(byte) = bytes.get(end).copied().filter(|byte| *byte != b' ') {
        match byte {
            b'\'' | b'"' => {
                let length = bytes[end + 1..].iter().position(|inner| *inner == byte)?;
                let inside = &bytes[end + 1..end + 1 + length];
                if !inside.iter().all(|inner| is_plain_inside(*inner, byte)) {
                    return None;
                }
                quoted = true;
                end += length + 2;
            }
            _ if harmless(byte) => end += 1,
            // A sign inside a quoted word would be an operator without blanks around it.
            _ if sign(byte) && !quoted => end += 1,
            _ => return None,
        }
    }
    let signs = bytes[at..end].iter().any(|byte| sign(*byte));
    let quotes = quoted && bytes[at..end].iter().any(|byte| *byte == b'\'' || *byte == b'"');
    // Signs before quotes, as in `>"x"`, are left to both grammars.
    (!(signs && quotes) || only_inside_quotes(&bytes[at..end])).then_some(end)
}

fn is_plain_inside(byte: u8, quote: u8) -> bool {
    let special = quote == b'"' && b"$`\\!".contains(&byte);
    (b' '..=b'~').contains(&byte) && !special
}

/// True when operators stand only inside quotes.
fn only_inside_quotes(word: &[u8]) -> bool {
    let mut quote = None;
    word.iter().all(|byte| match quote {
        Some(open) if *byte == open => {
            quote = None;
            true
        }
        Some(_) => true,
        None if matches!(byte, b'\'' | b'"') => {
            quote = Some(*byte);
            true
        }
        None => !b"|&;><".contains(byte),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_without_any_special_meaning_are_beyond_dispute() {
        for line in [
            "ls -la",
            "git diff --stat HEAD",
            "cargo test -p x 2>&1 | tail -5",
            "cd sub && npm run build",
            "grep -rn \"fn name\" src --include=*.rs | head -20",
            "echo 'a; b && c > d' > /dev/null 2>&1 || echo no",
            "make ; make test",
        ] {
            assert!(is_beyond_dispute(line), "{line}");
        }
        for line in [
            "",
            " ",
            "echo $X",
            "echo `x`",
            "a;b",
            "a&&b",
            "a |& b",
            "a & b",
            "a > f",
            "a >> f",
            "a < f",
            "if true",
            "x && if y",
            "A=1 x",
            "x && A=1 y",
            "echo \"$x\"",
            "echo a\\ b",
            "# x",
            "x # y",
            "(a)",
            "{ a; }",
            "a\nb",
            "a\tb",
            "! x",
            "time x",
            "a ||",
            "| a",
            "a && | b",
            "~/x",
            "a {b,c}",
            "[ -f x ]",
            "a 'b",
            "é",
            "a <<E",
            "a > /dev/nullx",
            "a >/dev/null/x",
            "export X",
            "a '\u{202e}'",
            "a >\"/dev/null\"",
            "x ';' ; ; y",
            "a \"b!\"",
        ] {
            assert!(!is_beyond_dispute(line), "{line:?}");
        }
    }
}
