//! Names that say nothing without their context: a type's name says what it is without its module, a file's name is its
//! subject, and a function that prints, returns or records says which.

use super::sources::Source;
use super::{Verdict, items};

/// Types.
const TYPES: &[&str] = &["Courier", "Desk", "Family", "Found", "Goes", "Kept", "Room", "Told"];
/// Files, without their ending.
const FILES: &[&str] = &[
    "common", "helpers", "late", "later", "lost", "misc", "more", "other", "part", "parts", "stuff", "util",
    "utils", "work",
];
/// Functions.
const FUNCTIONS: &[&str] = &["say", "show", "tell"];

/// Judges names in crates.
pub(super) fn judge(sources: &[Source]) -> Verdict {
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| source.is_of_crate()) {
        let path = &source.path;
        let file = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs");
        if FILES.contains(&file) {
            violations.push(format!("{path}: name the file after its subject"));
        }
        let functions = items::signatures(&source.product);
        let named =
            items::declared_names(&source.product).into_iter().filter(|(_, name)| TYPES.contains(name));
        violations.extend(named.map(|(line, name)| format!("{path}:{line}: say what {name} is in its name")));
        let vague = functions.iter().filter(|function| FUNCTIONS.contains(&function.name.as_str()));
        violations.extend(vague.map(|function| {
            let (line, name) = (function.line, &function.name);
            format!("{path}:{line}: say in the name of `{name}` whether it prints, renders or appends")
        }));
    }
    Verdict { rule: "names say what they name", violations }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        judge(&[Source::new(path, text)]).violations
    }

    #[test]
    fn types_files_and_functions_are_judged() {
        assert_eq!(
            found("crates/a/src/more.rs", ""),
            ["crates/a/src/more.rs: name the file after its subject"]
        );
        assert_eq!(
            found("crates/a/src/b.rs", "\nstruct Told;\n"),
            ["crates/a/src/b.rs:2: say what Told is in its name"]
        );
        assert_eq!(
            found("crates/a/src/b.rs", "pub fn tell(text: &str) {}\n"),
            ["crates/a/src/b.rs:1: say in the name of `tell` whether it prints, renders or appends"]
        );
    }

    #[test]
    fn longer_names_tests_and_other_code_are_not() {
        for (path, text) in [
            ("crates/a/src/record_parts.rs", "struct KeptFiles;"),
            ("crates/a/src/b.rs", "fn show_panel() { tell(); }"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests { fn say() {} }"),
            ("crates/a/tests/parts.rs", "struct Told;"),
        ] {
            assert_eq!(found(path, text), [""; 0], "{path}");
        }
    }
}
