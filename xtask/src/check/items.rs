//! Items in Rust code from which `scanner` took comments and literals: inline modules, the code outside of tests, function
//! signatures and declared names.

/// A function as others see it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// Its name.
    pub(super) name: String,
    /// The line of its `fn`, from 1.
    pub(super) line: usize,
    /// True when it is `pub`, or of a trait that is.
    pub(super) is_public: bool,
    /// What it returns, without `->`; empty when it returns nothing.
    pub(super) output: String,
}

/// The code with the bodies of `#[cfg(test)]` modules and functions replaced by blanks; lines keep their numbers.
pub(super) fn without_tests(code: &str) -> String {
    let mut bytes = code.as_bytes().to_vec();
    for (start, mark) in code.match_indices("#[cfg(test)]") {
        let after = start + mark.len();
        let Some(opening) = code[after..].find(['{', ';']).map(|index| after + index) else { continue };
        let end = if code.as_bytes()[opening] == b'{' { closing(code, opening) } else { opening };
        for byte in &mut bytes[start..=end.min(code.len() - 1)] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    // Whole items were blanked, so what is left is still UTF-8.
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The bodies of inline modules: from the byte behind `{` to the closing brace.
pub(super) fn inline_modules(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (start, _) in words(code).filter(|(_, word)| *word == "mod") {
        let rest = &code[start + 3..];
        let Some(opening) = rest.find(['{', ';']).map(|index| start + 3 + index) else { continue };
        let name = code[start + 3..opening].trim();
        if code.as_bytes()[opening] == b'{' && !name.is_empty() && name.chars().all(is_word) {
            found.push((opening + 1, closing(code, opening)));
        }
    }
    found
}

/// Every function, nested ones too.
pub(super) fn signatures(code: &str) -> Vec<Signature> {
    let traits = public_traits(code);
    let mut found = Vec::new();
    for (start, _) in words(code).filter(|(_, word)| *word == "fn") {
        let rest = &code[start + 2..];
        let name: String = rest.trim_start().chars().take_while(|c| is_word(*c)).collect();
        if name.is_empty() {
            continue;
        }
        let head = &rest[..signature_end(rest)];
        let bounds = words(head).find(|(_, word)| *word == "where").map_or(head.len(), |(start, _)| start);
        let head = &head[..bounds];
        let is_public =
            is_pub(&code[..start]) || traits.iter().any(|(from, to)| (*from..*to).contains(&start));
        let output = head.rfind(") ->").map_or("", |index| &head[index + 4..]);
        let line = 1 + code[..start].matches('\n').count();
        found.push(Signature { name, line, is_public, output: output.trim().to_owned() });
    }
    found
}

/// The names that items declare, each with its line.
pub(super) fn declared_names(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut before = "";
    let mut end = 0;
    for (start, word) in words(code) {
        let declares = matches!(
            before,
            "fn" | "struct" | "enum" | "trait" | "type" | "mod" | "const" | "static" | "union"
        );
        // Not the type of a function, as in `fn(&Name)`, and not a pointer, as in `*const Name`.
        let adjacent = code[end..start].chars().all(char::is_whitespace);
        let pointer = code[..end - before.len()].ends_with('*');
        if declares
            && adjacent
            && !pointer
            && !matches!(word, "fn" | "mut" | "unsafe" | "async" | "extern" | "_")
        {
            found.push((1 + code[..start].matches('\n').count(), word));
        }
        before = word;
        end = start + word.len();
    }
    found
}

/// The arguments of a type whose `<` is just in front of `text`.
pub(super) fn type_arguments(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut depth = 0_usize;
    let mut before = ' ';
    for character in text.chars() {
        match character {
            '<' | '(' | '[' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' if depth == 0 => break,
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        before = character;
        if character == ',' && depth == 0 {
            arguments.push(String::new());
        } else if let Some(last) = arguments.last_mut() {
            last.push(character);
        }
    }
    let mut arguments: Vec<String> = arguments.iter().map(|text| text.trim().to_owned()).collect();
    if arguments.last().is_some_and(String::is_empty) {
        arguments.pop();
    }
    arguments
}

/// Every word of the code with the byte it starts at.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + code[rest..].find(is_word)?;
        let length = code[start..].find(|c| !is_word(c)).unwrap_or(code.len() - start);
        rest = start + length;
        Some((start, &code[start..rest]))
    })
}

/// True for what names are made of.
pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Where the brace that opens at `opening` is closed.
fn closing(code: &str, opening: usize) -> usize {
    let mut depth = 0_usize;
    for (index, byte) in code.bytes().enumerate().skip(opening) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return index,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

/// The end of a signature: its body or its semicolon.
fn signature_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' | b';' if depth == 0 => return index,
            _ => {}
        }
    }
    text.len()
}

/// The bodies of traits that are public.
fn public_traits(code: &str) -> Vec<(usize, usize)> {
    let traits = words(code).filter(|(start, word)| *word == "trait" && is_pub(&code[..*start]));
    traits
        .filter_map(|(start, _)| {
            let opening = start + code[start..].find('{')?;
            Some((opening, closing(code, opening)))
        })
        .collect()
}

/// True when the item whose keyword follows is public without bounds.
fn is_pub(before: &str) -> bool {
    let item = before.rsplit(['{', '}', ';', ']']).next().unwrap_or_default();
    let mut item = item.split_whitespace().rev();
    item.find(|word| !matches!(*word, "async" | "unsafe" | "const" | "extern")) == Some("pub")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_blanked_and_lines_stay() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { { } }\n}\nfn c() {}\n#[cfg(test)]\nmod d;\nfn e() {}\n";
        let product = without_tests(code);
        assert_eq!(product.lines().count(), code.lines().count());
        let names: Vec<String> = signatures(&product).into_iter().map(|signature| signature.name).collect();
        assert_eq!(names, ["a", "c", "e"]);
        assert!(!product.contains("mod"));
    }

    #[test]
    fn inline_modules_are_those_with_a_body() {
        let code = "mod a;\nmod b { fn x() {} mod c { } }\n";
        let bodies: Vec<&str> =
            inline_modules(code).iter().map(|(from, to)| code[*from..*to].trim()).collect();
        assert_eq!(bodies, ["fn x() {} mod c { }", ""]);
    }

    #[test]
    fn a_signature_has_its_output() {
        let code = "pub const unsafe fn a<T>(f: fn(u8) -> u8) -> Result<T, u8>\nwhere T: Fn() -> Result<u8, String> {}\npub(crate) fn b();\n";
        let found = signatures(code);
        assert_eq!((found[0].is_public, found[0].output.as_str()), (true, "Result<T, u8>"));
        assert_eq!((found[1].is_public, found[1].output.as_str(), found[1].line), (false, "", 3));
    }

    #[test]
    fn arguments_are_split_at_their_own_commas() {
        assert_eq!(type_arguments("Vec<(u8, u8)>, String>, x"), ["Vec<(u8, u8)>", "String"]);
        assert_eq!(type_arguments("fn(u8) -> u8, [u8; 2],>"), ["fn(u8) -> u8", "[u8; 2]"]);
    }

    #[test]
    fn names_are_found_where_they_are_declared() {
        let code = "pub struct One { of: fn(&Other) -> u8, at: *const Third }\nconst fn two(three: u8) { let four = 5; }\nmod six { const SEVEN: u8 = 7; }\n";
        let names: Vec<&str> = declared_names(code).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["One", "two", "six", "SEVEN"]);
    }
}
