//! Plugins of a session that runs: what each brings, and reading everything anew. What was read takes effect with the next
//! step: agents, skills, commands, hooks and servers of plugins are replaced together.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_protocol::RequestError;
use serde_json::{Value, json};

use super::RequestContext;
use qoder_config::extensions::Loaded;
use qoder_config::plugins::Plugin;
use qoder_config::plugins::error_rows;
use qoder_config::sources::{Origin, Problem};
use qoder_types::server::Scope;

impl RequestContext {
    /// The plugins with what each brings and what is wrong with it.
    pub(super) fn plugins(&self) -> Vec<Value> {
        let loaded = self.engine.common.extensions.current();
        let servers = self.servers().summary();
        loaded.plugins.iter().map(|plugin| row(plugin, &loaded, &servers)).collect()
    }

    /// Reads settings, plugins and everything that files define again, and puts it in place of what the session has. When
    /// the settings can no longer be read nothing changes.
    pub(super) async fn reload_plugins(&self) -> Result<Value, RequestError> {
        let wrong = |error: crate::setup::SetupError| {
            RequestError::Refused(format!("reload_plugins: {error}. {}", error.hint()))
        };
        let after = Arc::new(self.setup().with_flag_settings(&json!({})).map_err(wrong)?);
        let loaded = after.extensions(self.callbacks.agents.clone()).map_err(wrong)?;
        let errors = error_rows(&loaded.problems).len();
        let engine = &self.engine;
        engine.common.extensions.replace(loaded);
        after.plugins().plugins.iter().for_each(Plugin::prepare_data);
        let (wanted, refused) = after.servers_of_plugins(&self.callbacks.server_flags);
        let replaced = self.servers().replace_scope(Scope::Plugin, wanted, refused).await;
        engine.gate.replace_rules(after.rules_with(self.servers()));
        self.go_on_with(after);
        Ok(json!({
            "commands": self.commands(), "agents": self.agents(), "plugins": self.plugins(),
            "mcpServers": self.servers().rows(), "error_count": errors + replaced.errors.len(),
        }))
    }
}

fn row(plugin: &Plugin, loaded: &Loaded, servers: &[Value]) -> Value {
    let mut row = plugin.row();
    let start = format!("plugin_{}_", plugin.name);
    let is_own = |server: &&Value| server["name"].as_str().is_some_and(|name| name.starts_with(&start));
    let own = |problem: &&Problem| problem.origin == Origin::Plugin(plugin.name.clone());
    let mut counts: BTreeMap<&str, usize> = loaded.brought_by(plugin).into_iter().collect();
    counts.insert("mcpServers", servers.iter().filter(is_own).count());
    row["description"] = json!(plugin.description);
    row["parts"] = json!(counts);
    row["errors"] = loaded.problems.iter().filter(own).map(|problem| json!(problem.to_string())).collect();
    row
}
