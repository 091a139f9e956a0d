//! Skills: instructions for a kind of work that the model reads when it needs them. A skill is a folder with a `SKILL.md`
//! of a person, a trusted project or a plugin. The prompt has names and descriptions; the text itself is read from its
//! file when the skill is called for.

mod read;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use qoder_types::{Behavior, PermissionUpdate, RuleValue, UpdateDestination};
use serde_json::{Value, json};

use crate::sources::{Document, Origin, Problem};
use crate::sources::{Stamp, stamp};

pub use read::{read_text, skills};

/// The file of a skill.
pub const FILE: &str = "SKILL.md";
/// The longest name.
const LONGEST_NAME: usize = 64;
/// Bytes of a skill's text that the model reads at once.
const LONGEST_TEXT: usize = 128 * 1024;
/// Bytes of names and descriptions in the prompt.
const BUDGET: usize = 16 * 1024;
/// The least that is left of a description when they have to be cut.
const LEAST_DESCRIPTION: usize = 60;

/// One skill.
#[derive(Debug)]
pub struct Skill {
    /// Its name; `plugin:name` for that of a plugin.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Who wrote it.
    pub origin: Origin,
    /// Its folder; real path.
    pub folder: PathBuf,
    /// Its `SKILL.md`; real path.
    pub file: PathBuf,
    /// Calls that it allows until the end of the turn.
    pub allowed: Vec<RuleValue>,
    /// The model of the turn that a person begins with it; the session's without it.
    pub model: Option<String>,
    /// Files it is about: the model reads of it once it works on one of them. Empty for always.
    pub paths: Vec<String>,
    /// False when only a person may call for it.
    pub by_model: bool,
    /// What may follow its name.
    pub argument_hint: Option<String>,
    /// Bytes of its text.
    pub bytes: u64,
    /// What its file was when it was read.
    stamp: Option<Stamp>,
    matcher: OnceLock<GlobSet>,
}

impl Skill {
    /// The text that the model reads, with the folder in which other files of the skill lie.
    ///
    /// # Errors
    /// When the file no longer exists, or is not what it was.
    pub fn text(&self) -> Result<String, Problem> {
        let document = Document::read(&self.file, &self.origin)?;
        // Hooks that may object to a change are asked between two turns.
        if stamp(&self.file) != self.stamp {
            return Err(document.problem(
                "",
                "has changed since it was read; the change counts from the next turn on, unless a hook objects",
            ));
        }
        let body = document.body.trim();
        let end = (0..=body.len().min(LONGEST_TEXT)).rev().find(|at| body.is_char_boundary(*at)).unwrap_or(0);
        let left_out =
            if end < body.len() { "\n\n[The rest was left out; read SKILL.md for it.]" } else { "" };
        let (name, folder) = (&self.name, self.folder.display());
        Ok(format!("Base folder of the skill {name}: {folder}\n\n{}{left_out}", &body[..end]))
    }

    /// The change by which files of the skill may be read: they were put there for that. None for a folder that no rule
    /// can name.
    #[must_use]
    pub fn reading(&self) -> Option<PermissionUpdate> {
        let folder = self.folder.to_str()?;
        let plain = !folder.contains(|c: char| "*?[]{}!()\\".contains(c) || c.is_control());
        plain.then(|| PermissionUpdate::AddRules {
            rules: vec![RuleValue {
                tool_name: "Read".to_owned(),
                rule_content: Some(format!("/{folder}/**")),
            }],
            behavior: Behavior::Allow,
            destination: UpdateDestination::Session,
        })
    }

    /// True when the skill is about this file.
    #[must_use]
    pub fn is_about(&self, file: &Path, project_root: &Path) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let matcher = self.matcher.get_or_init(|| {
            let mut set = GlobSetBuilder::new();
            for glob in self.paths.iter().filter_map(|pattern| glob(pattern).ok()) {
                set.add(glob);
            }
            set.build().unwrap_or_else(|_| GlobSet::empty())
        });
        matcher.is_match(file.strip_prefix(project_root).unwrap_or(file))
    }
}

/// A pattern of `paths`, as in a `.gitignore`: a bare name counts at any depth.
fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let anchored = match pattern.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None if pattern.trim_end_matches('/').contains('/') => pattern.to_owned(),
        None => format!("**/{pattern}"),
    };
    GlobBuilder::new(&anchored).literal_separator(true).build()
}

/// Says what is wrong with the name of a skill, wherever it comes from. A name is never a path.
///
/// # Errors
/// When it is not a valid name.
pub fn check_name(name: &str) -> Result<(), SkillNameError> {
    let (plugin, own) = match name.split_once(':') {
        Some((plugin, own)) => (Some(plugin), own),
        None => (None, name),
    };
    let plain = |part: &str, upper: bool| {
        let fits = |c: char| {
            c.is_ascii_lowercase()
                || c.is_ascii_digit()
                || c == '-'
                || (upper && (c.is_ascii_uppercase() || c == '_'))
        };
        !part.is_empty() && part.len() <= LONGEST_NAME && part.chars().all(fits)
    };
    if plain(own, false) && plugin.is_none_or(|plugin| plain(plugin, true)) {
        return Ok(());
    }
    Err(SkillNameError { shown: name.chars().take(100).collect() })
}

/// A name that no skill can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{shown:?} is not the name of a skill: it has lowercase letters, digits and hyphens, at most {LONGEST_NAME}, with \
     `plugin:` in front for that of a plugin; it has no slash and no dots"
)]
pub struct SkillNameError {
    /// What was given, cut to what fits on a line.
    shown: String,
}

impl SkillNameError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        "skill_name"
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "use lowercase letters, digits and hyphens"
    }
}

/// The skills of a session.
#[derive(Debug, Clone, Default)]
pub struct SkillList {
    skills: BTreeMap<String, Arc<Skill>>,
    /// Those whose name another one took.
    shadowed: Vec<Arc<Skill>>,
}

impl SkillList {
    /// Adds skills; a later one takes the name of an earlier one.
    fn add(&mut self, skill: Skill) {
        let skill = Arc::new(skill);
        if let Some(old) = self.skills.insert(skill.name.clone(), skill) {
            self.shadowed.push(old);
        }
    }

    /// Leaves only these. Names that are no skill's are answered.
    pub fn keep_only(&mut self, names: &[String]) -> Vec<String> {
        self.skills.retain(|name, _| names.contains(name));
        self.shadowed.clear();
        names.iter().filter(|name| !self.skills.contains_key(*name)).cloned().collect()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.values()
    }

    /// Those whose name another one took.
    #[must_use]
    pub fn shadowed(&self) -> &[Arc<Skill>] {
        &self.shadowed
    }

    /// The skill of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.skills.get(name)
    }

    /// All names.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.skills.keys().map(String::as_str).collect()
    }

    /// The text of a skill, for an agent that begins with it. None when there is no such skill or it cannot be read.
    #[must_use]
    pub fn body(&self, name: &str) -> Option<String> {
        self.get(name)?.text().ok()
    }

    /// Name, description and source of each, as hosts get them.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        let row = |skill: &Arc<Skill>| {
            json!({
                "name": skill.name, "description": skill.description, "source": skill.origin.as_str(),
                "argumentHint": skill.argument_hint.clone().unwrap_or_default(),
            })
        };
        self.iter().map(row).collect()
    }

    /// Those that the model may call for.
    pub fn for_model(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.iter().filter(|skill| skill.by_model)
    }

    /// What the prompt says of them from the start: names and descriptions, cut alike when there are too many.
    #[must_use]
    pub fn prompt_text(&self) -> Option<String> {
        let skills: Vec<&Arc<Skill>> = self.for_model().filter(|skill| skill.paths.is_empty()).collect();
        if skills.is_empty() {
            return None;
        }
        let names: usize = skills.iter().map(|skill| skill.name.len() + 8).sum();
        let whole: usize = skills.iter().map(|skill| skill.description.len()).sum();
        let most = if names + whole <= BUDGET {
            usize::MAX
        } else {
            (BUDGET.saturating_sub(names) / skills.len()).max(LEAST_DESCRIPTION)
        };
        let mut text = "\n\nThe skills:".to_owned();
        for (index, skill) in skills.iter().enumerate() {
            let line = format!("\n- `{}`: {}", skill.name, one_line(&skill.description, most));
            if text.len() + line.len() > BUDGET {
                text.push_str(&format!("\n- and {} more, which do not fit here", skills.len() - index));
                break;
            }
            text.push_str(&line);
        }
        Some(text)
    }
}

/// A text in one line of at most so many bytes.
fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= most {
        return line;
    }
    let end = (0..=most.saturating_sub(3)).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn skill(name: &str, description: &str, paths: &[&str]) -> Skill {
        Skill {
            name: name.to_owned(),
            description: description.to_owned(),
            origin: Origin::User,
            folder: PathBuf::from("/s").join(name),
            file: PathBuf::from("/s").join(name).join(FILE),
            allowed: Vec::new(),
            model: None,
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            by_model: true,
            argument_hint: None,
            bytes: 0,
            stamp: None,
            matcher: OnceLock::new(),
        }
    }

    #[test]
    fn a_skill_name_with_a_slash_is_refused() {
        for name in ["pdf", "a-1", "my_Plugin:sdk-echo", &"x".repeat(64)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let long = "x".repeat(65);
        for name in [
            "", "/pdf", "a/b", "..", "a.b", "../x", "A", "a b", "a:b:c", ":a", "p:", "a(b)", "*", "a\\b",
            &long, "é",
        ] {
            let problem = check_name(name).unwrap_err();
            assert!(problem.to_string().contains("is not the name of a skill"), "{problem}");
        }
    }

    #[test]
    fn descriptions_are_cut_alike_when_there_are_too_many() {
        let mut list = SkillList::default();
        assert_eq!(list.prompt_text(), None);
        for number in 0..300 {
            list.add(skill(&format!("skill-{number:03}"), &"long words ".repeat(90), &[]));
        }
        let told = list.prompt_text().unwrap();
        assert!(told.len() <= BUDGET + 100, "{}", told.len());
        assert!(told.contains("- `skill-000`: long words") && told.contains('…'));
        assert_eq!(told, list.prompt_text().unwrap());
        let mut few = SkillList::default();
        few.add(skill("one", "Does\n  one thing.", &[]));
        assert_eq!(few.prompt_text().unwrap(), "\n\nThe skills:\n- `one`: Does one thing.");
    }

    #[test]
    fn a_conditional_skill_is_about_the_files_of_its_paths() {
        let root = Path::new("/p");
        let about = |pattern: &str, file: &str| skill("s", "d", &[pattern]).is_about(Path::new(file), root);
        assert!(about("*.rs", "/p/src/deep/a.rs") && about("src/**/*.rs", "/p/src/a.rs"));
        assert!(!about("src/*.rs", "/p/src/deep/a.rs") && !about("/a.rs", "/p/src/a.rs"));
        assert!(!skill("s", "d", &[]).is_about(Path::new("/p/a"), root));
    }
}
