//! The installed plugins: which there are, which are on, what each brings, and what is wrong with them.

use std::collections::BTreeMap;

use qoder_config::extensions::switched_on;
use qoder_config::plugins::{Installed, MARKET, folder_of};
use qoder_runtime::setup::Setup;
use serde_json::{Value, json};

use super::show::{active, row};
use super::validate::alone;
use crate::exit::{Exit, Fault};
use crate::screen::{print_json, print_line, print_row};

/// Lists them.
pub fn run(setup: &Setup, as_json: bool) -> Result<Exit, Fault> {
    let installed = Installed::load(&setup.config.config_root);
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for name in installed.names() {
        let folder = folder_of(&setup.config.config_root, &name);
        let id = format!("{name}{MARKET}");
        let on = switched_on(&setup.config.settings, &id);
        let mut one = json!({ "id": id, "name": name, "path": folder, "enabled": on });
        // Nothing of files that are not approved is interpreted, not even to show it.
        if let Err(reason) = installed.check(&name, &folder) {
            one["approved"] = json!(false);
            one["errors"] = json!([reason.to_string()]);
            lines.push(format!("{name} (not used): {reason}"));
        } else {
            let alone = alone(&folder, setup.options.environment.clone())?;
            let loaded = alone.extensions(BTreeMap::new())?;
            one["approved"] = json!(true);
            for plugin in &loaded.plugins {
                extend(&mut one, row(plugin, &loaded, alone.plugins()));
                let mut shown = active(plugin, &loaded, alone.plugins());
                shown[0].insert_str(0, if on { "on   " } else { "off  " });
                lines.extend(shown);
            }
            lines.extend(loaded.problems.iter().map(|problem| format!("  problem: {problem}")));
        }
        one["source"] = json!(id);
        rows.push(one);
    }
    if as_json {
        print_json(&Value::Array(rows))?;
    } else if lines.is_empty() {
        print_line("no plugins are installed; `qodercli plugins install DIR` installs one")?;
    } else {
        lines.iter().try_for_each(|line| print_row(line))?;
    }
    tell_missing(setup)?;
    Ok(Exit::Success)
}

/// Plugins that settings switch on and that are not there, or cannot be used.
fn tell_missing(setup: &Setup) -> Result<(), Fault> {
    for problem in &setup.plugins().problems {
        crate::screen::print_note(&format!("warning: {problem}"));
    }
    Ok(())
}

fn extend(one: &mut Value, more: Value) {
    if let (Value::Object(one), Value::Object(more)) = (one, more) {
        one.extend(more);
    }
}
