//! Looking for mistakes in a plugin: it is read as a session would read it, alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_config::sources::{Origin, Problem};
use qoder_runtime::setup::{Options, Setup};
use serde_json::json;

use super::show::{active, row};
use crate::exit::{Exit, Fault};
use crate::screen::{print_json, print_line, print_row};

/// A setup that has this one plugin and nothing else.
pub fn alone(folder: &Path, environment: BTreeMap<String, String>) -> Result<Setup, Fault> {
    let options = Options {
        plugin_dirs: vec![PathBuf::from(folder)],
        setting_sources: Some(Vec::new()),
        environment,
        ..Options::default()
    };
    Ok(Setup::prepare(options)?)
}

/// Prints what is wrong and what would become active.
pub fn run(folder: &Path, as_json: bool, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let setup = alone(folder, environment)?;
    let loaded = setup.extensions(BTreeMap::new())?;
    let is_own = |problem: &&Problem| matches!(problem.origin, Origin::Plugin(_));
    let problems: Vec<&Problem> = loaded.problems.iter().filter(is_own).collect();
    if as_json {
        let plugin = loaded.plugins.first().map(|plugin| row(plugin, &loaded, setup.plugins()));
        let problem = |one: &&Problem| json!({ "path": one.path, "line": one.line, "message": one.text });
        let problems: Vec<_> = problems.iter().map(problem).collect();
        print_json(&json!({ "plugin": plugin, "problems": problems }))?;
    } else {
        for problem in &problems {
            print_line(&problem.to_string())?;
        }
        for plugin in &loaded.plugins {
            for line in active(plugin, &loaded, setup.plugins()) {
                print_row(&line)?;
            }
        }
    }
    match problems.len() {
        0 => Ok(Exit::Success),
        1 => Err(Fault::input("1 problem", "correct it at the file and line that it names")),
        several => Err(Fault::input(
            format!("{several} problems"),
            "correct each at the file and line that it names",
        )),
    }
}
