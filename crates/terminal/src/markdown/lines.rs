//! What a line of Markdown is: a fence, a heading, an item, a row of a table. Pure functions of one line.

/// How a column of a table is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// To the left.
    Left,
    /// To the middle.
    Middle,
    /// To the right.
    Right,
}

/// How many columns of blanks a line begins with.
pub(super) fn leading(line: &str) -> usize {
    line.chars()
        .map_while(|sign| match sign {
            ' ' => Some(1),
            '\t' => Some(4),
            _ => None,
        })
        .sum()
}

/// The line without its first blanks, at most this many.
pub(super) fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.bytes().take_while(|byte| *byte == b' ').count();
    &line[blanks.min(indent)..]
}

/// How deep a line is quoted, and what is quoted.
pub(super) fn unquoted(line: &str) -> (usize, &str) {
    let (mut depth, mut rest) = (0, line);
    while let Some(inner) = rest.trim_start_matches(' ').strip_prefix('>') {
        if leading(rest) > 3 {
            break;
        }
        rest = inner.strip_prefix(' ').unwrap_or(inner);
        depth += 1;
    }
    (depth, rest)
}

/// The sign and the length of a fence that opens a code block.
pub(super) fn fence(text: &str) -> Option<(char, usize)> {
    let sign = text.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let length = text.chars().take_while(|next| *next == sign).count();
    let info = &text[length..];
    (length >= 3 && !(sign == '`' && info.contains('`'))).then_some((sign, length))
}

/// True for the line that ends a code block.
pub(super) fn is_closing(line: &str, fence: char, length: usize) -> bool {
    let text = line.trim();
    text.len() >= length && !text.is_empty() && text.chars().all(|sign| sign == fence)
}

/// The level and the text of a heading.
pub(super) fn heading(text: &str) -> Option<(usize, &str)> {
    let level = text.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &text[level..];
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

/// True for a line across the page.
pub(super) fn is_rule(text: &str) -> bool {
    let signs: Vec<char> = text.chars().filter(|sign| !sign.is_whitespace()).collect();
    signs.len() >= 3
        && matches!(signs.first(), Some('-' | '*' | '_'))
        && signs.iter().all(|sign| Some(sign) == signs.first())
}

/// The marker of an item and its text.
pub(super) fn item(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length = match text.as_bytes().get(digits) {
        Some(b'.' | b')') if (1..=9).contains(&digits) => digits + 1,
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(_) | None => return None,
    };
    let rest = &text[length..];
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (&text[..length], rest.trim_start()))
}

/// An item that is a task has a box for a marker.
pub(super) fn task_box<'a>(marker: &str, rest: &'a str) -> (String, &'a str) {
    for (sign, shown) in [("[ ] ", "[ ]"), ("[x] ", "[x]"), ("[X] ", "[x]")] {
        if let Some(rest) = rest.strip_prefix(sign) {
            return (shown.to_owned(), rest);
        }
    }
    let bullet = marker.starts_with(['-', '*', '+']);
    (if bullet { "-".to_owned() } else { marker.to_owned() }, rest)
}

/// The cells of a row of a table. A bar in code or behind a backslash is text.
pub(super) fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let (mut escaped, mut code) = (false, false);
    for sign in line.chars() {
        match sign {
            '|' if !escaped && !code => {
                cells.push(String::new());
                continue;
            }
            '`' if !escaped => code = !code,
            _ => {}
        }
        if let Some(last) = cells.last_mut() {
            if sign == '|' && escaped {
                last.pop();
            }
            last.push(sign);
        }
        escaped = sign == '\\' && !escaped;
    }
    if cells.last().is_some_and(|last| last.trim().is_empty()) && cells.len() > 1 {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// How the columns are aligned, when the line is what follows the head of a table.
pub(super) fn delimiters(line: &str) -> Option<Vec<Align>> {
    let line = line.trim();
    if !line.contains('-') || !line.chars().all(|sign| matches!(sign, '|' | '-' | ':' | ' ')) {
        return None;
    }
    let align = |cell: &String| {
        let (left, right) = (cell.starts_with(':'), cell.ends_with(':'));
        let dashes = cell.trim_matches(':');
        (!dashes.is_empty() && dashes.chars().all(|sign| sign == '-')).then_some(match (left, right) {
            (true, true) => Align::Middle,
            (false, true) => Align::Right,
            (_, false) => Align::Left,
        })
    };
    cells(line).iter().map(align).collect()
}

/// True when no emphasis, code or link is open at the end of the text.
pub(super) fn is_balanced(text: &str) -> bool {
    let count = |sign: char| text.matches(sign).count();
    count('`') % 2 == 0 && text.matches("**").count().is_multiple_of(2) && count('[') == count(']')
}
