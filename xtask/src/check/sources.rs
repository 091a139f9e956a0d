//! The rules for source files: at most 500 lines a file and 80 a function, a head that says what the file owns,
//! and no macro or attribute that marks unfinished work. Exceptions to the lengths are listed in
//! xtask/exceptions.txt.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Verdict, items, scanner};

const MOST_FILE_LINES: usize = 500;
const MOST_FUNCTION_LINES: usize = 80;
/// The list may only shrink; lower this number when it does.
const MOST_EXCEPTIONS: usize = 8;
/// Marks of unfinished work, as they look in code.
const FORBIDDEN: &[&str] = &["todo!", "unimplemented!", "dbg!"];
/// The program, and the only part of it that writes to a terminal.
const PROGRAM: &str = "crates/cli/src/";
const SCREEN: &str = "crates/cli/src/screen/";
/// What writes to a terminal, as it looks in code.
const WAYS_OUT: &[&str] =
    &["stdout()", "stderr()", "print!", "println!", "eprint!", "eprintln!", "error.print()", "error.exit()"];
/// Folders that hold no sources of ours.
const SKIPPED: &[&str] = &["target", "node_modules", "dist", "build", "__pycache__"];

/// A source file.
pub(super) struct Source {
    /// Its path from the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// The text without comments and literals.
    pub(super) code: String,
    /// The code without tests.
    pub(super) product: String,
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let code = scanner::code_only(text);
        Self { path: path.to_owned(), text: text.to_owned(), product: items::without_tests(&code), code }
    }

    /// True for what a crate is made of: neither its tests nor its examples.
    pub(super) fn is_of_crate(&self) -> bool {
        (self.path.starts_with("crates/") && self.path.contains("/src/"))
            || ["trials/src/", "xtask/src/"].iter().any(|folder| self.path.starts_with(folder))
    }
}

/// One line of the list of exceptions.
#[derive(Debug, PartialEq, Eq)]
enum Exception {
    File { path: String, lines: usize },
    Function { path: String, name: String, lines: usize },
}

/// Judges the lengths, heads and marks of source files.
pub(super) fn judge(root: &Path, sources: &[Source]) -> Result<Vec<Verdict>> {
    let list = root.join("xtask/exceptions.txt");
    let text = std::fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let exceptions = read_exceptions(&text)?;
    Ok(vec![
        Verdict { rule: "files have at most 500 lines", violations: long_files(sources, &exceptions) },
        Verdict { rule: "functions have at most 80 lines", violations: long_functions(sources, &exceptions) },
        Verdict { rule: "the list of exceptions only shrinks", violations: stale(sources, &exceptions) },
        Verdict { rule: "files open with a head", violations: without_head(sources) },
        Verdict { rule: "no marks of unfinished work", violations: unfinished(sources) },
        Verdict { rule: "no ignored tests", violations: ignored(sources) },
        Verdict { rule: "the program prints through its screen module", violations: other_ways_out(sources) },
    ])
}

fn read_exceptions(text: &str) -> Result<Vec<Exception>> {
    let mut exceptions = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number =
            |word: &str| word.parse().with_context(|| format!("exceptions.txt:{}: {word}", index + 1));
        exceptions.push(match words.as_slice() {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            ["file", path, lines] => Exception::File { path: (*path).to_owned(), lines: number(lines)? },
            ["function", path, name, lines] => Exception::Function {
                path: (*path).to_owned(),
                name: (*name).to_owned(),
                lines: number(lines)?,
            },
            _ => bail!(
                "exceptions.txt:{}: expected `file PATH LINES` or `function PATH NAME LINES`",
                index + 1
            ),
        });
    }
    Ok(exceptions)
}

/// Every Rust file below `root`.
pub(super) fn read_sources(root: &Path) -> Result<Vec<Source>> {
    let texts = read_texts(root, &[".rs"])?;
    if texts.is_empty() {
        bail!("no source files below {}", root.display());
    }
    Ok(texts.iter().map(|(path, text)| Source::new(path, text)).collect())
}

/// Every file below `root` whose name ends like this, with its path from there.
pub(super) fn read_texts(root: &Path, endings: &[&str]) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    collect(root, endings, &mut files)?;
    files.sort();
    let mut texts = Vec::new();
    for file in files {
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let path = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        texts.push((path, text));
    }
    Ok(texts)
}

fn collect(folder: &Path, endings: &[&str], files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type()?;
        if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
            collect(&entry.path(), endings, files)?;
        } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// The lines a file may have: the ordinary limit or that of its exception.
fn file_limit(path: &str, exceptions: &[Exception]) -> usize {
    let listed = exceptions.iter().find_map(|exception| match exception {
        Exception::File { path: listed, lines } if listed == path => Some(*lines),
        Exception::File { .. } | Exception::Function { .. } => None,
    });
    listed.unwrap_or(MOST_FILE_LINES)
}

/// The lines a function may have: the ordinary limit or that of its exception.
fn function_limit(path: &str, name: &str, exceptions: &[Exception]) -> usize {
    let listed = exceptions.iter().find_map(|exception| match exception {
        Exception::Function { path: listed, name: function, lines } if listed == path && function == name => {
            Some(*lines)
        }
        Exception::File { .. } | Exception::Function { .. } => None,
    });
    listed.unwrap_or(MOST_FUNCTION_LINES)
}

fn long_files(sources: &[Source], exceptions: &[Exception]) -> Vec<String> {
    let lines = |source: &Source| source.text.lines().count();
    sources
        .iter()
        .filter(|source| lines(source) > file_limit(&source.path, exceptions))
        .map(|source| format!("{}: {} lines", source.path, lines(source)))
        .collect()
}

fn long_functions(sources: &[Source], exceptions: &[Exception]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for function in scanner::functions(&source.code) {
            if function.lines > function_limit(&source.path, &function.name, exceptions) {
                let scanner::Function { name, line, lines } = function;
                found.push(format!("{}:{line}: {name} has {lines} lines", source.path));
            }
        }
    }
    found
}

/// Exceptions that are no longer needed, and a list that has grown.
fn stale(sources: &[Source], exceptions: &[Exception]) -> Vec<String> {
    let needed = |exception: &Exception| match exception {
        Exception::File { path, .. } => {
            sources.iter().any(|source| source.path == *path && source.text.lines().count() > MOST_FILE_LINES)
        }
        Exception::Function { path, name, .. } => {
            sources.iter().filter(|source| source.path == *path).any(|source| {
                scanner::functions(&source.code)
                    .iter()
                    .any(|function| function.name == *name && function.lines > MOST_FUNCTION_LINES)
            })
        }
    };
    let mut found: Vec<String> = exceptions
        .iter()
        .filter(|exception| !needed(exception))
        .map(|exception| format!("no longer needed: {exception:?}"))
        .collect();
    if exceptions.len() > MOST_EXCEPTIONS {
        found.push(format!("{} exceptions, at most {MOST_EXCEPTIONS} are accepted", exceptions.len()));
    }
    found
}

fn without_head(sources: &[Source]) -> Vec<String> {
    sources
        .iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| format!("{}: does not start with `//! `", source.path))
        .collect()
}

fn unfinished(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (index, line) in source.code.lines().enumerate() {
            for word in FORBIDDEN.iter().filter(|word| has_word(line, word)) {
                found.push(format!("{}:{}: {word}", source.path, index + 1));
            }
        }
    }
    found
}

/// True when `word` is in `line` and is not the end of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(start, _)| {
        !line[..start].chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_')
    })
}

fn ignored(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        for (index, line) in source.code.lines().enumerate() {
            let squeezed: String = line.split_whitespace().collect();
            if squeezed.contains("#[ignore") {
                found.push(format!("{}:{}: ignored test", source.path, index + 1));
            }
        }
    }
    found
}

/// Code of the program that reaches a terminal past the module that escapes what others wrote.
fn other_ways_out(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let judged =
        sources.iter().filter(|source| source.path.starts_with(PROGRAM) && !source.path.starts_with(SCREEN));
    for source in judged {
        for (index, line) in source.code.lines().enumerate() {
            for word in WAYS_OUT.iter().filter(|word| has_word(line, word)) {
                found.push(format!("{}:{}: {word}", source.path, index + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Vec<Source> {
        vec![Source::new("a.rs", text)]
    }

    fn long_function(lines: usize) -> String {
        format!("//! Head.\nfn long() {{\n{}}}\n", "    one();\n".repeat(lines - 2))
    }

    #[test]
    fn the_limits_are_inclusive() {
        assert_eq!(long_files(&source(&"x\n".repeat(500)), &[]), [""; 0]);
        assert_eq!(long_files(&source(&"x\n".repeat(501)), &[]), ["a.rs: 501 lines"]);
        assert_eq!(long_functions(&source(&long_function(80)), &[]), [""; 0]);
        assert_eq!(long_functions(&source(&long_function(81)), &[]), ["a.rs:2: long has 81 lines"]);
    }

    #[test]
    fn an_exception_lifts_the_limit_to_its_number() {
        let exceptions = read_exceptions("# comment\n\nfunction a.rs long 90\nfile a.rs 600\n").unwrap();
        assert_eq!(long_functions(&source(&long_function(90)), &exceptions), [""; 0]);
        assert_eq!(long_functions(&source(&long_function(91)), &exceptions).len(), 1);
        assert_eq!(long_files(&source(&"x\n".repeat(600)), &exceptions), [""; 0]);
        assert_eq!(long_files(&source(&"x\n".repeat(601)), &exceptions).len(), 1);
    }

    #[test]
    fn an_exception_that_nothing_needs_is_a_violation() {
        let exceptions = read_exceptions("function a.rs long 90\n").unwrap();
        assert_eq!(stale(&source(&long_function(81)), &exceptions), [""; 0]);
        assert_eq!(stale(&source(&long_function(80)), &exceptions).len(), 1);
        let many = read_exceptions(&"function a.rs long 90\n".repeat(MOST_EXCEPTIONS + 1)).unwrap();
        assert_eq!(stale(&source(&long_function(81)), &many).len(), 1);
    }

    #[test]
    fn a_line_of_another_form_is_refused() {
        assert!(read_exceptions("files a.rs 3\n").is_err());
        assert!(read_exceptions("file a.rs many\n").is_err());
    }

    #[test]
    fn every_file_needs_a_head() {
        assert_eq!(without_head(&source("//! Owns this.\n")), [""; 0]);
        assert_eq!(without_head(&source("// Owns this.\n")).len(), 1);
        assert_eq!(without_head(&source("")).len(), 1);
    }

    #[test]
    fn marks_count_in_code_only() {
        assert_eq!(unfinished(&source("// todo!()\nlet a = \"dbg!\";\nmy_todo!();\n")), [""; 0]);
        assert_eq!(unfinished(&source("\nfn a() { todo!() }\n")), ["a.rs:2: todo!"]);
        assert_eq!(unfinished(&source("std::unimplemented!();")), ["a.rs:1: unimplemented!"]);
    }

    #[test]
    fn the_program_has_one_way_to_a_terminal() {
        let at = |path: &str| {
            let text = "use std::io;\nfn a() { writeln!(io::stdout(), \"println!\"); }\n";
            vec![Source::new(path, text)]
        };
        assert_eq!(other_ways_out(&at("crates/cli/src/a.rs")), ["crates/cli/src/a.rs:2: stdout()"]);
        assert_eq!(other_ways_out(&at("crates/cli/src/screen/mod.rs")), [""; 0]);
        assert_eq!(other_ways_out(&at("crates/cli/tests/a.rs")), [""; 0]);
    }

    #[test]
    fn ignored_tests_are_found_however_they_are_written() {
        assert_eq!(ignored(&source("#[ignore]\n#[ ignore = \"slow\"]\n")).len(), 2);
        assert_eq!(ignored(&source("// #[ignore]\n")), [""; 0]);
    }
}
