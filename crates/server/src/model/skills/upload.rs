//! The files of a skill as they arrive: where each belongs, and whether they make a skill.

use qoder_runtime::config::skills;

use crate::model::problem::Problem;

/// The file that every skill has.
const INSTRUCTIONS: &str = "SKILL.md";
/// The most files of a skill.
const MOST_FILES: usize = 2_000;
/// The longest path of a file.
const LONGEST_PATH: usize = 1_024;

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Its path inside of the skill's folder.
    pub path: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// The files of a skill, in the order of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFiles {
    /// The name that `SKILL.md` gives.
    pub name: String,
    /// What the skill is for.
    pub description: String,
    /// The files.
    pub files: Vec<SkillFile>,
}

impl SkillFiles {
    /// Puts files in order. Their paths begin with one folder, which is left out, or with none.
    ///
    /// # Errors
    /// When a path cannot be used, or no session could use the skill.
    pub fn new(files: Vec<SkillFile>) -> Result<Self, Problem> {
        let wrong = |problem: String| Problem::field("files", problem);
        if files.is_empty() {
            return Err(wrong("is required".to_owned()));
        }
        if files.len() > MOST_FILES {
            return Err(wrong(format!("has more than {MOST_FILES} files")));
        }
        let mut files = files;
        for file in &files {
            check_path(&file.path)?;
        }
        if !files.iter().any(|file| file.path == INSTRUCTIONS) {
            inside(&mut files)?;
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        for pair in files.windows(2) {
            let (one, other) = (&pair[0].path, &pair[1].path);
            let is_inside = other.strip_prefix(one.as_str()).is_some_and(|rest| rest.starts_with('/'));
            if one == other || is_inside {
                return Err(wrong(format!("has `{one}` more than once, or as a file and a folder")));
            }
        }
        let instructions = files.iter().find(|file| file.path == INSTRUCTIONS);
        let instructions = instructions.ok_or_else(|| missing(""))?;
        let text = std::str::from_utf8(&instructions.content)
            .map_err(|_| wrong(format!("has a {INSTRUCTIONS} that is not UTF-8 text")))?;
        let skill = skills::read_text(text).map_err(|problem| {
            let line = problem.line.map(|line| format!(" in line {line}")).unwrap_or_default();
            wrong(format!("has a {INSTRUCTIONS} that cannot be used{line}: {}", problem.text))
        })?;
        Ok(Self { name: skill.name, description: skill.description, files })
    }
}

fn missing(folder: &str) -> Problem {
    Problem::field("files", format!("has no `{folder}{INSTRUCTIONS}`"))
}

/// Takes the one folder that all files are in off their paths.
fn inside(files: &mut [SkillFile]) -> Result<(), Problem> {
    let top = files.first().and_then(|file| file.path.split_once('/')).map(|(top, _)| format!("{top}/"));
    let top = top.ok_or_else(|| missing(""))?;
    for file in files.iter_mut() {
        let Some(path) = file.path.strip_prefix(&top) else {
            let problem = format!("has `{}`, which is not in the folder `{top}` with the others", file.path);
            return Err(Problem::field("files", problem));
        };
        file.path = path.to_owned();
    }
    if files.iter().any(|file| file.path == INSTRUCTIONS) { Ok(()) } else { Err(missing(&top)) }
}

/// A path leads to a place inside of the skill's folder, on every system.
fn check_path(path: &str) -> Result<(), Problem> {
    let is_plain = |part: &str| {
        !matches!(part, "" | "." | "..") && !part.contains(|each: char| each == '\\' || each.is_control())
    };
    if path.len() <= LONGEST_PATH && path.split('/').all(is_plain) {
        return Ok(());
    }
    let shown: String = path.chars().take(100).collect();
    Err(Problem::field("files", format!("has the path {shown:?}; paths are relative, without `..`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "---\nname: report\ndescription: Writes reports.\n---\nWrite.";

    fn files(paths: &[(&str, &str)]) -> Result<SkillFiles, Problem> {
        let file = |(path, content): &(&str, &str)| SkillFile {
            path: (*path).to_owned(),
            content: content.as_bytes().to_vec(),
        };
        SkillFiles::new(paths.iter().map(file).collect())
    }

    #[test]
    fn files_are_in_one_folder_or_in_none() {
        let made = files(&[("top/scripts/a.py", "1"), ("top/SKILL.md", GOOD)]).unwrap();
        assert_eq!((made.name.as_str(), made.description.as_str()), ("report", "Writes reports."));
        let paths: Vec<&str> = made.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["SKILL.md", "scripts/a.py"]);
        assert_eq!(files(&[("SKILL.md", GOOD), ("a/b", "")]).unwrap().files.len(), 2);
    }

    #[test]
    fn what_is_no_skill_is_refused_with_the_reason() {
        for (wrong, reason) in [
            (vec![], "is required"),
            (vec![("top/a.md", "x")], "has no `top/SKILL.md`"),
            (vec![("a.md", "x")], "has no `SKILL.md`"),
            (vec![("top/SKILL.md", GOOD), ("other/a", "")], "not in the folder"),
            (vec![("../SKILL.md", GOOD)], "without `..`"),
            (vec![("/SKILL.md", GOOD)], "relative"),
            (vec![("t\\SKILL.md", GOOD)], "relative"),
            (vec![("SKILL.md", GOOD), ("SKILL.md", GOOD)], "more than once"),
            (vec![("SKILL.md", GOOD), ("a", ""), ("a/b", "")], "as a file and a folder"),
            (vec![("SKILL.md", "no head")], "`name` is missing"),
            (vec![("SKILL.md", "---\nname: A b\ndescription: d\n---\n")], "lowercase"),
            (vec![("SKILL.md", "---\nname: a\n---\n")], "`description` is missing"),
        ] {
            let problem = files(&wrong).unwrap_err();
            assert!(problem.message.contains(reason), "{wrong:?}: {}", problem.message);
        }
    }
}
