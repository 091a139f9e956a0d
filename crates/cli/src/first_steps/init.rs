//! `qodercli init`: writes a draft of `AGENTS.md`, from what the build files of the folder say. What is there already is never
//! changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Fault};
use crate::screen;

/// Entries of the folder that are looked at.
const MOST_ENTRIES: usize = 500;

/// Build files, and the commands that go with them.
const KNOWN: &[(&str, &[&str])] = &[
    ("Cargo.toml", &["cargo build", "cargo test", "cargo clippy --all-targets", "cargo fmt --all"]),
    ("package.json", &["npm install", "npm test", "npm run build"]),
    ("pyproject.toml", &["python -m pip install -e .", "python -m pytest"]),
    ("go.mod", &["go build ./...", "go test ./..."]),
    ("pom.xml", &["mvn package", "mvn test"]),
    ("build.gradle", &["./gradlew build", "./gradlew test"]),
    ("build.gradle.kts", &["./gradlew build", "./gradlew test"]),
    ("CMakeLists.txt", &["cmake -B build", "cmake --build build", "ctest --test-dir build"]),
    ("Gemfile", &["bundle install", "bundle exec rake test"]),
    ("mix.exs", &["mix deps.get", "mix test"]),
    ("Makefile", &["make", "make test"]),
];

/// Runs `qodercli init`.
pub fn run(folder: Option<&PathBuf>) -> Result<Exit, Fault> {
    let folder = crate::command_line::place::current_directory(folder)?;
    let path = write_draft(&folder)?;
    screen::print_row(&format!("wrote {}", path.display()))?;
    screen::print_note(
        "Fill in what only people know; `qodercli trust` makes the file count in this folder.",
    );
    Ok(Exit::Success)
}

/// Writes the draft; answers with its path.
pub fn write_draft(folder: &Path) -> Result<PathBuf, Fault> {
    let path = folder.join("AGENTS.md");
    let opened = std::fs::OpenOptions::new().create_new(true).write(true).open(&path);
    let mut file = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Fault::input(
            format!("{} exists already", path.display()),
            "it is not changed; edit it, or move it away first",
        ),
        _ => Fault::input(format!("{} cannot be written: {error}", path.display()), "check the folder"),
    })?;
    let text = draft(folder);
    file.write_all(text.as_bytes()).map_err(|error| {
        Fault::input(format!("{} cannot be written: {error}", path.display()), "check the disk")
    })?;
    Ok(path)
}

/// The draft for a folder.
fn draft(folder: &Path) -> String {
    let mut files = BTreeSet::new();
    let mut folders = BTreeSet::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_ENTRIES) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.')
            || matches!(name.as_str(), "target" | "node_modules" | "build" | "dist" | "__pycache__")
        {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => folders.insert(name),
            Ok(_) => files.insert(name),
            Err(_) => false,
        };
    }
    let project = folder
        .file_name()
        .map_or_else(|| "this project".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut text = format!(
        "# {project}\n\nWhat agents should know before they change something here.\n\n## Commands\n\n"
    );
    let known: Vec<_> = KNOWN.iter().filter(|(file, _)| files.contains(*file)).collect();
    // Writing into a text cannot fail.
    for (file, commands) in &known {
        for command in *commands {
            let _ = writeln!(text, "- `{command}` ({file})");
        }
    }
    if known.is_empty() {
        text.push_str("- how to build it\n- how to test it\n");
    }
    text.push_str("\n## Layout\n\n| path | what it holds |\n| --- | --- |\n");
    for name in &folders {
        let _ = writeln!(text, "| `{name}/` | |");
    }
    if files.contains("README.md") {
        text.push_str("| `README.md` | what the project is, for users |\n");
    }
    text.push_str("\n## Rules\n\n- style, names, what to test, what not to touch\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draft_names_commands_and_folders_and_is_written_once() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Cargo.toml"), "").unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        let path = write_draft(folder.path()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("`cargo test`") && text.contains("`src/`"), "{text}");
        let again = write_draft(folder.path()).unwrap_err();
        assert!(again.message.contains("exists already"), "{again:?}");
    }
}
