//! Programs of jq, as far as every token of them is known: paths, pipes, constructions and the everyday functions that
//! only look at the input. Modules, the environment, variables and inputs of its own are not accepted.

use crate::shell::knowledge::Effects;
use crate::shell::knowledge::options::Arguments;
use crate::shell::knowledge::program::Operands::Special;
use crate::shell::knowledge::program::{Program, read_files};

const JQ: &str = "
    r raw-output, c compact-output, n null-input, s slurp, e exit-status, S sort-keys, C color-output,
    M monochrome-output, a ascii-output, j join-output, tab, indent=, R raw-input, raw-output0,
    unbuffered, h help, V version, f from-file!!, L=!!
";

/// The entry.
pub(crate) const TABLE: &[Program] = &[Program::reader(&["jq"], &[JQ], Special(jq))];

fn jq(arguments: &Arguments<'_>, effects: &mut Effects) {
    let Some((program, files)) = arguments.operands.split_first() else {
        if !arguments.has(&["h", "V"]) {
            effects.incomplete("the program is missing");
        }
        return;
    };
    if !program.as_literal().is_some_and(only_looks) {
        effects.incomplete("the program is not one that is read completely");
    }
    read_files(files, false, false, effects);
}

const WORDS: &[&str] = &[
    "add",
    "all",
    "and",
    "any",
    "arrays",
    "ascii_downcase",
    "ascii_upcase",
    "booleans",
    "ceil",
    "contains",
    "del",
    "elif",
    "else",
    "empty",
    "end",
    "endswith",
    "entries",
    "false",
    "first",
    "flatten",
    "floor",
    "from_entries",
    "fromjson",
    "group_by",
    "gsub",
    "has",
    "if",
    "in",
    "index",
    "inside",
    "join",
    "keys",
    "keys_unsorted",
    "last",
    "length",
    "limit",
    "ltrimstr",
    "map",
    "map_values",
    "max",
    "max_by",
    "min",
    "min_by",
    "not",
    "null",
    "nulls",
    "numbers",
    "objects",
    "or",
    "paths",
    "range",
    "recurse",
    "reverse",
    "round",
    "rtrimstr",
    "scalars",
    "select",
    "sort",
    "sort_by",
    "split",
    "startswith",
    "strings",
    "sub",
    "test",
    "then",
    "to_entries",
    "tojson",
    "tonumber",
    "tostring",
    "true",
    "type",
    "unique",
    "unique_by",
    "utf8bytelength",
    "values",
    "with_entries",
];
const FORMATS: &[&str] = &["@csv", "@tsv", "@json", "@text", "@base64", "@html", "@uri", "@sh"];

/// True when every token is known and none reaches beyond the input.
pub(crate) fn only_looks(program: &str) -> bool {
    let mut rest = program;
    let mut open: Vec<char> = Vec::new();
    // The last sign that was no blank: it separates names of fields and keys from functions.
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        match c {
            ' ' | '\t' | '\n' => {
                rest = tail;
                continue;
            }
            '"' => {
                let Some(end) = string_end(tail) else { return false };
                rest = &tail[end..];
            }
            '(' | '[' | '{' => {
                open.push(c);
                rest = tail;
            }
            ')' | ']' | '}' => {
                let opener = match c {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                if open.pop() != Some(opener) {
                    return false;
                }
                rest = tail;
            }
            '.' | '|' | ',' | ':' | '?' | '=' | '!' | '<' | '>' | '+' | '-' | '*' | '/' | '%' | ';' => {
                rest = tail
            }
            '0'..='9' => rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            '@' => {
                let after = tail.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
                if !FORMATS.contains(&&rest[..rest.len() - after.len()]) {
                    return false;
                }
                rest = after;
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let after = tail.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                let name = &rest[..rest.len() - after.len()];
                let field = before == '.' && program[..program.len() - rest.len()].ends_with('.');
                let key = open.last() == Some(&'{') && matches!(before, '{' | ',');
                if !field && !key && !WORDS.contains(&name) {
                    return false;
                }
                rest = after;
            }
            _ => return false,
        }
        before = c;
    }
    open.is_empty()
}

/// Where the text behind a string begins. A string with a program inside is not read.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '(' if escaped => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::only_looks;

    #[test]
    fn looking_at_the_input_is_read() {
        for program in [
            ".",
            ".a.b[0]",
            ".[]",
            "keys",
            "length",
            ".a | keys | length",
            ".dependencies | to_entries[] | .key",
            "{name, version: .v}",
            "map(select(.x > 1))",
            ".a // \"none\"",
            ".[\"a b\"]",
            ".[] | [.a, .b] | @csv",
            ".. | .env?",
            "del(.x)",
            "if .a then 1 else 2 end",
            ".a.import",
        ] {
            assert!(only_looks(program), "{program}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for program in [
            "env",
            "$ENV",
            "$ENV.X",
            "import \"a\" as a; .",
            "include \"x\"; .",
            "input",
            "inputs",
            "input_filename",
            "\"\\(env)\"",
            "def f: .; f",
            "[",
            ".a)",
            "@sh2",
            "getpath([\"a\"])",
            "halt",
            "debug",
            ". env",
            "(.]",
            "{a: env}",
            "\"x",
        ] {
            assert!(!only_looks(program), "{program}");
        }
    }
}
