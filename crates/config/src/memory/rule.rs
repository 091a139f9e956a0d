//! A rule: a Markdown file whose head says when its text counts. A head that cannot be used is a problem with its line,
//! and the rule then counts always, so that it is not lost. Also whether a rule is about a file.

use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;

use super::Owner;
use crate::sources::{Document, Origin, Problem, head};

/// Patterns of one rule.
const MOST_GLOBS: usize = 50;
/// The longest description.
const LONGEST_DESCRIPTION: usize = 1024;
/// Where worktrees of a project lie: a file of one is looked at as if it lay in the project itself.
const WORKTREES: [&str; 2] = [".qoder", "worktrees"];

/// When a rule counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trigger {
    /// From the start.
    AlwaysOn,
    /// When a person names it.
    Manual,
    /// When the model thinks that it does; what it is about.
    ModelDecision(Option<String>),
    /// When a file that matches is worked on.
    Paths(Vec<String>),
}

/// A rule that was read.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) trigger: Trigger,
    pub(super) body: String,
}

impl Rule {
    /// Reads the text of a rule.
    pub(super) fn parse(text: &str, path: &Path, owner: Owner) -> (Self, Option<Problem>) {
        let always = |body: &str| Self { trigger: Trigger::AlwaysOn, body: body.to_owned() };
        let blamed = |problem: Problem| Problem {
            text: format!("{}; the rule counts always", problem.text),
            ..problem
        };
        match Document::parse(text, path, &origin(owner)) {
            Err(problem) => (always(below_head(text)), Some(blamed(problem))),
            Ok(document) => match trigger(&document) {
                Ok(trigger) => (Self { trigger, body: document.body }, None),
                Err(problem) => (always(&document.body), Some(blamed(problem))),
            },
        }
    }
}

fn origin(owner: Owner) -> Origin {
    match owner {
        Owner::User => Origin::User,
        Owner::Project | Owner::Local => Origin::Project,
    }
}

/// What is below a head that cannot be read.
fn below_head(text: &str) -> &str {
    let below = text.strip_prefix("---").and_then(|rest| rest.split_once("\n---"));
    below.map_or(text, |(_, below)| below.trim_start_matches('-').trim_start())
}

fn trigger(document: &Document) -> Result<Trigger, Problem> {
    let always = match document.head.get("alwaysApply") {
        None | Some(Value::Null) => None,
        Some(_) => Some(head::flag(document, "alwaysApply")?),
    };
    let mut globs = patterns(document, "glob")?;
    if globs.is_empty() {
        globs = patterns(document, "paths")?;
    }
    let description = || head::text(document, "description", LONGEST_DESCRIPTION);
    let word = head::text(document, "trigger", LONGEST_DESCRIPTION)?;
    match word.as_deref() {
        Some("always_on") => Ok(Trigger::AlwaysOn),
        Some("manual") => Ok(Trigger::Manual),
        Some("model_decision") => Ok(Trigger::ModelDecision(description()?)),
        Some("glob") if globs.is_empty() => {
            Err(document.problem("trigger", "`trigger: glob` needs patterns in `glob` or `paths`"))
        }
        Some("glob") => Ok(Trigger::Paths(globs)),
        Some(other) => {
            let known = "always_on, manual, model_decision and glob";
            Err(document.problem("trigger", format!("`trigger` is `{other}`; accepted are {known}")))
        }
        None => Ok(match (always, globs.is_empty()) {
            (Some(true), _) | (None, true) => Trigger::AlwaysOn,
            (_, false) => Trigger::Paths(globs),
            (Some(false), true) => Trigger::ModelDecision(description()?),
        }),
    }
}

/// The patterns of a field: a list, or one text in which commas part them.
fn patterns(document: &Document, field: &str) -> Result<Vec<String>, Problem> {
    let texts = head::list(document, field)?;
    let globs: Vec<String> = texts.iter().flat_map(|text| parted(text)).collect();
    if globs.len() > MOST_GLOBS {
        return Err(document.problem(field, format!("`{field}` has more than {MOST_GLOBS} patterns")));
    }
    Ok(globs)
}

/// Parts a text at its commas, but not at those between braces.
fn parted(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A rule that counts for certain files.
#[derive(Debug)]
pub(super) struct PathRule {
    pub(super) path: PathBuf,
    pub(super) owner: Owner,
    pub(super) globs: Vec<String>,
    /// The folders that its patterns begin at.
    pub(super) bases: Vec<PathBuf>,
    matcher: OnceLock<Gitignore>,
}

impl PathRule {
    pub(super) fn new(path: PathBuf, owner: Owner, globs: Vec<String>, bases: Vec<PathBuf>) -> Self {
        Self { path, owner, globs, bases, matcher: OnceLock::new() }
    }

    /// True when the rule is about this file. Patterns that cannot be used are added to `problems`, once.
    pub(super) fn is_about(&self, file: &Path, problems: &mut Vec<Problem>) -> bool {
        let matcher = self.matcher.get_or_init(|| {
            let mut builder = GitignoreBuilder::new("");
            for glob in &self.globs {
                let plain = glob.strip_prefix("./").unwrap_or(glob);
                if let Err(error) = builder.add_line(None, plain) {
                    let text = format!("{glob:?} is no pattern of paths and does not count: {error}");
                    let (path, origin) = (self.path.clone(), origin(self.owner));
                    problems.push(Problem { path, line: None, text, origin });
                }
            }
            builder.build().unwrap_or_else(|_| Gitignore::empty())
        });
        let below = self.bases.iter().filter_map(|base| file.strip_prefix(base).ok());
        below
            .map(without_worktree)
            .filter(|path| is_plain(path))
            .any(|path| matcher.matched_path_or_any_parents(path, false).is_ignore())
    }
}

/// Anything but names would mean another place than it says.
fn is_plain(path: &Path) -> bool {
    path.components().next().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

fn without_worktree(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let inside = WORKTREES.iter().all(|name| parts.next().is_some_and(|part| part.as_os_str() == *name));
    // The next part is the worktree's own name.
    if inside && parts.next().is_some() { parts.as_path().to_path_buf() } else { path.to_path_buf() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> (Trigger, Option<String>) {
        let text = format!("---\n{head}\n---\nBODY");
        let (rule, problem) = Rule::parse(&text, Path::new("r.md"), Owner::Project);
        assert_eq!(rule.body.trim(), "BODY");
        (rule.trigger, problem.map(|problem| problem.to_string()))
    }

    #[test]
    fn trigger_wins_over_always_apply_and_paths_are_a_trigger() {
        let paths = |globs: &[&str]| Trigger::Paths(globs.iter().map(|glob| (*glob).to_owned()).collect());
        for (head, trigger) in [
            ("x: 1", Trigger::AlwaysOn),
            ("alwaysApply: true\npaths: ['*.rs']", Trigger::AlwaysOn),
            ("trigger: glob\nalwaysApply: true\nglob: '*.rs'", paths(&["*.rs"])),
            ("paths: ['*.rs', 'src/**']", paths(&["*.rs", "src/**"])),
            ("glob: '*.{ts,tsx}, docs/'", paths(&["*.{ts,tsx}", "docs/"])),
            ("trigger: manual\npaths: ['*.rs']", Trigger::Manual),
            (
                "alwaysApply: false\ndescription: about it",
                Trigger::ModelDecision(Some("about it".to_owned())),
            ),
        ] {
            assert_eq!(read(head), (trigger, None), "{head}");
        }
    }

    #[test]
    fn a_head_that_cannot_be_used_is_named_with_its_line_and_the_rule_counts_always() {
        for (head, line) in [
            ("trigger: [unclosed", "r.md:"),
            ("x: 1\ntrigger: sometimes", "r.md:3: `trigger` is `sometimes`"),
            ("trigger: glob", "r.md:2: `trigger: glob` needs patterns"),
            ("x: 1\npaths: 5", "r.md:3: `paths` has to be a list"),
        ] {
            let (trigger, problem) = read(head);
            let problem = problem.unwrap();
            assert_eq!(trigger, Trigger::AlwaysOn, "{head}");
            assert!(problem.starts_with(line) && problem.ends_with("counts always"), "{problem}");
        }
    }

    #[test]
    fn patterns_are_those_of_gitignore_from_the_folder_that_holds_the_rules() {
        let about = |globs: &[&str], file: &str| {
            let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
            let rule = PathRule::new("r.md".into(), Owner::Project, globs, vec!["/p".into()]);
            let mut problems = Vec::new();
            let about = rule.is_about(Path::new(file), &mut problems);
            assert!(problems.is_empty(), "{problems:?}");
            about
        };
        assert!(about(&["*.rs"], "/p/deep/a.rs") && about(&["src/**/*.rs"], "/p/src/x/a.rs"));
        assert!(about(&["docs/"], "/p/docs/deep/a.txt") && about(&["/a.rs"], "/p/a.rs"));
        assert!(about(&["*.{ts,tsx}"], "/p/a.tsx") && about(&["./a.rs"], "/p/a.rs"));
        assert!(!about(&["/a.rs"], "/p/src/a.rs") && !about(&["src/*.rs"], "/p/src/deep/a.rs"));
        assert!(!about(&["*.rs", "!made.rs"], "/p/made.rs") && about(&["*.rs", "!made.rs"], "/p/a.rs"));
        assert!(!about(&["*.rs"], "/elsewhere/a.rs") && !about(&["*"], "/p"));
        assert!(about(&["src/*.rs"], "/p/.qoder/worktrees/one/src/a.rs"));
        assert!(!about(&["*.rs"], "/p/../x/a.rs"));
    }

    #[test]
    fn a_pattern_that_is_none_is_named_and_the_others_count() {
        let globs = vec!["[z-a]".to_owned(), "*.rs".to_owned()];
        let rule = PathRule::new("r.md".into(), Owner::Project, globs, vec!["/p".into()]);
        let mut problems = Vec::new();
        assert!(rule.is_about(Path::new("/p/a.rs"), &mut problems));
        assert!(problems.len() == 1 && problems[0].text.contains("[z-a]"), "{problems:?}");
        assert!(rule.is_about(Path::new("/p/b.rs"), &mut problems) && problems.len() == 1);
    }
}
