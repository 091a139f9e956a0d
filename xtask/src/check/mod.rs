//! The house rules that a machine can judge: which crate and which module may use which, what fronts see, how long files
//! and functions and how full folders may be, what public functions return, and which words and phrases must not appear.

mod edges;
mod folders;
mod glossary;
mod identifiers;
mod items;
mod known;
mod modules;
mod phrases;
mod scanner;
mod signatures;
mod sources;
mod vague_names;
mod views;
mod walks;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

/// The outcome of one rule.
pub(crate) struct Verdict {
    /// What the rule demands.
    pub(crate) rule: &'static str,
    /// Every place that breaks it.
    pub(crate) violations: Vec<String>,
}

/// Judges every rule.
pub(crate) fn verdicts(root: &Path) -> Result<Vec<Verdict>> {
    let sources = sources::read_sources(root)?;
    let mut verdicts = vec![edges::judge(root)?];
    verdicts.extend(sources::judge(root, &sources)?);
    verdicts.push(glossary::judge(root)?);
    verdicts.push(walks::judge(root)?);
    verdicts.push(views::judge(&sources));
    verdicts.push(vague_names::judge(&sources));
    verdicts.extend(counted(root, &sources)?.iter().map(|rule| known::compare(rule, known::KNOWN)));
    Ok(verdicts)
}

/// The rules that some code still breaks.
fn counted(root: &Path, sources: &[sources::Source]) -> Result<Vec<known::Counted>> {
    let texts = sources::read_texts(root, phrases::ENDINGS)?;
    let paths: Vec<String> = texts.iter().map(|(path, _)| path.clone()).collect();
    Ok(vec![
        modules::judge(sources),
        folders::judge(&paths),
        signatures::judge(sources),
        identifiers::judge(root, sources)?,
        phrases::judge(&texts),
    ])
}

/// `cargo xtask check --known`.
pub(crate) fn print_known(root: &Path) -> Result<ExitCode> {
    let sources = sources::read_sources(root)?;
    for line in known::table(&counted(root, &sources)?) {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// `cargo xtask check`.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let verdicts = verdicts(root)?;
    let broken = verdicts.iter().filter(|verdict| !verdict.violations.is_empty()).count();
    for verdict in &verdicts {
        print(verdict);
    }
    println!("{} passed, {broken} failed", verdicts.len() - broken);
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows one rule and what breaks it.
pub(crate) fn print(verdict: &Verdict) {
    let word = if verdict.violations.is_empty() { "ok" } else { "BROKEN" };
    println!("{word:>6}  {}", verdict.rule);
    for violation in &verdict.violations {
        println!("        {violation}");
    }
}
