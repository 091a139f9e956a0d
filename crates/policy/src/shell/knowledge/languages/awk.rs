//! Programs of awk, as far as every token of them is known: fields, comparisons, sums, strings, printing and harmless
//! functions. Inside braces there is no redirection, no pipe and no input of its own, because the signs and words for
//! them are not accepted, so such a program can only print.

use super::sed::has_simple_classes;
use crate::shell::knowledge::Effects;
use crate::shell::knowledge::options::Arguments;
use crate::shell::knowledge::program::Operands::Special;
use crate::shell::knowledge::program::Program;

/// The entry. Assigning with `-v` is text; loading programs and extensions is not.
pub(crate) const TABLE: &[Program] = &[Program::reader(
    &["awk", "gawk", "mawk", "nawk"],
    &["F field-separator=, v assign=!, f file=<!!, i include=!!, l load=!!, E exec=<!!, version"],
    Special(awk),
)
.style(crate::shell::knowledge::options::Style::Leading)];

fn awk(arguments: &Arguments<'_>, effects: &mut Effects) {
    let mut files = arguments.operands.as_slice();
    if !arguments.has(&["f", "E", "version"]) {
        let Some((program, rest)) = files.split_first() else {
            return effects.incomplete("the program is missing");
        };
        files = rest;
        if !program.as_literal().is_some_and(only_prints) {
            effects.incomplete("the program does more than select and print");
        }
    }
    for file in files {
        // `name=value` is an assignment and no file.
        if file.known_start().contains('=') {
            effects.incomplete("an operand assigns to a variable");
        }
        effects.read_file(file, false);
    }
}

const WORDS: &[&str] =
    &["print", "printf", "if", "else", "next", "exit", "in", "for", "while", "do", "break", "continue"];
const FUNCTIONS: &[&str] = &[
    "length", "substr", "index", "split", "tolower", "toupper", "int", "sprintf", "gsub", "sub", "match",
    "sqrt",
];
/// Variables that awk knows itself. Others of its own change what is read, such as the list of files.
const OWN: &[&str] =
    &["NR", "NF", "FNR", "FS", "OFS", "RS", "ORS", "FILENAME", "RSTART", "RLENGTH", "SUBSEP", "BEGIN", "END"];
const FORBIDDEN: &[&str] = &["getline", "system", "close", "fflush", "function", "func", "delete", "eval"];

/// True when every token is known and none can write, run or read anything else.
pub(crate) fn only_prints(program: &str) -> bool {
    let mut rest = program;
    let mut depth = 0_u32;
    // Whether a slash would divide: behind a value.
    let mut after_value = false;
    let mut unclear = false;
    while let Some(c) = rest.chars().next() {
        let tail = &rest[c.len_utf8()..];
        unclear = is_unclear(c, &program[..program.len() - rest.len()], unclear);
        match c {
            ' ' | '\t' | '\n' | ';' | ',' => {
                after_value = after_value && matches!(c, ' ' | '\t');
                rest = tail;
            }
            '"' => {
                let Some(end) = closing(tail, '"') else { return false };
                rest = &tail[end..];
                after_value = true;
            }
            // Behind a parenthesis or a double sign it depends on the grammar whether a slash divides.
            '/' if unclear => return false,
            '/' if !after_value => {
                let Some(end) = closing(tail, '/').filter(|end| has_simple_classes(&tail[..end - 1])) else {
                    return false;
                };
                rest = &tail[end..];
                after_value = true;
            }
            '{' => {
                depth += 1;
                after_value = false;
                rest = tail;
            }
            '}' => {
                let Some(less) = depth.checked_sub(1) else { return false };
                depth = less;
                after_value = false;
                rest = tail;
            }
            // Inside braces these would redirect what is printed; a comparison there is not told apart.
            '<' | '>' if depth > 0 => return false,
            ')' | ']' => {
                after_value = true;
                rest = tail;
            }
            '(' | '[' | '$' | '=' | '!' | '<' | '>' | '~' | '+' | '-' | '*' | '%' | '/' | '?' | ':' | '^' => {
                after_value = false;
                rest = tail;
            }
            '&' | '|' if tail.starts_with(c) => {
                after_value = false;
                rest = &tail[1..];
            }
            '0'..='9' | '.' => {
                rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                after_value = true;
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
                let name = &rest[..rest.len() - after.len()];
                if !known_name(name, after) {
                    return false;
                }
                after_value = !WORDS.contains(&name);
                rest = after;
                // Without parentheses a slash behind it could be either.
                if name == "length" && after.trim_start().starts_with('/') {
                    return false;
                }
            }
            _ => return false,
        }
    }
    depth == 0
}

/// Whether a slash behind this sign could divide or begin a pattern, depending on the grammar.
fn is_unclear(sign: char, before: &str, was: bool) -> bool {
    match sign {
        ' ' | '\t' | '/' => was,
        ')' => true,
        '+' | '-' => before.ends_with(sign),
        _ => false,
    }
}

fn known_name(name: &str, after: &str) -> bool {
    if FORBIDDEN.contains(&name) {
        return false;
    }
    if WORDS.contains(&name) || FUNCTIONS.contains(&name) {
        return true;
    }
    let calls = after.starts_with('(');
    let own = name.chars().all(|c| !c.is_ascii_lowercase());
    !calls && (!own || OWN.contains(&name))
}

/// Where the text behind a closing sign begins.
fn closing(text: &str, sign: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == sign => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn selecting_and_printing_is_read() {
        for program in [
            "{print $1}",
            "{print $1, $NF}",
            "NR==1",
            "NR>=5 && NR<=10",
            "/re/",
            "/re/{print $2}",
            "END{print NR}",
            "{s+=$1} END {print s}",
            "$3 > 100 {print $1\"x\"}",
            "{print length($0)}",
            "!seen[$0]++",
            "BEGIN{FS=\",\"} {print $2/2}",
            "{printf \"%s\\n\", $1}",
            "$1 ~ /^a/ || $2 == \"b\"",
            "{ if (NR == 2) print; else next }",
            "{print substr($0, 1, 5)}",
        ] {
            assert!(only_prints(program), "{program}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for program in [
            "{print > \"f\"}",
            "{print >> \"f\"}",
            "{print | \"sh\"}",
            "BEGIN{system(\"id\")}",
            "{getline}",
            "BEGIN{\"id\" | getline}",
            "BEGIN{while ((getline x < \"f\") > 0) print x}",
            "@load \"x\"",
            "function f(){}",
            "{f(1)}",
            "BEGIN{ARGV[1]=\"/etc/passwd\"}",
            "BEGIN{ARGC=2}",
            "{close(\"x\")}",
            "{print $1",
            "}",
            "{print \"a}",
            "{print /[/] | \"sh\" /x/}",
            "{print ENVIRON[\"HOME\"]}",
            "BEGIN{SYMTAB[\"x\"]=1}",
            "{print |& \"sh\"}",
            "# comment",
            "{print x++ / 1 | \"sh\" } # /}",
            "{if (1) /a\"/ | getline; print \"x\"}",
            "{x-- /1/}",
            "{print /[]/] | \"sh\" /x/}",
            "{print /[\\]/] | \"sh\"/}",
            "{print length / 2 | \"sh\" / 1}",
        ] {
            assert!(!only_prints(program), "{program}");
        }
    }
}
