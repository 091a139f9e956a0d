//! A scanner for Rust sources that knows just enough: it blanks out comments, strings and character literals, and
//! in what remains it finds function items with their bodies. It needs no parser because braces are balanced in
//! code.

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Its name.
    pub(super) name: String,
    /// The line of its `fn`, from 1.
    pub(super) line: usize,
    /// Lines from its `fn` to its closing brace, both included.
    pub(super) lines: usize,
}

/// The source with every comment, string and character literal replaced by blanks; line breaks stay, so that lines
/// keep their numbers.
pub(super) fn code_only(source: &str) -> String {
    let characters: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut position = 0;
    while position < characters.len() {
        let end = literal_end(&characters, position);
        if end == position {
            code.push(characters[position]);
            position += 1;
        } else {
            code.extend(characters[position..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            position = end;
        }
    }
    code
}

/// Where the comment or literal that begins at `start` ends; `start` itself if none begins there.
fn literal_end(text: &[char], start: usize) -> usize {
    let at = |index: usize| text.get(index).copied().unwrap_or('\0');
    match (at(start), at(start + 1)) {
        ('/', '/') => (start..text.len()).find(|index| text[*index] == '\n').unwrap_or(text.len()),
        ('/', '*') => block_comment_end(text, start),
        ('"', _) => string_end(text, start + 1),
        ('\'', '\\') => {
            let closing = (start + 3..text.len()).find(|index| text[*index] == '\'');
            closing.map_or(text.len(), |index| index + 1)
        }
        // Anything else before a second quote two places on is a character; otherwise it is a lifetime.
        ('\'', _) if at(start + 2) == '\'' => start + 3,
        ('r', '"' | '#') if !continues_a_word(text, start) => raw_string_end(text, start),
        _ => start,
    }
}

/// True when the character at `index` is the end of a longer name, except for the prefixes `b` and `c` of literals.
fn continues_a_word(text: &[char], index: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let before = |distance: usize| index.checked_sub(distance).map_or(' ', |place| text[place]);
    match before(1) {
        'b' | 'c' => is_word(before(2)),
        other => is_word(other),
    }
}

fn block_comment_end(text: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut index = start;
    while index + 1 < text.len() {
        match (text[index], text[index + 1]) {
            ('/', '*') => {
                depth += 1;
                index += 2;
            }
            ('*', '/') => {
                depth -= 1;
                index += 2;
                if depth == 0 {
                    return index;
                }
            }
            _ => index += 1,
        }
    }
    text.len()
}

fn string_end(text: &[char], mut index: usize) -> usize {
    while index < text.len() {
        match text[index] {
            '\\' => index += 2,
            '"' => return index + 1,
            _ => index += 1,
        }
    }
    text.len()
}

/// The end of a raw string whose `r` is at `start`; `start` itself for a raw name such as `r#type`.
fn raw_string_end(text: &[char], start: usize) -> usize {
    let hashes = text[start + 1..].iter().take_while(|c| **c == '#').count();
    let opening = start + 1 + hashes;
    if text.get(opening) != Some(&'"') {
        return start;
    }
    for index in opening + 1..text.len() {
        let tail = &text[index + 1..];
        if text[index] == '"' && tail.len() >= hashes && tail[..hashes].iter().all(|c| *c == '#') {
            return index + 1 + hashes;
        }
    }
    text.len()
}

/// Every function with a body in a text that [`code_only`] made, nested ones too.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn") {
        let after = start + 2;
        let alone = (start == 0 || !is_word(bytes[start - 1]))
            && bytes.get(after).is_some_and(u8::is_ascii_whitespace);
        if !alone {
            continue;
        }
        let name: String =
            code[after..].trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // A name is missing in a function type, a body in a trait's declaration.
        if name.is_empty() {
            continue;
        }
        let Some(opening) = body_start(bytes, after) else { continue };
        let closing = body_end(bytes, opening);
        let line = 1 + newlines(&bytes[..start]);
        found.push(Function { name, line, lines: 1 + newlines(&bytes[start..closing]) });
    }
    found
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

fn body_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' if depth == 0 => return Some(index),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn body_end(bytes: &[u8], opening: usize) -> usize {
    let mut depth = 0_usize;
    for (index, byte) in bytes.iter().enumerate().skip(opening) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(source: &str) -> Vec<(String, usize, usize)> {
        functions(&code_only(source)).into_iter().map(|f| (f.name, f.line, f.lines)).collect()
    }

    fn one(name: &str, line: usize, lines: usize) -> Vec<(String, usize, usize)> {
        vec![(name.to_owned(), line, lines)]
    }

    #[test]
    fn a_function_spans_from_its_keyword_to_its_brace() {
        assert_eq!(scan("\npub async fn one(a: u8) -> u8 {\n    a\n}\n"), one("one", 2, 3));
        assert_eq!(scan("fn short() {}"), one("short", 1, 1));
    }

    #[test]
    fn braces_in_strings_and_characters_do_not_count() {
        assert_eq!(
            scan("fn a() {\n let x = \"}\\\"}\";\n let y = '}';\n let z = '\\'';\n}\n"),
            one("a", 1, 5)
        );
        assert_eq!(scan("fn a() {\n r#\"}\"}\"#;\n br\"}\";\n b'}';\n b\"\\\\\";\n}\n"), one("a", 1, 6));
        assert_eq!(scan("fn a() {\n '\\u{7d}';\n}\n"), one("a", 1, 3));
    }

    #[test]
    fn comments_do_not_count() {
        assert_eq!(scan("fn a() {\n // }\n /* } /* } */ } */\n}\n"), one("a", 1, 4));
        assert_eq!(scan("// fn ghost() {}\n/// fn ghost() {}\n"), []);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(scan("fn a<'a>(x: &'a str) -> &'a str {\n x\n}\n"), one("a", 1, 3));
        assert_eq!(code_only("&'a str, 'x', 'static"), "&'a str,    , 'static");
    }

    #[test]
    fn types_and_declarations_have_no_body() {
        assert_eq!(scan("type F = fn (u8) -> u8;\ntrait T { fn only(&self, x: [u8; 4]); }\n"), []);
        assert_eq!(scan("let f: fn(u8) = g;\nlet confn = 1;\n"), []);
    }

    #[test]
    fn arrays_in_a_signature_do_not_end_it() {
        assert_eq!(scan("fn a(x: [u8; 2]) -> [u8; 2]\nwhere\n u8: Copy,\n{\n x\n}\n"), one("a", 1, 6));
    }

    #[test]
    fn nested_functions_are_found_too() {
        let found = scan("fn outer() {\n fn inner() {\n }\n}\n");
        assert_eq!(found, [("outer".to_owned(), 1, 4), ("inner".to_owned(), 2, 2)]);
    }

    #[test]
    fn raw_names_are_code() {
        assert_eq!(code_only("r#type + for_r\"x\""), "r#type + for_r   ");
        assert_eq!(scan("fn r() {\n let r = 1;\n}\n"), one("r", 1, 3));
    }

    #[test]
    fn unclosed_literals_end_with_the_text() {
        for source in ["\"open", "/* open", "r#\"open\"", "'\\", "fn a() {", "\"\\"] {
            assert_eq!(code_only(source).chars().count(), source.chars().count(), "{source}");
        }
        assert_eq!(scan("fn a() {\n"), one("a", 1, 2));
    }
}
