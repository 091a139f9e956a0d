//! `serve doctor`: tries everything that a server needs, and says what to do about what does not work.

use qoder_models::resolve;

use super::postgres_checks;
use crate::config::{Config, ContainerConfig};
use crate::drive::RuntimeSettings;
use crate::environment::ContainerEngine;
use crate::secrets::{MasterKey, MasterSource};
use crate::serve::{Foundation, Use};
use crate::store::Objects;

/// What was tried, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// What was tried.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What to do, when it does not work.
    pub problem: Option<String>,
}

impl Checked {
    pub(super) fn good(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, found: found.into(), problem: None }
    }

    pub(super) fn bad(what: &'static str, found: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { what, found: found.into(), problem: Some(problem.into()) }
    }
}

/// Tries everything that a server needs.
pub async fn doctor(config: &Config) -> Vec<Checked> {
    // The data directory comes first: a key that is made belongs into it.
    let foundation = Foundation::lay(config, Use::Command).await;
    let mut checked = vec![key(config)];
    match foundation {
        Ok(foundation) => {
            checked.push(Checked::good("data directory", config.data_dir.display().to_string()));
            checked.push(match foundation.store.db.schema().await {
                Ok(version) => Checked::good("schema", format!("version {version}")),
                Err(error) => Checked::bad("schema", error.to_string(), error.hint()),
            });
            checked.push(match foundation.store.db.check().await {
                Ok(found) if found.is_empty() => Checked::good("database", database_found(config)),
                Ok(found) => Checked::bad("database", found.join("; "), "restore a backup"),
                Err(error) => Checked::bad("database", error.to_string(), error.hint()),
            });
            checked.push(match foundation.store.db.probe().await {
                Ok(()) => Checked::good("writing", "the database can be written"),
                Err(error) => Checked::bad("writing", error.to_string(), error.hint()),
            });
            checked.push(blobs(&foundation).await);
            if let Some(postgres) = &foundation.postgres {
                checked.extend(postgres_checks::check(postgres).await);
            }
            checked.push(match foundation.store.db.list_tokens().await {
                Ok(tokens) => tokens_found(tokens.len()),
                Err(error) => Checked::bad("tokens", error.to_string(), error.hint()),
            });
        }
        Err(error) => checked.push(Checked::bad("data directory", error.to_string(), error.hint())),
    }
    checked.extend(objects(config).await);
    checked.push(workspaces(config));
    match &config.container {
        None => checked.push(sandbox(config)),
        Some(container) => checked.push(containers(config, container).await),
    }
    checked.push(model(config));
    checked
}

fn tokens_found(count: usize) -> Checked {
    if count == 0 {
        let problem = "create one with `qodercli serve token create --user NAME`";
        return Checked::bad("tokens", "there are none, so no one can call the server", problem);
    }
    Checked::good("tokens", format!("{count}"))
}

fn database_found(config: &Config) -> String {
    match &config.database_url {
        None => "no damage found, SQLite with WAL and full sync".to_owned(),
        Some(url) => format!("no gap found, {}", url.describe()),
    }
}

fn key(config: &Config) -> Checked {
    let Some(source) = &config.master_key else {
        let found = "the database, beside what it seals; set QODER_MASTER_KEY or `master_key_file` to keep them apart";
        return Checked::good("master key", found);
    };
    let place = source.describe();
    match MasterKey::load(source) {
        Ok(_) => match source {
            MasterSource::File(path) if path.starts_with(&config.data_dir) => {
                Checked::good("master key", format!("{place}; a backup needs it, too"))
            }
            MasterSource::File(_) | MasterSource::Variable(_) | MasterSource::Command(_) => {
                Checked::good("master key", place)
            }
        },
        Err(error) => Checked::bad("master key", error.to_string(), error.hint()),
    }
}

async fn blobs(foundation: &Foundation) -> Checked {
    let tenant = crate::model::ids::TenantId([0; 16]);
    let put = foundation.store.blobs.put(tenant, b"doctor".to_vec()).await;
    let read = match put {
        Ok(name) => foundation.store.blobs.get(tenant, &name).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(Some(content)) if content == b"doctor" => Checked::good("blobs", "can be written and read"),
        Ok(_) => Checked::bad("blobs", "what was written cannot be read", "check the disk"),
        Err(error) => Checked::bad("blobs", error.to_string(), error.hint()),
    }
}

/// The object store, where one is configured.
async fn objects(config: &Config) -> Option<Checked> {
    let url = config.object_store.as_ref()?;
    let tried = match Objects::connect(url, &config.environment) {
        Ok(objects) => objects.try_out().await,
        Err(error) => Err(error),
    };
    Some(match tried {
        Ok(()) => Checked::good("object store", format!("{} can be written and read", url.describe())),
        Err(error) => Checked::bad("object store", error.to_string(), error.hint()),
    })
}

/// What an operator of several nodes is to know about where workspaces are.
fn reach(config: &Config) -> &'static str {
    match (&config.database_url, &config.object_store) {
        (Some(_), None) if config.are_workspaces_named => ", which every node has to mount",
        (Some(_), None) => {
            "; warning: on this machine alone. A session that continues on another node has an empty workspace there. Set \
             `--object-store`, or `--workspaces` to a folder that every node mounts"
        }
        (None, None) | (_, Some(_)) => "",
    }
}

fn workspaces(config: &Config) -> Checked {
    let root = &config.workspaces;
    let trial = root.join(format!("doctor-{}", std::process::id()));
    let made = std::fs::create_dir_all(&trial).and_then(|()| std::fs::remove_dir(&trial));
    match made {
        Ok(()) => Checked::good("workspaces", format!("{}{}", root.display(), reach(config))),
        Err(error) => {
            Checked::bad("workspaces", error.to_string(), "check the permissions of the data directory")
        }
    }
}

/// Whether commands can be confined here; without that no command of a session runs.
fn sandbox(config: &Config) -> Checked {
    let tried = qoder_runtime::setup::sandbox::try_isolated(&config.workspaces);
    match tried.confined_by {
        Some(confined_by) => Checked::good("sandbox", format!("confined by {confined_by}")),
        None => Checked::bad(
            "sandbox",
            format!("cannot be enforced: {}", tried.problems.join("; ")),
            "sessions cannot use Bash here; run `qodercli sandbox status` to see why",
        ),
    }
}

/// Whether a container can be started in which tools run.
async fn containers(config: &Config, container: &ContainerConfig) -> Checked {
    let engine = ContainerEngine::new(container.clone(), &config.environment, &config.data_dir);
    let version = match engine.version().await {
        Ok(version) => version,
        Err(error) => return Checked::bad("containers", error.to_string(), error.hint()),
    };
    let root = config.workspaces.join(format!("doctor-{}", std::process::id()));
    let tried = engine.try_tools(&root).await;
    // An empty folder that stays harms no one.
    drop(std::fs::remove_dir_all(&root));
    match tried {
        Ok(()) => Checked::good("containers", format!("{version}, image {}", container.image)),
        Err(error) => {
            let problem =
                "check the image, `container` of the configuration, and that this program runs in the image";
            Checked::bad("containers", format!("{version}, image {}: {error}", container.image), problem)
        }
    }
}

fn model(config: &Config) -> Checked {
    let settings = RuntimeSettings {
        environment: config.environment.clone(),
        config_root: config.runtime_root(),
        settings: config.settings.clone(),
        is_offline: false,
        credit_usd: config.credit_usd,
    };
    let resolved = settings.model_options("auto").map_err(|error| error.to_string());
    match resolved.and_then(|options| resolve(&options).map_err(|error| error.to_string())) {
        Ok(model) => {
            let facts = model.facts();
            Checked::good("model", format!("`auto` is {} of {}", facts.name, facts.provider))
        }
        Err(error) => {
            Checked::bad("model", error, "check `settings` of the configuration and the environment")
        }
    }
}
