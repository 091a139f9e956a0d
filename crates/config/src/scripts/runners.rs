//! Files that a command runs without naming them as scripts: the file of a runner such as `make` or `npm run`, files behind
//! options, and what patterns stand for.

use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use qoder_policy::normalise;

/// Programs that run what a file of theirs says, and how that file is named.
const RUNNERS: [(&[&str], &[&str]); 8] = [
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["npm", "npx", "yarn", "pnpm", "bun"], &["package.json"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["rake"], &["Rakefile"]),
    (&["ant"], &["build.xml"]),
    (&["composer"], &["composer.json"]),
    (&["deno"], &["deno.json", "deno.jsonc"]),
];
/// Options whose operand such a program runs.
const FILE_OPTIONS: [&str; 6] = ["-f", "--file", "--makefile", "--justfile", "--taskfile", "--rakefile"];
/// The most files that one pattern stands for.
const MOST_MATCHES: usize = 500;

/// The files that words of a command stand for, besides the scripts among them. Patterns count where something runs
/// files, which `runs_files` says: a formatter is given patterns too, and what it formats is not what it runs.
pub(super) fn files(words: &[String], runs_files: bool, folder: &Path, directory: &Path) -> Vec<PathBuf> {
    let inside = |text: &str| {
        let path = normalise(&directory.join(text));
        (!text.is_empty() && path.starts_with(folder)).then_some(path)
    };
    let mut found = Vec::new();
    let names: Vec<&str> = words.iter().filter_map(|word| runner(word)).flatten().copied().collect();
    if !names.is_empty() {
        // A runner may work in any folder that the command names.
        let folders = words.iter().filter_map(|word| inside(operand(word))).filter(|path| path.is_dir());
        for place in std::iter::once(directory.to_path_buf()).chain(folders) {
            found.extend(names.iter().map(|name| place.join(name)).filter(|path| path.is_file()));
        }
        found.extend(behind_options(words).filter_map(inside).filter(|path| path.is_file()));
    }
    let is_run = |word: &&String| {
        let shell = [".sh", ".bash", ".zsh", ".fish", ".ksh", ".ps1"].iter().any(|end| word.ends_with(end));
        is_pattern(word) && (runs_files || shell || words.first() == Some(*word))
    };
    for word in words.iter().filter(is_run) {
        found.extend(matches(operand(word), folder, directory));
    }
    found
}

/// True for a program that runs what a file of its own says.
pub(super) fn is_runner(word: &str) -> bool {
    runner(word).is_some()
}

/// True for the name of a file that such a program runs.
pub(super) fn is_file_of_runner(name: &str) -> bool {
    RUNNERS.iter().any(|(_, files)| files.contains(&name)) || name.ends_with(".mk")
}

fn runner(word: &str) -> Option<&'static [&'static str]> {
    let base = word.rsplit('/').next().unwrap_or(word);
    RUNNERS.iter().find(|(programs, _)| programs.contains(&base)).map(|(_, files)| *files)
}

/// What an option is given behind `=`, or the word itself.
pub(super) fn operand(word: &str) -> &str {
    match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => word,
    }
}

fn behind_options(words: &[String]) -> impl Iterator<Item = &str> {
    let behind = words.windows(2).filter(|pair| FILE_OPTIONS.contains(&pair[0].as_str()));
    let attached = words.iter().filter_map(|word| word.strip_prefix("-f")).filter(|file| !file.is_empty());
    let equal =
        words.iter().filter(|word| word.starts_with('-') && word.contains('=')).map(|word| operand(word));
    behind.map(|pair| pair[1].as_str()).chain(attached).chain(equal)
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// The files inside `folder` that a pattern stands for, as a shell expands it.
fn matches(pattern: &str, folder: &Path, directory: &Path) -> Vec<PathBuf> {
    let path = normalise(&directory.join(pattern));
    let Ok(inside) = path.strip_prefix(folder) else { return Vec::new() };
    let mut places = vec![folder.to_path_buf()];
    for part in inside.components() {
        let name = part.as_os_str().to_string_lossy();
        if !is_pattern(&name) {
            places.iter_mut().for_each(|place| place.push(&*name));
            continue;
        }
        let Ok(glob) = GlobBuilder::new(&name).literal_separator(true).build() else { return Vec::new() };
        let matcher = glob.compile_matcher();
        let mut next = Vec::new();
        for place in &places {
            let entries = std::fs::read_dir(place).into_iter().flatten().filter_map(Result::ok);
            next.extend(
                entries.filter(|entry| matcher.is_match(entry.file_name())).map(|entry| entry.path()),
            );
        }
        next.sort();
        next.truncate(MOST_MATCHES);
        places = next;
    }
    places.retain(|path| path.is_file());
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_options_and_patterns_stand_for_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("sub/deep")).unwrap();
        for file in
            ["Makefile", "build.mk", "package.json", "sub/package.json", "sub/a.conf", "sub/deep/b.conf", "x"]
        {
            std::fs::write(root.join(file), "x").unwrap();
        }
        let of = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            let inside = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            files(&words, words[0] == "bash", &root, &root).into_iter().map(inside).collect::<Vec<_>>()
        };
        for (command, found) in [
            ("make all", &["Makefile"][..]),
            ("make -f build.mk", &["Makefile", "build.mk"]),
            ("make -fbuild.mk", &["Makefile", "build.mk"]),
            ("make --file=build.mk", &["Makefile", "build.mk"]),
            ("npm run check", &["package.json"]),
            ("npm --prefix sub run check", &["package.json", "sub/package.json"]),
            ("bash sub/*.conf", &["sub/a.conf"]),
            ("*/deep/?.conf", &["sub/deep/b.conf"]),
            ("format sub/*.conf", &[]),
            ("true x", &[]),
        ] {
            assert_eq!(of(command), found, "{command}");
        }
    }
}
