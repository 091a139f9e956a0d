//! How one server is described, in every place that describes it, and whether it may run.

use qoder_config::server_config::{parse_server, shown};
use qoder_config::servers::{Approvals, Described, Standing, standing};
use qoder_runtime::setup::Setup;
use serde_json::{Value, json};

use super::{described, find};
use crate::exit::{Exit, Fault};
use crate::screen::{print_json, print_row};

/// Shows a server's description. Connects to nothing.
pub fn run(setup: &Setup, name: &str, as_json: bool) -> Result<Exit, Fault> {
    let one = find(setup, name)?;
    let approvals = Approvals::load(&setup.config.config_root);
    let standing = standing(&one, &setup.config.settings, &approvals, &setup.config);
    let (shown, problem) = described_as(&one);
    if as_json {
        let value = json!({
            "name": name, "scope": one.place.scope().as_str(), "at": one.at, "config": shown, "error": problem,
            "approved": standing == Standing::Approved,
        });
        print_json(&value)?;
        return Ok(Exit::Success);
    }
    print_row(&format!("name    {name}"))?;
    print_row(&format!("scope   {}", one.place.scope().as_str()))?;
    print_row(&format!("from    {}", one.at))?;
    for (field, value) in shown.as_object().into_iter().flatten() {
        print_row(&format!("{field:<7} {}", plain(value)))?;
    }
    if let Some(problem) = problem {
        print_row(&format!("error   {problem}"))?;
    }
    if let Some(reason) = standing.reason(name) {
        print_row(&format!("status  disabled: {reason}"))?;
    }
    for other in described(setup).iter().filter(|other| other.name == name && other.at != one.at) {
        print_row(&format!("also    in {}, which does not count", other.at))?;
    }
    Ok(Exit::Success)
}

/// A description without secrets, and what is wrong with it.
pub fn described_as(one: &Described) -> (Value, Option<String>) {
    match parse_server(&one.name, &one.value) {
        Ok(config) => (config.shown, None),
        Err(error) => (shown(&one.value), Some(error.to_string())),
    }
}

/// A value for people: texts as they are, the rest as JSON; on one line, and nothing in it is obeyed by a terminal.
pub fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    qoder_types::display::escaped_line(&text)
}
