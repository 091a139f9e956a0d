//! `qodercli login` and `logout`: API keys for people who do not want them in the environment. A key never is an argument.

use std::collections::BTreeMap;
use std::io::Read;

use qoder_config::home;
use qoder_runtime::setup::{Options, Setup};

use crate::exit::{Exit, Fault};
use crate::keys::{self, KeyError};
use crate::screen;

/// The most bytes that are read.
const LONGEST: u64 = 8 * 1024;

/// Reads a key from stdin and stores it.
pub fn store(provider: &str, environment: BTreeMap<String, String>) -> Result<Exit, Fault> {
    let root = home::config_root(&environment);
    let setup = Setup::prepare(Options { environment, ..Options::default() })?;
    let named = |name: &str| setup.model_options().settings.providers.get(name)?.api_key_env.clone();
    let variable = keys::variable(provider, named).map_err(|error| fault(&error))?;
    let key = if screen::stdin_is_terminal() { screen::typed_secret("key: ")? } else { piped()? };
    let place = keys::store(&root, &variable, &key).map_err(|error| fault(&error))?;
    screen::print_note(&format!(
        "stored the key for {provider} in {place}; {variable} in the environment counts before it"
    ));
    Ok(Exit::Success)
}

/// Removes all stored keys.
pub fn remove(environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    let count = keys::remove_all(&home::config_root(environment)).map_err(|error| fault(&error))?;
    screen::print_note(&format!("removed {count} stored keys"));
    Ok(Exit::Success)
}

fn piped() -> Result<String, Fault> {
    let mut text = String::new();
    std::io::stdin()
        .take(LONGEST)
        .read_to_string(&mut text)
        .map_err(|error| Fault::input(format!("the key cannot be read: {error}"), "give it on stdin"))?;
    Ok(text)
}

fn fault(error: &KeyError) -> Fault {
    Fault::input(error.to_string(), "`qodercli login --help` explains it")
}
