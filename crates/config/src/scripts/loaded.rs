//! Files that a script, a makefile or a `package.json` names and so may load or run: what it sources, imports, requires or
//! calls. Found by reading words, not by running anything. A word too many is a file that is watched in vain; what a
//! program computes while it runs is not found.

use std::io::Read;
use std::path::{Path, PathBuf};

use qoder_files::open_regular;
use qoder_policy::normalise;
use serde_json::Value;

/// The most bytes of a file that are read for names.
const MOST_TEXT: u64 = 256 * 1024;
/// The most words of a file that are looked at.
const MOST_WORDS: usize = 4_096;
/// Words behind which a module stands.
const IMPORTS: [&str; 6] = ["import", "from", "require", "require_relative", "source", "."];
/// What a module's file is called besides its name.
const MODULE_ENDINGS: [&str; 12] =
    ["py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "lua", "sh", "/__init__.py", "/index.js"];

/// The files inside `folder` that the file `path` names; `words` are those of the command that runs it in `directory`.
pub(super) fn files(path: &Path, words: &[String], folder: &Path, directory: &Path) -> Vec<PathBuf> {
    let Some(text) = text(path) else { return Vec::new() };
    let text = match path.file_name().is_some_and(|name| name == "package.json") {
        true => package_scripts(&text, words),
        false => text,
    };
    let mut bases = vec![directory.to_path_buf(), folder.to_path_buf()];
    bases.extend(path.parent().map(Path::to_path_buf));
    bases.dedup();
    let mut found = Vec::new();
    let mut imports = false;
    let is_cut = |letter: char| letter.is_whitespace() || ";|&()<>`\"'=,{}[]".contains(letter);
    for word in text.split(is_cut).filter(|word| !word.is_empty()).take(MOST_WORDS) {
        let names = names(word, std::mem::replace(&mut imports, IMPORTS.contains(&word)));
        let places = names.iter().flat_map(|name| bases.iter().map(move |base| normalise(&base.join(name))));
        found.extend(places.filter(|place| place.starts_with(folder) && place.is_file()));
    }
    found
}

fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    open_regular(path, None).ok()?.take(MOST_TEXT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The names of files that a word may stand for.
fn names(word: &str, is_import: bool) -> Vec<String> {
    // `$folder/lib.sh`, `${0%/*}/lib.sh` and `$(dirname "$0")/lib.sh` most often mean the folder of the script.
    let word = match word.rsplit_once('$') {
        Some((_, variable)) => variable.split_once('/').map_or("", |(_, rest)| rest),
        None => word.trim_start_matches('/'),
    };
    if word.is_empty() {
        return Vec::new();
    }
    let mut names = Vec::new();
    if word.contains(['/', '.']) {
        names.push(word.to_owned());
    }
    if is_import || word.starts_with("./") || word.starts_with("../") {
        // `from .helper import run` and `import tools.helper`
        let module = word.trim_start_matches('.').trim_start_matches('/').replace('.', "/");
        let ended = |name: &str| {
            let of = |ending: &&str| {
                if ending.starts_with('/') { format!("{name}{ending}") } else { format!("{name}.{ending}") }
            };
            MODULE_ENDINGS.iter().map(of).collect::<Vec<_>>()
        };
        names.push(word.to_owned());
        names.extend(ended(&module));
        names.extend(ended(word));
    }
    names
}

/// The commands of a `package.json` that a command runs: those it names, what belongs before and after them, and those
/// that they name in turn.
fn package_scripts(text: &str, words: &[String]) -> String {
    let Ok(Value::Object(package)) = serde_json::from_str(text) else { return String::new() };
    let Some(Value::Object(scripts)) = package.get("scripts") else { return String::new() };
    let mut waiting: Vec<String> = words.to_vec();
    let mut taken: Vec<&str> = Vec::new();
    let mut commands = String::new();
    while let Some(word) = waiting.pop() {
        for name in [word.clone(), format!("pre{word}"), format!("post{word}")] {
            let Some((name, Value::String(command))) = scripts.get_key_value(&name) else { continue };
            if !taken.contains(&name.as_str()) {
                taken.push(name);
                waiting.extend(command.split_whitespace().map(str::to_owned));
                commands.push_str(command);
                commands.push('\n');
            }
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(script: &str, text: &str, words: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("hooks/deep")).unwrap();
        for file in [
            "hooks/lib.sh",
            "hooks/helper.py",
            "hooks/part.js",
            "hooks/deep/__init__.py",
            "top.sh",
            "data.csv",
        ] {
            std::fs::write(root.join(file), "x").unwrap();
        }
        std::fs::write(root.join(script), text).unwrap();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let mut found: Vec<String> = files(&root.join(script), &words, &root, &root)
            .into_iter()
            .map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned())
            .collect();
        found.dedup();
        found
    }

    #[test]
    fn a_script_names_what_it_loads() {
        for (text, expected) in [
            (". \"$(dirname \"$0\")/lib.sh\"\n", &["hooks/lib.sh"][..]),
            ("source ${HERE}/lib.sh; ./top.sh", &["hooks/lib.sh", "top.sh"]),
            ("from helper import run\nimport deep", &["hooks/helper.py", "hooks/deep/__init__.py"]),
            ("const part = require('./part');", &["hooks/part.js"]),
            ("# see https://example.com/lib\nexit 0", &[]),
        ] {
            assert_eq!(found("hooks/check", text, &[]), expected, "{text}");
        }
    }

    #[test]
    fn of_a_package_only_the_scripts_that_run_count() {
        let package = r#"{"scripts": {"check": "npm run inner", "preinner": "node hooks/part.js", "inner": "true",
            "dev": "bash top.sh"}}"#;
        assert_eq!(found("package.json", package, &["npm", "run", "check"]), ["hooks/part.js"]);
        assert_eq!(found("package.json", package, &["npm", "run", "dev"]), ["top.sh"]);
    }
}
