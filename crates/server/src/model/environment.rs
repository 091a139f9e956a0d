//! Environments: where the tools of a session run and what they reach.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::fields::{Change, Fields};
use super::ids::EnvironmentId;
use super::metadata::{self, EmptyText, Metadata};
use super::problem::Problem;
use super::refusal::Refusal;
use super::time::Time;
use super::tools::is_hostname;

const LONGEST_NAME: usize = 256;
const LONGEST_DESCRIPTION: usize = 4_096;
const LONGEST_SCRIPT: usize = 64 * 1024;
const MOST_HOSTS: usize = 256;
const MOST_PACKAGES: usize = 256;
const MANAGERS: [&str; 6] = ["apt", "cargo", "gem", "go", "npm", "pip"];

/// What tools may reach over the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Networking {
    /// Any host.
    Unrestricted,
    /// These hosts.
    Limited {
        /// Host names; `*.` in front means every host below.
        allowed_hosts: Vec<String>,
        /// Also the agent's MCP servers.
        allow_mcp_servers: bool,
        /// Also the public registries of packages.
        allow_package_managers: bool,
    },
}

/// Who provides an environment, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EnvironmentConfig {
    /// This server.
    Cloud {
        /// What it reaches.
        networking: Networking,
        /// Packages by their manager.
        packages: Map<String, Value>,
        /// Run before the first turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup_script: Option<String>,
    },
    /// Workers of the owner.
    SelfHosted {
        /// Run before the first turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup_script: Option<String>,
    },
}

impl EnvironmentConfig {
    fn kind(&self) -> &'static str {
        match self {
            Self::Cloud { .. } => "cloud",
            Self::SelfHosted { .. } => "self_hosted",
        }
    }
}

/// What an environment is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentBody {
    /// For people.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: Option<String>,
    /// Who provides it.
    pub config: EnvironmentConfig,
    /// `organization` or `account`.
    #[serde(default)]
    pub scope: Option<String>,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
}

impl EnvironmentBody {
    /// Reads the body of a creation.
    ///
    /// # Errors
    /// When a field is missing or cannot be used.
    pub fn create(body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let default = json!({ "type": "cloud" });
        Ok(Self {
            name: fields.text("name", 1..=LONGEST_NAME)?.to_owned(),
            description: fields.optional_text("description", 0..=LONGEST_DESCRIPTION)?.map(str::to_owned),
            config: read_config(fields.get("config").unwrap_or(&default), None)?,
            scope: fields.word("scope", &["organization", "account"])?.map(str::to_owned),
            metadata: metadata::read(fields.get("metadata").unwrap_or(&Value::Null))?,
        })
    }

    /// The environment after an update.
    ///
    /// # Errors
    /// When a field cannot be used, or the type of the configuration would change.
    pub fn updated(&self, body: &Value) -> Result<Self, Problem> {
        let fields = Fields::of_body(body)?;
        let mut environment = self.clone();
        match fields.change("name") {
            Change::Keep => {}
            Change::Clear => return Err(Problem::field("name", "cannot be cleared")),
            Change::Set(_) => environment.name = fields.text("name", 1..=LONGEST_NAME)?.to_owned(),
        }
        if fields.change("description") != Change::Keep {
            let description = fields.optional_text("description", 0..=LONGEST_DESCRIPTION)?;
            environment.description = description.map(str::to_owned);
        }
        if let Change::Set(config) = fields.change("config") {
            environment.config = read_config(config, Some(&self.config))?;
        }
        if let Some(scope) = fields.word("scope", &["organization", "account"])? {
            environment.scope = Some(scope.to_owned());
        }
        if let Change::Set(patch) = fields.change("metadata") {
            environment.metadata = metadata::patched(&self.metadata, patch, EmptyText::Removes)?;
        }
        Ok(environment)
    }
}

fn read_config(value: &Value, before: Option<&EnvironmentConfig>) -> Result<EnvironmentConfig, Problem> {
    let fields = Fields::of(value, "config")?;
    let read = || {
        let kind = fields.word("type", &["cloud", "self_hosted"])?;
        let kind = kind.or(before.map(EnvironmentConfig::kind)).unwrap_or("cloud");
        if let Some(before) = before.filter(|before| before.kind() != kind) {
            let problem =
                format!("is `{kind}`, and the environment is `{}`; create another one", before.kind());
            return Err(Problem::field("type", problem).with_code("invalid_config_type_change"));
        }
        let (mut networking, mut packages, mut script) = match before {
            Some(EnvironmentConfig::Cloud { networking, packages, setup_script }) => {
                (networking.clone(), packages.clone(), setup_script.clone())
            }
            Some(EnvironmentConfig::SelfHosted { setup_script }) => {
                (Networking::Unrestricted, no_packages(), setup_script.clone())
            }
            None => (Networking::Unrestricted, no_packages(), None),
        };
        if fields.change("setup_script") != Change::Keep {
            script = fields.optional_text("setup_script", 0..=LONGEST_SCRIPT)?.map(str::to_owned);
            script = script.filter(|script| !script.is_empty());
        }
        if kind == "self_hosted" {
            return Ok(EnvironmentConfig::SelfHosted { setup_script: script });
        }
        match fields.change("networking") {
            Change::Keep => {}
            Change::Clear => networking = Networking::Unrestricted,
            Change::Set(value) => {
                networking = read_networking(value).map_err(|problem| problem.inside("networking"))?;
            }
        }
        match fields.change("packages") {
            Change::Keep => {}
            Change::Clear => packages = no_packages(),
            Change::Set(value) => {
                packages = read_packages(value).map_err(|problem| problem.inside("packages"))?;
            }
        }
        let has_packages = packages.values().any(|list| list.as_array().is_some_and(|list| !list.is_empty()));
        if let Networking::Limited { allow_package_managers: false, .. } = networking
            && has_packages
        {
            let problem = "need `networking.allow_package_managers` to be true where networking is limited";
            return Err(Problem::field("packages", problem));
        }
        Ok(EnvironmentConfig::Cloud { networking, packages, setup_script: script })
    };
    read().map_err(|problem: Problem| problem.inside("config"))
}

fn no_packages() -> Map<String, Value> {
    MANAGERS.iter().map(|manager| ((*manager).to_owned(), json!([]))).collect()
}

fn read_networking(value: &Value) -> Result<Networking, Problem> {
    let fields = Fields::of_item(value)?;
    let accepted = ["unrestricted", "limited", "allowed_hosts", "allowlist"];
    match fields.word("type", &accepted)? {
        Some("unrestricted") => Ok(Networking::Unrestricted),
        Some(_) => {
            let allowed_hosts = fields.texts("allowed_hosts", MOST_HOSTS)?;
            let is_host = |host: &&String| is_hostname(host.strip_prefix("*.").unwrap_or(host));
            if let Some(host) = allowed_hosts.iter().find(|host| !is_host(host)) {
                return Err(Problem::field(
                    "allowed_hosts",
                    format!("has `{host}`, which is not a host name"),
                ));
            }
            Ok(Networking::Limited {
                allowed_hosts,
                allow_mcp_servers: fields.flag("allow_mcp_servers")?.unwrap_or(false),
                allow_package_managers: fields.flag("allow_package_managers")?.unwrap_or(false),
            })
        }
        None => Err(Problem::field("type", "is required")),
    }
}

fn read_packages(value: &Value) -> Result<Map<String, Value>, Problem> {
    let fields = Fields::of_item(value)?;
    fields.word("type", &["packages"])?;
    let mut packages = Map::new();
    for manager in MANAGERS {
        let names = fields.texts(manager, MOST_PACKAGES)?;
        if let Some(wrong) = names.iter().find(|name| name.is_empty() || name.starts_with('-')) {
            return Err(Problem::field(
                manager,
                format!("has `{wrong}`, which is not the name of a package"),
            ));
        }
        packages.insert(manager.to_owned(), json!(names));
    }
    Ok(packages)
}

/// An environment with what is beside its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The environment.
    pub id: EnvironmentId,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
    /// When it was archived.
    pub archived_at: Option<Time>,
    /// What it is made of.
    pub body: EnvironmentBody,
}

impl EnvironmentBody {
    /// What is run in a session of it before the session first runs: its packages are installed into the session's home, then its
    /// script runs. None when there is nothing to set up.
    #[must_use]
    pub fn setup(&self) -> Option<String> {
        self.script(&[
            ("pip", "PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --user --quiet"),
            ("npm", "npm install --global --no-fund --no-audit --loglevel=error --prefix \"$HOME/.local\""),
            ("cargo", "cargo install --quiet --root \"$HOME/.local\""),
            ("gem", "gem install --quiet --no-document --user-install --bindir \"$HOME/.local/bin\""),
            ("go", "GOBIN=\"$HOME/.local/bin\" go install"),
        ])
    }

    /// The same for an image, in which everything is installed for all.
    #[must_use]
    pub fn image_setup(&self) -> Option<String> {
        let apt = "export DEBIAN_FRONTEND=noninteractive; apt-get update --quiet && apt-get install --quiet --yes \
                   --no-install-recommends";
        self.script(&[
            ("apt", apt),
            ("pip", "PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --quiet"),
            ("npm", "npm install --global --no-fund --no-audit --loglevel=error"),
            ("cargo", "cargo install --quiet --root /usr/local"),
            ("gem", "gem install --quiet --no-document"),
            ("go", "GOBIN=/usr/local/bin go install"),
        ])
    }

    /// Lines that install packages by these commands, then the script of the environment.
    fn script(&self, installers: &[(&str, &str)]) -> Option<String> {
        let EnvironmentConfig::Cloud { packages, setup_script, .. } = &self.config else { return None };
        let mut lines = Vec::new();
        for (manager, install) in installers {
            let names = packages.get(*manager).and_then(Value::as_array).into_iter().flatten();
            let names: Vec<String> = names.filter_map(Value::as_str).map(quoted).collect();
            if !names.is_empty() {
                lines.push(format!("{install} {} || exit", names.join(" ")));
            }
        }
        lines.extend(setup_script.clone().filter(|script| !script.trim().is_empty()));
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

impl EnvironmentBody {
    /// True when workers of the owner run the tools of its sessions.
    #[must_use]
    pub fn is_self_hosted(&self) -> bool {
        matches!(self.config, EnvironmentConfig::SelfHosted { .. })
    }
}

/// A word that bash takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

impl Environment {
    /// The next body of the environment; `None` when the change changes nothing.
    ///
    /// # Errors
    /// When the environment is archived, or the change is refused.
    pub fn changed(
        &self,
        change: impl FnOnce(&Self) -> Result<EnvironmentBody, Refusal>,
    ) -> Result<Option<EnvironmentBody>, Refusal> {
        if self.archived_at.is_some() {
            let message = format!("The environment `{}` is archived and cannot be changed.", self.id);
            return Err(Refusal::Conflict { message, code: Some("environment_archived") });
        }
        let body = change(self)?;
        Ok((body != self.body).then_some(body))
    }

    /// Why an environment that sessions use is not deleted.
    #[must_use]
    pub fn in_use(&self) -> Refusal {
        Refusal::conflict(format!(
            "Sessions use the environment `{}`. Archive or delete them first, or archive it.",
            self.id
        ))
    }
}

/// An environment as clients read it.
#[must_use]
pub fn view(environment: &Environment) -> Value {
    let body = &environment.body;
    let config = match &body.config {
        EnvironmentConfig::Cloud { networking, packages, setup_script } => {
            let mut packages = Value::Object(packages.clone());
            packages["type"] = json!("packages");
            let mut config = json!({ "type": "cloud", "networking": networking, "packages": packages });
            if let Some(script) = setup_script {
                config["setup_script"] = json!(script);
            }
            config
        }
        EnvironmentConfig::SelfHosted { setup_script: Some(script) } => {
            json!({ "type": "self_hosted", "setup_script": script })
        }
        EnvironmentConfig::SelfHosted { setup_script: None } => json!({ "type": "self_hosted" }),
    };
    json!({
        "id": environment.id, "type": "environment", "name": body.name, "description": body.description,
        "config": config, "scope": body.scope.as_deref().unwrap_or("organization"), "metadata": body.metadata,
        "created_at": environment.created_at, "updated_at": environment.updated_at,
        "archived_at": environment.archived_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(config: &Value) -> Result<EnvironmentBody, Problem> {
        EnvironmentBody::create(&json!({ "name": "e", "config": config }))
    }

    #[test]
    fn older_forms_of_networking_are_read_and_a_bare_text_is_not() {
        for kind in ["limited", "allowed_hosts", "allowlist"] {
            let networking = json!({ "type": kind, "allowed_hosts": ["a.example.com", "*.b.org"] });
            let environment = create(&json!({ "type": "cloud", "networking": networking })).unwrap();
            assert!(serde_json::to_string(&environment.config).unwrap().contains("\"limited\""));
        }
        for (networking, field) in [
            (json!("limited"), "config.networking"),
            (json!({}), "config.networking.type"),
            (json!({ "type": "limited", "allowed_hosts": ["https://x"] }), "config.networking.allowed_hosts"),
            (json!({ "type": "limited", "allowed_hosts": "x" }), "config.networking.allowed_hosts"),
        ] {
            let problem = create(&json!({ "type": "cloud", "networking": networking })).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(field), "{networking}");
        }
        assert_eq!(create(&json!("cloud")).unwrap_err().field.as_deref(), Some("config"));
    }

    #[test]
    fn packages_need_their_registries() {
        let config = |allow: bool| {
            json!({ "type": "cloud", "packages": { "pip": ["pandas==2"] },
                "networking": { "type": "limited", "allowed_hosts": [], "allow_package_managers": allow } })
        };
        assert!(create(&config(true)).is_ok());
        assert_eq!(create(&config(false)).unwrap_err().field.as_deref(), Some("config.packages"));
    }

    #[test]
    fn an_update_keeps_the_type_and_what_it_does_not_name() {
        let before = create(&json!({ "type": "cloud", "packages": { "npm": ["left-pad"] } })).unwrap();
        let problem = before.updated(&json!({ "config": { "type": "self_hosted" } })).unwrap_err();
        assert_eq!(problem.code, Some("invalid_config_type_change"));
        let after =
            before.updated(&json!({ "description": "", "config": { "setup_script": "make" } })).unwrap();
        assert_eq!(after.description.as_deref(), Some(""));
        let EnvironmentConfig::Cloud { packages, setup_script, .. } = &after.config else { panic!() };
        assert_eq!((&packages["npm"], setup_script.as_deref()), (&json!(["left-pad"]), Some("make")));
        assert_eq!(after.updated(&json!({ "description": null })).unwrap().description, None);
    }

    #[test]
    fn every_list_of_packages_is_shown() {
        let environment = Environment {
            id: EnvironmentId([2; 16]),
            created_at: Time(0),
            updated_at: Time(0),
            archived_at: None,
            body: create(&json!({})).unwrap(),
        };
        let shown = view(&environment);
        for manager in MANAGERS {
            assert_eq!(shown["config"]["packages"][manager], json!([]));
        }
        assert_eq!(shown["config"]["networking"], json!({ "type": "unrestricted" }));
    }

    #[test]
    fn packages_are_installed_into_the_home_before_the_script_runs() {
        let body = |config: Value| EnvironmentBody::create(&json!({ "name": "e", "config": config }));
        let config = json!({ "type": "cloud", "setup_script": "make", "packages": { "pip": ["pandas==2.0", "it's"],
            "npm": ["left-pad@1"], "go": ["example.com/tool@latest"] } });
        let script = body(config).unwrap().setup().unwrap();
        let lines: Vec<&str> = script.lines().collect();
        assert_eq!(
            lines[0],
            "PIP_BREAK_SYSTEM_PACKAGES=1 python3 -m pip install --user --quiet 'pandas==2.0' 'it'\\''s' || exit"
        );
        assert!(lines[1].starts_with("npm install --global") && lines[1].ends_with("'left-pad@1' || exit"));
        assert!(lines[2].contains("go install") && lines[3] == "make");
        assert_eq!(body(json!({ "type": "cloud" })).unwrap().setup(), None);
        assert!(body(json!({ "type": "cloud", "packages": { "gem": ["--help"] } })).is_err(), "an option");
        let config = json!({ "type": "cloud", "packages": { "apt": ["jq=1.6"], "pip": ["six"] } });
        let environment = body(config).unwrap();
        let image = environment.image_setup().unwrap();
        let lines: Vec<&str> = image.lines().collect();
        assert!(lines[0].contains("apt-get install") && lines[0].ends_with("'jq=1.6' || exit"), "{image}");
        assert!(lines[1].contains("pip install --quiet 'six'") && !lines[1].contains("--user"), "{image}");
        assert!(!environment.setup().unwrap().contains("apt"), "not without a container");
    }
}
