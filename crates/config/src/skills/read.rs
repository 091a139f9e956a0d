//! Finding skills: `skills/<name>/SKILL.md` of every place, from the lowest to the highest. Whatever is wrong with one is
//! a problem with its file and line; the others are found all the same.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{FILE, LONGEST_NAME, Skill, SkillList, check_name, glob};
use crate::configuration::Configuration;
use crate::plugins::Plugin;
use crate::sources::files::{entries, read_linked, real_file};
use crate::sources::stamp;
use crate::sources::{Document, Kind, Origin, Place, Problem, head};

/// The longest description.
const LONGEST_DESCRIPTION: usize = 1024;
/// The longest hint about arguments.
const LONGEST_HINT: usize = 200;
/// Patterns of one skill.
const MOST_PATHS: usize = 50;

/// Reads the skills of all places: those of plugins, of the project when it is trusted, above them the person's, and above all
/// those in folders of the front. Of those that the front `named`, only these stay.
#[must_use]
pub fn skills(
    config: &Configuration,
    plugins: &[Plugin],
    (folders, named): (&[PathBuf], Option<&Vec<String>>),
    problems: &mut Vec<Problem>,
) -> SkillList {
    let mut list = SkillList::default();
    let mut places = config.places(Kind::Skills, plugins);
    places.extend(folders.iter().map(|path| Place { origin: Origin::Flag, path: path.clone() }));
    places.sort_by_key(|place| rank(&place.origin));
    for place in &places {
        let boundary = match place.origin {
            Origin::Flag => Some(place.path.as_path()),
            Origin::BuiltIn | Origin::User | Origin::Project | Origin::Plugin(_) => {
                config.boundary(&place.origin, plugins)
            }
        };
        for folder in entries(&place.path, &place.origin, problems) {
            match read(&folder, place, boundary) {
                Ok(Some(skill)) => list.add(skill),
                Ok(None) => {}
                Err(problem) => problems.push(problem),
            }
        }
    }
    if let Some(names) = named {
        let origin = Origin::Flag;
        problems.extend(list.keep_only(names).into_iter().map(|name| Problem {
            path: "skills".into(),
            line: None,
            text: format!("there is no skill `{name}`"),
            origin: origin.clone(),
        }));
    }
    list
}

/// A higher one takes the name of a lower one.
fn rank(origin: &Origin) -> u8 {
    match origin {
        Origin::BuiltIn => 0,
        Origin::Plugin(_) => 1,
        Origin::Project => 2,
        Origin::User => 3,
        Origin::Flag => 4,
    }
}

/// Reads the skill of a folder; none when it is no folder of a skill.
fn read(folder: &Path, place: &Place, boundary: Option<&Path>) -> Result<Option<Skill>, Problem> {
    let file = folder.join(FILE);
    let Some(base) = folder.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    // A link that leads nowhere was meant to be a skill.
    let is_broken = |path: &Path| path.is_symlink() && !path.exists();
    if !file.exists() && !is_broken(&file) && !is_broken(folder) {
        return Ok(None);
    }
    // What the skill may read is the folder that it lies in, wherever its text is linked to.
    let folder = real_file(folder, &place.origin, boundary)?;
    let seen = stamp(&file);
    let (document, file) = read_linked(&file, &place.origin, boundary)?;
    let skill = of_document(&document, &place.origin, (folder, file))?;
    let name = head::text(&document, "name", LONGEST_NAME)?.unwrap_or_default();
    if name != base {
        let text = format!("`name` is `{name}`, and the folder is `{base}`; they have to be the same");
        return Err(document.problem("name", text));
    }
    Ok(Some(Skill { stamp: seen, ..skill }))
}

/// Reads the text of a `SKILL.md` that is in no folder yet, for a program that keeps skills elsewhere.
///
/// # Errors
/// When no session could use the skill.
pub fn read_text(text: &str) -> Result<Skill, Problem> {
    let document = Document::parse(text, Path::new(FILE), &Origin::Flag)?;
    of_document(&document, &Origin::Flag, (PathBuf::new(), PathBuf::from(FILE)))
}

/// What a document says about a skill.
fn of_document(
    document: &Document,
    origin: &Origin,
    (folder, file): (PathBuf, PathBuf),
) -> Result<Skill, Problem> {
    let Some(name) = head::text(document, "name", LONGEST_NAME)? else {
        return Err(document.problem("name", "`name` is missing; it has to be that of the folder"));
    };
    if name.contains(':') || check_name(&name).is_err() {
        let text = format!(
            "`name` is {name:?}; it takes lowercase letters, digits and hyphens, at most {LONGEST_NAME}, without a slash"
        );
        return Err(document.problem("name", text));
    }
    let Some(description) = head::text(document, "description", LONGEST_DESCRIPTION)? else {
        return Err(document.problem("description", "`description` is missing; the model chooses by it"));
    };
    let allowed = head::allowed_tools(document)?;
    Ok(Skill {
        name: origin.qualified(&name),
        description,
        origin: origin.clone(),
        folder,
        file,
        // What a session of a front may do is the front's to say.
        allowed: if *origin == Origin::Flag { Vec::new() } else { allowed },
        model: head::model(document)?,
        paths: paths(document)?,
        by_model: !head::flag(document, "disable-model-invocation")?,
        argument_hint: head::text(document, "argument-hint", LONGEST_HINT)?,
        bytes: document.body.len() as u64,
        stamp: None,
        matcher: OnceLock::new(),
    })
}

fn paths(document: &Document) -> Result<Vec<String>, Problem> {
    let paths = head::list(document, "paths")?;
    if paths.len() > MOST_PATHS {
        return Err(document.problem("paths", format!("`paths` has more than {MOST_PATHS} patterns")));
    }
    match paths.iter().find(|pattern| pattern.trim().is_empty() || glob(pattern).is_err()) {
        Some(pattern) => {
            Err(document.problem("paths", format!("`paths`: {pattern:?} is no pattern of paths")))
        }
        None => Ok(paths),
    }
}
