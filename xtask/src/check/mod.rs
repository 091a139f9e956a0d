//! The house rules that a machine can judge: which crate may use which, how long files and functions may be,
//! that every file says what it owns, which words must not appear, and that the glossary names each term
//! once.

mod edges;
mod glossary;
mod scanner;
mod sources;

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
    let mut verdicts = vec![edges::judge(root)?];
    verdicts.extend(sources::judge(root)?);
    verdicts.push(glossary::judge(root)?);
    Ok(verdicts)
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
