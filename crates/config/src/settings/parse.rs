//! Reading one layer: JSON with comments, strict otherwise. Errors show file, line and column; a duplicate key
//! is an error, because one of the two would be lost in silence.

use std::collections::BTreeMap;

use std::path::{Path, PathBuf};

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use qoder_files::read_regular;
use qoder_types::RuleSource;
use serde_json::{Map, Value};

use super::Layer;

/// The most bytes of a settings file.
const FILE_CAP: u64 = 4 * 1024 * 1024;

/// A layer that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The text is not JSON.
    #[error("{place}:{line}:{column}: {problem}")]
    Syntax {
        /// The file, or `--settings`.
        place: String,
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot read the settings file {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: String,
    },
    /// A value is not what its key takes.
    #[error("{place}: `{key}` {problem}")]
    Value {
        /// The file, or `--settings`.
        place: String,
        /// The key.
        key: String,
        /// What is wrong.
        problem: String,
    },
}

impl SettingsError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "settings_syntax",
            Self::Unreadable { .. } => "settings_unreadable",
            Self::Value { .. } => "settings_value",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => {
                "settings are JSON; comments are allowed, trailing commas and single quotes are not"
            }
            Self::Unreadable { .. } => "check the path and its permissions, or leave the file out",
            Self::Value { .. } => "correct the value, or remove the key to have its default",
        }
    }
}

/// A value that cannot be written into a settings file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The key does not take it.
    #[error(transparent)]
    Value(#[from] SettingsError),
    /// Only the user's own file may have the key.
    #[error("a project's settings cannot set it; use scope `user`")]
    OfProject,
}

impl ChangeError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Value(error) => error.code(),
            Self::OfProject => "settings_not_for_projects",
        }
    }

    /// What a person can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Value(error) => error.hint(),
            Self::OfProject => "set it in the user's settings",
        }
    }
}

/// Reads a layer's file; a file that is not there is no layer.
pub(super) fn read_file(
    source: RuleSource,
    path: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<Option<Layer>, SettingsError> {
    match read_bounded(path) {
        Ok(bytes) => read_bytes(source, Some(path), &bytes, environment).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(SettingsError::Unreadable { path: path.to_path_buf(), problem: error.to_string() }),
    }
}

/// Reads a file of JSON with comments as it is, no variable replaced; a file that is not there is `None`.
pub fn read_plain(path: &Path) -> Result<Option<Layer>, SettingsError> {
    read_file(RuleSource::ProjectSettings, path, &BTreeMap::new())
}

/// Reads JSON with comments as it is; errors name it `place`.
pub fn read_plain_text(place: &str, text: &str) -> Result<Layer, SettingsError> {
    let read = read_bytes(RuleSource::FlagSettings, None, text.as_bytes(), &BTreeMap::new());
    read.map_err(|error| match error {
        SettingsError::Syntax { line, column, problem, .. } => {
            SettingsError::Syntax { place: place.to_owned(), line, column, problem }
        }
        other @ (SettingsError::Unreadable { .. } | SettingsError::Value { .. }) => other,
    })
}

/// Whether a text can be read as a layer.
pub(super) fn check_text(text: &str) -> Result<(), SettingsError> {
    read_bytes(RuleSource::FlagSettings, None, text.as_bytes(), &BTreeMap::new()).map(drop)
}

/// Reads a regular file of a bounded size.
fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let (bytes, is_cut) = read_regular(path, None, FILE_CAP)?;
    if is_cut {
        return Err(std::io::Error::other("it is larger than 4 MiB"));
    }
    Ok(bytes)
}

/// Reads `--settings`: JSON that starts with `{`, or a path.
pub(super) fn read_flag(flag: &str, environment: &BTreeMap<String, String>) -> Result<Layer, SettingsError> {
    if flag.trim_start().starts_with('{') {
        return read_bytes(RuleSource::FlagSettings, None, flag.as_bytes(), environment);
    }
    let path = Path::new(flag);
    let bytes = read_bounded(path).map_err(|error| SettingsError::Unreadable {
        path: path.to_path_buf(),
        problem: error.to_string(),
    })?;
    read_bytes(RuleSource::FlagSettings, Some(path), &bytes, environment)
}

fn read_bytes(
    source: RuleSource,
    file: Option<&Path>,
    bytes: &[u8],
    environment: &BTreeMap<String, String>,
) -> Result<Layer, SettingsError> {
    let place = file.map_or_else(|| "--settings".to_owned(), |file| file.display().to_string());
    let syntax =
        |line, column, problem: String| SettingsError::Syntax { place: place.clone(), line, column, problem };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        syntax(line, 1, "the text is not UTF-8".to_owned())
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        ..ParseOptions::default()
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|error| syntax(error.line_display(), error.column_display(), error.kind().to_string()))?;
    let mut layer =
        Layer { source, file: file.map(Path::to_path_buf), value: Value::Null, lines: BTreeMap::new() };
    let Some(root) = &parsed.value else {
        layer.value = Value::Object(Map::new());
        return Ok(layer);
    };
    if root.as_object().is_none() {
        return Err(syntax(1, 1, "settings are one JSON object".to_owned()));
    }
    let mut reader = Reader { text, environment, lines: &mut layer.lines };
    let value = reader.value(root, &mut String::new()).map_err(|(at, problem)| {
        let (line, column) = position(text, at);
        syntax(line, column, problem)
    })?;
    layer.value = value;
    Ok(layer)
}

fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

struct Reader<'a> {
    text: &'a str,
    environment: &'a BTreeMap<String, String>,
    lines: &'a mut BTreeMap<String, u32>,
}

impl Reader<'_> {
    fn value(&mut self, node: &ast::Value<'_>, pointer: &mut String) -> Result<Value, (usize, String)> {
        let (line, _) = position(self.text, node.start());
        self.lines.insert(pointer.clone(), u32::try_from(line).unwrap_or(u32::MAX));
        let length = pointer.len();
        Ok(match node {
            // Servers and hooks have their own rules for variables, and what is shown of them has none replaced.
            ast::Value::StringLit(text)
                if ["/mcpServers/", "/hooks/"].iter().any(|group| pointer.starts_with(group)) =>
            {
                Value::String(text.value.to_string())
            }
            ast::Value::StringLit(text) => Value::String(expand(&text.value, self.environment)),
            ast::Value::NumberLit(number) => serde_json::from_str(number.value)
                .map_err(|_| (node.start(), format!("`{}` is not a number", number.value)))?,
            ast::Value::BooleanLit(boolean) => Value::Bool(boolean.value),
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::Array(array) => {
                let mut items = Vec::new();
                for (index, item) in array.elements.iter().enumerate() {
                    pointer.push_str(&format!("/{index}"));
                    items.push(self.value(item, pointer)?);
                    pointer.truncate(length);
                }
                Value::Array(items)
            }
            ast::Value::Object(object) => {
                let mut map = Map::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    if map.contains_key(name) {
                        return Err((property.start(), format!("the key `{name}` is a duplicate")));
                    }
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    let value = self.value(&property.value, pointer)?;
                    pointer.truncate(length);
                    map.insert(name.to_owned(), value);
                }
                Value::Object(map)
            }
        })
    }
}

/// Replaces `${NAME}` by the variable's value; an unset variable leaves the text as it is.
fn expand(text: &str, environment: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(end) = rest[start..].find('}') else { break };
        let name = &rest[start + 2..start + end];
        out.push_str(&rest[..start]);
        match environment.get(name) {
            Some(value) => out.push_str(value),
            None => out.push_str(&rest[start..=start + end]),
        }
        rest = &rest[start + end + 1..];
    }
    out.push_str(rest);
    out
}
