//! Finding commands: `commands/**/*.md` of every place. The name is that of the file, with those of the folders below
//! `commands` in front. Whatever is wrong with one is a problem with its file and line; the others are found all the same.

use std::path::{Path, PathBuf};

use super::{Command, CommandList, Local, is_name};
use crate::configuration::Configuration;
use crate::plugins::Plugin;
use crate::sources::files::{MOST_ENTRIES, entries, read_linked};
use crate::sources::{Kind, Origin, Place, Problem, head};

/// How deep folders of commands may nest.
const DEEPEST: usize = 5;
/// The longest description.
const LONGEST_DESCRIPTION: usize = 1024;
/// The longest hint about arguments.
const LONGEST_HINT: usize = 200;
/// Characters of the text that describe a command which does not describe itself.
const FIRST_WORDS: usize = 100;

/// Reads the commands of all places; the person's take the names of the project's.
#[must_use]
pub fn commands(config: &Configuration, plugins: &[Plugin], problems: &mut Vec<Problem>) -> CommandList {
    let mut list = CommandList::default();
    let mut places = config.places(Kind::Commands, plugins);
    places.sort_by_key(|place| place.origin == Origin::User);
    for place in &places {
        let boundary = config.boundary(&place.origin, plugins);
        for (file, name) in files(place, problems) {
            match read(&file, &name, place, boundary) {
                Ok(command) => list.add(command),
                Err(problem) => problems.push(problem),
            }
        }
    }
    list
}

/// The files of a place with the names of their commands.
fn files(place: &Place, problems: &mut Vec<Problem>) -> Vec<(PathBuf, String)> {
    let is_markdown = |path: &Path| path.extension().is_some_and(|end| end == "md");
    let stem = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    if is_markdown(&place.path) {
        return stem(&place.path).map(|name| vec![(place.path.clone(), name)]).unwrap_or_default();
    }
    let mut found = Vec::new();
    let mut folders = vec![(place.path.clone(), String::new(), 0)];
    while let Some((folder, before, depth)) = folders.pop() {
        for path in entries(&folder, &place.origin, problems) {
            let Some(name) = stem(&path) else { continue };
            let name = if before.is_empty() { name } else { format!("{before}:{name}") };
            let mut report = |text: String| {
                problems.push(Problem { path: path.clone(), line: None, text, origin: place.origin.clone() });
            };
            let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
            if is_folder && depth < DEEPEST {
                folders.push((path, name, depth + 1));
            } else if is_folder {
                report(format!("is not read: folders of commands nest at most {DEEPEST} deep"));
            } else if is_markdown(&path) {
                found.push((path, name));
            } else if path.is_dir() {
                // It may contain itself.
                report("is not read: it is a link to a folder, and only files may be links".to_owned());
            }
        }
        if found.len() > MOST_ENTRIES {
            break;
        }
    }
    found.sort();
    if found.len() > MOST_ENTRIES {
        let text = format!("has more than {MOST_ENTRIES} commands; only {MOST_ENTRIES} of them are read");
        problems.push(Problem { path: place.path.clone(), line: None, text, origin: place.origin.clone() });
        found.truncate(MOST_ENTRIES);
    }
    found
}

fn read(path: &Path, name: &str, place: &Place, boundary: Option<&Path>) -> Result<Command, Problem> {
    let (document, real) = read_linked(path, &place.origin, boundary)?;
    if !is_name(name) {
        let text = format!("{name:?} cannot be the name of a command: it takes letters, digits, `-` and `_`");
        return Err(document.problem("", text));
    }
    let qualified = place.origin.qualified(name);
    if Local::named(&qualified).is_some() {
        return Err(
            document.problem("", format!("/{qualified} is a built-in command; give the file another name"))
        );
    }
    let described = head::text(&document, "description", LONGEST_DESCRIPTION)?;
    Ok(Command {
        name: qualified,
        description: described.unwrap_or_else(|| first_words(&document.body)),
        argument_hint: head::text(&document, "argument-hint", LONGEST_HINT)?,
        allowed: head::allowed_tools(&document)?,
        model: head::model(&document)?,
        origin: place.origin.clone(),
        file: real,
    })
}

fn first_words(body: &str) -> String {
    let line = body.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(FIRST_WORDS).collect()
}
