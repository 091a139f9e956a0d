//! The scripts that hooks run: files inside a folder that their commands name. They decide what a hook does as much as its
//! command line, so they are protected like it, and vouched for with it, together with what they load and, where a command
//! says only when it runs what it runs, with every script in the folder.

mod loaded;
mod runners;
mod whole_folder;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use qoder_files::open_regular;
use qoder_policy::normalise;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use whole_folder::WHOLE_FOLDER;

/// The most scripts of one folder.
const MOST_SCRIPTS: usize = 500;
/// The most bytes of a script that are looked at; the length of a longer one counts as well.
const LARGEST: u64 = 8 * 1024 * 1024;
/// How the names of scripts end.
const ENDINGS: [&str; 19] = [
    "sh", "bash", "zsh", "fish", "ksh", "ps1", "py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php",
    "lua", "awk", "jq", "r",
];
/// Programs that run the file behind them.
const INTERPRETERS: [&str; 20] = [
    "sh", "bash", "zsh", "fish", "ksh", "dash", "pwsh", "python", "python3", "node", "deno", "bun", "tsx",
    "ruby", "perl", "php", "lua", "source", ".", "uv",
];
/// Words behind which a program stands.
const IN_FRONT: [&str; 12] =
    ["env", "exec", "nohup", "time", "command", "builtin", "run", "then", "do", "eval", "xargs", "sudo"];
/// Variables that stand for the folder.
const FOLDER_VARIABLES: [&str; 4] = ["${QODER_PROJECT_DIR}", "$QODER_PROJECT_DIR", "${PWD}", "$PWD"];

/// A word of a command, and what its place says about it.
struct Word {
    text: String,
    /// It is the program that runs, or the file that one runs.
    runs: bool,
    /// A command begins with it.
    begins: bool,
}

/// The commands of an object with hooks: the text of each with its arguments.
pub fn commands(hooks: &Value) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    let mut waiting = vec![hooks];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(several) => waiting.extend(several),
            Value::Object(fields) => {
                if let Some(command) = fields.get("command").and_then(Value::as_str) {
                    let args = fields.get("args").and_then(Value::as_array).into_iter().flatten();
                    found.push(std::iter::once(command).chain(args.filter_map(Value::as_str)).collect());
                }
                waiting.extend(fields.values().filter(|value| value.is_array() || value.is_object()));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

/// The scripts inside `folder` that hooks name, under the names that lead to them; those that do not exist yet included.
pub fn named(hooks: &Value, folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for texts in commands(hooks) {
        for path in scripts(&texts, folder, folder) {
            found.extend(path.canonicalize().ok().filter(|real| real.starts_with(folder)));
            found.insert(path);
        }
    }
    found.into_iter().take(MOST_SCRIPTS).collect()
}

/// The digests of the scripts inside `folder` that commands name when they run in `directory`, by their paths in the
/// folder. One that is not there has none.
pub fn digests<'a>(
    commands: impl IntoIterator<Item = Vec<&'a str>>,
    folder: &Path,
    directory: &Path,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for texts in commands {
        let words: Vec<String> = words_of(&texts, folder).into_iter().map(|word| word.text).collect();
        let mut waiting = scripts(&texts, folder, directory);
        while let Some(path) = waiting.pop() {
            let Ok(inside) = path.strip_prefix(folder) else { continue };
            let name = inside.to_string_lossy().into_owned();
            if found.len() < MOST_SCRIPTS
                && !found.contains_key(&name)
                && let Some(digest) = digest(&path)
            {
                found.insert(name, digest);
                waiting.extend(
                    loaded::files(&path, &words, folder, directory).into_iter().filter(|path| may_run(path)),
                );
            }
        }
        if !unbound(&texts, folder).is_empty() {
            let name = WHOLE_FOLDER.to_owned();
            found.entry(name).or_insert_with(|| whole_folder::digest(folder, is_named_to_run));
        }
    }
    found
}

/// True for a file that something could run.
fn may_run(path: &Path) -> bool {
    is_named_to_run(path) || path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

/// True for a file whose name says that it is a script or the file of a runner.
fn is_named_to_run(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ends_as_script(path) || runners::is_file_of_runner(&name)
}

fn ends_as_script(path: &Path) -> bool {
    path.extension().is_some_and(|end| ENDINGS.iter().any(|ending| end == *ending))
}

fn digest(path: &Path) -> Option<String> {
    let mut file = open_regular(path, None).ok()?;
    let length = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.by_ref().take(LARGEST).read_to_end(&mut bytes).ok()?;
    let mut hash = Sha256::new();
    hash.update(length.to_le_bytes());
    hash.update(&bytes);
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The words of a command and its arguments, with the folder in place of the variables that stand for it. With arguments of
/// its own no shell reads a command; the arguments follow it as words.
fn words_of(texts: &[&str], folder: &Path) -> Vec<Word> {
    let interprets = texts.first().is_some_and(|program| is_interpreter(program));
    let first = texts.iter().skip(1).position(|text| !text.starts_with('-')).map(|at| at + 1);
    let words = texts.iter().enumerate().flat_map(|(at, text)| {
        let mut words = words(text);
        if let (true, Some(word)) = (at > 0, words.first_mut()) {
            word.runs = interprets && Some(at) == first;
            word.begins = false;
        }
        words
    });
    let placed = |word: Word| {
        let folder = folder.to_string_lossy();
        let text = FOLDER_VARIABLES.iter().fold(word.text, |text, name| text.replace(name, &folder));
        Word { text, ..word }
    };
    words.map(placed).collect()
}

/// What of a command cannot be bound, because only when it runs is it known what that runs.
pub fn unbound(texts: &[&str], folder: &Path) -> Vec<String> {
    let words = words_of(texts, folder);
    let runs_file = words.iter().any(|word| runners::is_runner(&word.text));
    let mut found = Vec::new();
    let mut before = "";
    for (at, word) in words.iter().enumerate() {
        let decides = word.runs || runs_file || matches!(before, "cd" | "pushd");
        let rest = words.get(at + 1..).unwrap_or_default();
        let is_unknown = decides && word.text.contains(['$', '`']);
        if (is_unknown || runs_input(word, rest)) && !found.contains(&word.text) {
            found.push(word.text.clone());
        }
        before = &word.text;
    }
    found
}

/// True for a program that runs what it reads: `… | sh`, `… | xargs bash`, `find … -exec sh {}`.
fn runs_input(word: &Word, rest: &[Word]) -> bool {
    let base = word.text.rsplit('/').next().unwrap_or(&word.text);
    let mut operands = rest.iter().take_while(|next| !next.begins);
    match base {
        "xargs" | "parallel" | "-exec" | "-execdir" | "-ok" => true,
        base if is_interpreter(base) && word.runs => !operands.any(|next| !next.text.starts_with('-')),
        _ => false,
    }
}

/// The files inside `folder` that a command and its arguments run.
fn scripts(texts: &[&str], folder: &Path, directory: &Path) -> Vec<PathBuf> {
    let all = words_of(texts, folder);
    let plain: Vec<String> = all.iter().map(|word| word.text.clone()).collect();
    let runs_files = plain.iter().any(|word| is_interpreter(word));
    let mut found = runners::files(&plain, runs_files, folder, directory);
    for word in all {
        // A script may be what an option is given: `--require=./hook.js`.
        let text = runners::operand(&word.text).to_owned();
        if text.starts_with('-') {
            continue;
        }
        let path = normalise(&directory.join(&text));
        if text.is_empty() || path == folder || !path.starts_with(folder) || found.contains(&path) {
            continue;
        }
        let ends_so = ends_as_script(&path);
        let is_script = match path.metadata() {
            Ok(metadata) if metadata.is_file() => {
                ends_so || word.runs || metadata.permissions().mode() & 0o111 != 0
            }
            Ok(_) => false,
            Err(_) => ends_so || (word.runs && text.contains('/')),
        };
        if is_script {
            found.push(path);
        }
    }
    found
}

fn is_interpreter(program: &str) -> bool {
    let base = program.rsplit('/').next().unwrap_or(program);
    INTERPRETERS.contains(&base)
}

/// The words of a command, and once more those inside quotes; without what it writes to. This reads more than a shell
/// would and never less: a word too many is a file that is looked at in vain.
fn words(command: &str) -> Vec<Word> {
    let mut reading = Reading { runs: true, begins: true, ..Reading::default() };
    let mut quote = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some('\'') => reading.push(letter),
            Some(_) | None if letter == '\\' => {
                letters.next().into_iter().for_each(|next| reading.push(next))
            }
            Some(_) => reading.push(letter),
            None if matches!(letter, '"' | '\'') => {
                quote = Some(letter);
                reading.begun = true;
            }
            None => reading.take(letter),
        }
    }
    reading.end();
    reading.words
}

/// A command that is being read.
#[derive(Default)]
struct Reading {
    words: Vec<Word>,
    text: String,
    /// A word has begun; it may be empty.
    begun: bool,
    /// The next word is a program, or what one runs.
    runs: bool,
    /// The next word begins a command.
    begins: bool,
    /// The next word is a file that is written to.
    written: bool,
}

impl Reading {
    fn push(&mut self, letter: char) {
        self.text.push(letter);
        self.begun = true;
    }

    /// A letter outside quotes.
    fn take(&mut self, letter: char) {
        let in_variable =
            (letter == '{' && self.text.ends_with('$')) || (letter == '}' && self.text.contains("${"));
        match letter {
            ';' | '|' | '&' | '(' | ')' | '{' | '}' | '`' | '\n' if !in_variable => {
                self.end();
                (self.runs, self.begins) = (true, true);
            }
            '>' => {
                self.end();
                self.written = true;
            }
            '<' => self.end(),
            letter if letter.is_whitespace() => self.end(),
            letter => self.push(letter),
        }
    }

    fn end(&mut self) {
        if !std::mem::take(&mut self.begun) {
            return;
        }
        let text = std::mem::take(&mut self.text);
        if std::mem::take(&mut self.written) {
            return;
        }
        // Quoted text may be a command of its own; it is shorter by the quotes each time.
        if text.contains(|c: char| c.is_whitespace() || ";|&()<>`".contains(c)) {
            self.words.extend(words(&text));
        }
        let sets_variable = text.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        let leads_on = is_interpreter(&text) || IN_FRONT.contains(&text.as_str());
        let runs = self.runs;
        self.runs = runs && (leads_on || sets_variable || text.starts_with('-'));
        let begins = std::mem::take(&mut self.begins);
        self.words.push(Word { text, runs, begins });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(command: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("my scripts")).unwrap();
        for file in ["check.sh", "tool", "notes.txt", "my scripts/a.py", "state.json"] {
            std::fs::write(root.join(file), "x").unwrap();
        }
        let inside = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        scripts(&[command], &root, &root).into_iter().map(inside).collect()
    }

    #[test]
    fn a_command_names_the_scripts_that_it_runs() {
        for (command, found) in [
            ("./check.sh --fast", &["check.sh"][..]),
            ("\"$QODER_PROJECT_DIR\"/check.sh", &["check.sh"]),
            ("${QODER_PROJECT_DIR}/check.sh && ./tool", &["check.sh", "tool"]),
            ("bash -e check.sh", &["check.sh"]),
            // What is quoted may be one word or a command; both are looked at.
            ("python3 'my scripts/a.py'", &["scripts/a.py", "my scripts/a.py"]),
            ("FOO=1 env bash ./tool", &["tool"]),
            ("bash -c 'check.sh x; tool y'", &["check.sh", "tool"]),
            ("cat notes.txt | ./absent/run", &["absent/run"]),
            ("jq . state.json > check.sh", &[]),
            ("echo check > notes.txt; cat notes.txt", &[]),
            ("/bin/true ../elsewhere.sh", &[]),
        ] {
            assert_eq!(names(command), found, "{command}");
        }
    }

    #[test]
    fn another_content_is_another_digest() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let hooks = json!({ "PreToolUse": [{ "hooks": [
            { "type": "command", "command": "bash", "args": ["run"] },
            { "type": "command", "command": "./check.sh" },
        ] }] });
        let all = || digests(commands(&hooks), &root, &root);
        assert!(all().is_empty());
        std::fs::write(root.join("check.sh"), "exit 0").unwrap();
        std::fs::write(root.join("run"), "exit 0").unwrap();
        let before = all();
        assert_eq!(before.keys().collect::<Vec<_>>(), ["check.sh", "run"]);
        std::fs::write(root.join("check.sh"), "exit 1").unwrap();
        assert_ne!(all()["check.sh"], before["check.sh"]);
        assert_eq!(all()["run"], before["run"]);
        assert!(named(&hooks, &root).contains(&root.join("check.sh")));
    }
}
