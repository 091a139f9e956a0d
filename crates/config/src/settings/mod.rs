//! Settings: layers of JSON with comments, merged from the user's file up to `--settings`. Objects merge field by
//! field, scalars of higher layers win, lists that exclude or grant are united. Every effective value knows its layer.

mod keys;
mod kinds;
mod limits;
mod merge;
mod parse;
mod rules;
pub mod variables;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qoder_types::RuleSource;
use serde_json::Value;

pub use keys::{KNOWN_KEYS, KnownKey, is_known as is_known_key};
pub use kinds::{Kind, age};
pub use parse::{ChangeError, SettingsError, read_plain, read_plain_text};
pub use rules::{GivenRules, collect_rules};
pub use write::{Change, WriteError, change, change_under, replace_file};

/// One layer as it was read.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Which layer.
    pub source: RuleSource,
    /// Its file; `None` for text given on the command line.
    pub file: Option<PathBuf>,
    /// Its content.
    pub value: Value,
    /// Lines of values, by JSON pointer.
    pub lines: BTreeMap<String, u32>,
}

impl Layer {
    /// How to name the layer to people.
    #[must_use]
    pub fn name(&self) -> String {
        self.file.as_ref().map_or_else(|| "--settings".to_owned(), |file| file.display().to_string())
    }

    /// The layer's name with the line of the value at a dotted path, when it has one.
    #[must_use]
    pub fn place(&self, path: &str) -> String {
        format!("{}{}", self.name(), self.lines_at(&[path]))
    }

    /// `:` and the line of the value at a dotted path, then at the names of members below it, which may hold dots.
    pub fn lines_at(&self, path: &[&str]) -> String {
        let escaped = |name: &&str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        let below: String = path.iter().skip(1).map(escaped).collect();
        let pointer = path.first().map(|path| pointer(path)).unwrap_or_default() + &below;
        self.lines.get(&pointer).map(|line| format!(":{line}")).unwrap_or_default()
    }
}

/// Where settings are looked for.
#[derive(Debug, Clone)]
pub struct Places {
    /// The configuration root.
    pub config_root: PathBuf,
    /// The project's root.
    pub project_root: PathBuf,
    /// Which files to read: `user`, `project`, `local`.
    pub sources: Vec<RuleSource>,
    /// False: project and local files are not read.
    pub trusted: bool,
    /// `--settings`: a path, or JSON that starts with `{`.
    pub flag: Option<String>,
    /// For `${NAME}` in values.
    pub environment: BTreeMap<String, String>,
}

/// All layers and what they come to.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
    /// The merged value.
    pub effective: Value,
    /// For people: unknown keys, values that a layer may not set.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads all layers.
    pub fn load(places: &Places) -> Result<Self, SettingsError> {
        let mut settings = Self { effective: Value::Object(serde_json::Map::new()), ..Self::default() };
        let flag =
            places.flag.as_deref().map(|flag| parse::read_flag(flag, &places.environment)).transpose()?;
        for source in [RuleSource::UserSettings, RuleSource::ProjectSettings, RuleSource::LocalSettings] {
            let own = source == RuleSource::UserSettings;
            if !places.sources.contains(&source) || !(own || places.trusted) {
                continue;
            }
            let file = file_of(places, source);
            let listed = settings.project_environment(flag.as_ref());
            let variables = if own {
                places.environment.clone()
            } else {
                variables::listed(&places.environment, &listed)
            };
            if let Some(layer) = parse::read_file(source, &file, &variables)? {
                if !own {
                    settings.warn_of_variables(&layer, &places.environment, &listed);
                }
                settings.add(layer, places)?;
            }
        }
        if let Some(flag) = flag {
            settings.add(flag, places)?;
        }
        Ok(settings)
    }

    /// The variables that files of the project may name: what the user's own settings and `--settings` list.
    fn project_environment(&self, flag: Option<&Layer>) -> Vec<String> {
        let own = self.layers.iter().filter(|layer| layer.source == RuleSource::UserSettings);
        let at = pointer(variables::PROJECT_ENVIRONMENT);
        let lists = own.chain(flag).filter_map(|layer| layer.value.pointer(&at)?.as_array());
        lists.flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Names the variables that a project's file would have had. Servers and hooks have their own rules.
    fn warn_of_variables(
        &mut self,
        layer: &Layer,
        environment: &BTreeMap<String, String>,
        listed: &[String],
    ) {
        let mut value = layer.value.clone();
        if let Some(map) = value.as_object_mut() {
            map.remove("mcpServers");
            map.remove("hooks");
        }
        let kept_back = variables::for_description(&value, environment, listed).1;
        let file = layer.name();
        self.warnings.extend(kept_back.iter().map(|name| variables::warning(&file, name)));
    }

    /// What `--settings` holds, when it was given.
    #[must_use]
    pub fn flag_layer(&self) -> Option<Value> {
        let flag = self.layers.iter().find(|layer| layer.source == RuleSource::FlagSettings);
        flag.map(|layer| layer.value.clone())
    }

    fn add(&mut self, mut layer: Layer, places: &Places) -> Result<(), SettingsError> {
        self.warnings.extend(keys::check(&layer));
        self.warnings.extend(limits::take_forbidden(&mut layer));
        kinds::check(&layer)?;
        self.warnings.extend(limits::confine_directories(
            &mut layer,
            &places.project_root,
            &places.environment,
        ));
        self.warnings.extend(limits::confine_times(&mut layer, &self.layers));
        merge::merge(&mut self.effective, &layer.value, "");
        self.layers.push(layer);
        Ok(())
    }

    /// The effective value at a dotted path such as `general.maxAttempts`.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.effective.pointer(&pointer(path))
    }

    /// The layer that a dotted path's value came from: the highest that sets it.
    #[must_use]
    pub fn origin(&self, path: &str) -> Option<&Layer> {
        let pointer = pointer(path);
        self.layers.iter().rev().find(|layer| layer.value.pointer(&pointer).is_some())
    }

    /// Text at a dotted path.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path).and_then(Value::as_str)
    }

    /// A truth value at a dotted path.
    #[must_use]
    pub fn flag(&self, path: &str, default: bool) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(default)
    }

    /// A list of texts at a dotted path; a single text counts as a list of one.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        match self.get(path) {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }
}

/// The file of a layer.
#[must_use]
pub fn file_of(places: &Places, source: RuleSource) -> PathBuf {
    let project = |name: &str| places.project_root.join(".qoder").join(name);
    match source {
        RuleSource::ProjectSettings => project("settings.json"),
        RuleSource::LocalSettings => project("settings.local.json"),
        RuleSource::UserSettings
        | RuleSource::FlagSettings
        | RuleSource::CliArg
        | RuleSource::Command
        | RuleSource::Session => places.config_root.join("settings.json"),
    }
}

/// Whether a value may be written at a dotted path, into a file of the project or the user's own.
///
/// # Errors
/// When the key does not take the value, or a project cannot set it.
pub fn check_change(key: &str, value: &Value, of_project: bool) -> Result<(), ChangeError> {
    let nested = key.rsplit('.').fold(value.clone(), |below, name| serde_json::json!({ name: below }));
    if value.is_null() {
        return Ok(());
    }
    let source = if of_project { RuleSource::LocalSettings } else { RuleSource::UserSettings };
    let mut layer = Layer { source, file: None, value: nested, lines: BTreeMap::new() };
    kinds::check(&layer)?;
    match limits::take_forbidden(&mut layer).into_iter().next() {
        Some(_) => Err(ChangeError::OfProject),
        None => Ok(()),
    }
}

/// True for names such as `apiKey` and `Authorization`; the name of a variable is no secret.
#[must_use]
pub fn holds_secret(name: &str) -> bool {
    let folded = name.to_lowercase();
    let telling = ["key", "authorization", "token", "secret", "password", "cookie"];
    !folded.ends_with("env") && telling.iter().any(|word| folded.contains(word))
}

fn pointer(path: &str) -> String {
    path.split('.').fold(String::new(), |pointer, part| pointer + "/" + part)
}

/// Reads what the person alone has written, the user's file and `--settings`: for decisions that come before a
/// project's files may be read.
pub fn load_personal(
    config_root: &Path,
    flag: Option<&str>,
    environment: &BTreeMap<String, String>,
) -> Result<Settings, SettingsError> {
    Settings::load(&Places {
        config_root: config_root.to_path_buf(),
        project_root: PathBuf::new(),
        sources: vec![RuleSource::UserSettings],
        trusted: false,
        flag: flag.map(str::to_owned),
        environment: environment.clone(),
    })
}
