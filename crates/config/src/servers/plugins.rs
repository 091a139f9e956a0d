//! The servers of plugins: `.mcp.json` inside a plugin, or the manifest. Each is named after its plugin, so that no rule
//! about another server is ever about one of these, and may name the plugin's folders.

use std::collections::BTreeMap;

use qoder_types::server::{ServerConfig, Transport};

use super::files::{Described, KEY, Place, of_layer};
use crate::plugins::Plugin;
use crate::plugins::manifest::line_and_text;
use crate::server_config::{ConfigError, expand_server, parse_server};
use crate::settings::read_plain;
use crate::sources::{Origin, Problem};

/// What a plugin describes. A description that makes no sense is among the problems, and shown as failed.
pub fn of_plugin(plugin: &Plugin, problems: &mut Vec<Problem>) -> Vec<Described> {
    let mut all = Vec::new();
    for file in &plugin.parts.servers {
        let mut problem = |line, text: String| {
            let origin = Origin::Plugin(plugin.name.clone());
            problems.push(Problem { path: file.clone(), line, text, origin });
        };
        let layer = match read_plain(file) {
            Ok(Some(layer)) => layer,
            Ok(None) => continue,
            Err(error) => {
                let (line, text) = line_and_text(error);
                problem(line, text);
                continue;
            }
        };
        if layer.value.get(KEY).is_none() {
            problem(Some(1), format!("has no object `{KEY}` with a server under each name"));
            continue;
        }
        let servers = match of_layer(&layer, Place::Plugin) {
            Ok(servers) => servers,
            Err(_) => {
                problem(line_of(&layer.lines_at(&[KEY])), format!("`{KEY}` must be an object"));
                continue;
            }
        };
        for mut one in servers {
            let line = line_of(&layer.lines_at(&[KEY, &one.name]));
            one.name = format!("plugin_{}_{}", plugin.name, one.name);
            one.variables = plugin.variables().to_vec();
            match parse_server(&one.name, &one.value) {
                Err(error) => problem(line, format!("{error}; {}", error.hint())),
                Ok(config) if matches!(config.transport, Transport::Sdk { .. }) => {
                    problem(
                        line,
                        format!("MCP server `{}`: a plugin cannot bring a server of type sdk", one.name),
                    );
                }
                Ok(_) => {}
            }
            all.push(one);
        }
    }
    all
}

fn line_of(place: &str) -> Option<u64> {
    place.trim_start_matches(':').parse().ok()
}

/// A description with the values of variables in it. The programs of a plugin find its folders in their environment too.
pub(super) fn expanded(
    config: ServerConfig,
    one: &Described,
    environment: &BTreeMap<String, String>,
) -> Result<ServerConfig, ConfigError> {
    if one.variables.is_empty() {
        return expand_server(config, &one.name, environment);
    }
    let mut all = environment.clone();
    let own = one.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    all.extend(own.clone());
    let mut config = expand_server(config, &one.name, &all)?;
    if let Transport::Stdio { env, .. } = &mut config.transport {
        for (name, value) in own {
            env.entry(name).or_insert(value);
        }
    }
    Ok(config)
}
