//! Reading a plugin's folder: its manifest `.qoder-plugin/plugin.json`, if it has one, and where its parts lie. Every path
//! stays inside the folder; an error in one part is reported with its line, and the others are used.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use super::{Plugin, PluginParts};
use crate::settings::{Layer, SettingsError, read_plain};
use crate::sources::{Origin, Problem};

/// The manifest, inside the plugin's folder.
const MANIFEST: &str = ".qoder-plugin/plugin.json";
/// The longest name.
const LONGEST_NAME: usize = 64;
/// Fields that are texts and need no more reading.
const TEXTS: [&str; 5] = ["version", "description", "homepage", "license", "$schema"];
/// Fields that may be a text or more than that.
const LOOSE: [&str; 3] = ["author", "repository", "keywords"];
/// Fields that say where parts lie.
const PLACES: [&str; 6] = ["commands", "agents", "skills", "hooks", "outputStyles", "mcpServers"];

/// What is wrong with a name, if something is.
pub(crate) fn name_problem(name: &str) -> Option<String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let starts = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    let good = starts && name.len() <= LONGEST_NAME && name.chars().all(is_plain);
    (!good).then(|| {
        let shown: String = name.chars().take(LONGEST_NAME + 1).collect();
        format!(
            "{shown:?} cannot be the name of a plugin; write letters, digits and `-`, such as `my-plugin`, at most \
             {LONGEST_NAME} of them"
        )
    })
}

/// What a server or a part is called in problems before the plugin's own name is known.
fn provisional(folder: &Path) -> String {
    folder
        .file_name()
        .map_or_else(|| folder.to_string_lossy().into_owned(), |name| name.to_string_lossy().into_owned())
}

/// Reads the plugin in a folder. What is wrong with a part of it is added to `problems`.
///
/// # Errors
/// When the plugin as a whole cannot be used.
pub(crate) fn read(
    folder: &Path,
    source: impl FnOnce(&str) -> String,
    config_root: &Path,
    problems: &mut Vec<Problem>,
) -> Result<Plugin, Problem> {
    let whole = |path: &Path, line, text: String| Problem {
        path: path.to_path_buf(),
        line,
        text,
        origin: Origin::Plugin(provisional(folder)),
    };
    let root = folder.canonicalize().map_err(|error| {
        let missing = error.kind() == std::io::ErrorKind::NotFound;
        let text =
            if missing { "there is no such folder".to_owned() } else { format!("cannot be read: {error}") };
        whole(folder, None, text)
    })?;
    if !root.is_dir() {
        return Err(whole(folder, None, "a plugin is a folder".to_owned()));
    }
    let path = root.join(MANIFEST);
    let manifest = match inside(&root, &path) {
        Ok(_) => read_plain(&path).map_err(|error| {
            let (line, text) = line_and_text(error);
            whole(&path, line, text)
        })?,
        Err(Outside::Missing) => None,
        Err(outside) => return Err(whole(&path, None, outside.text())),
    };
    let name = match &manifest {
        None => provisional(&root),
        Some(layer) => match layer.value.get("name") {
            Some(Value::String(name)) => name.clone(),
            Some(_) => return Err(whole(&path, line(layer, "/name"), "`name` must be a text".to_owned())),
            None => return Err(whole(&path, Some(1), "`name` is missing".to_owned())),
        },
    };
    if let Some(problem) = name_problem(&name) {
        return Err(match &manifest {
            Some(layer) => whole(&path, line(layer, "/name"), format!("`name`: {problem}")),
            None => whole(folder, None, format!("{problem}; or give it one in {MANIFEST}")),
        });
    }
    let mut reader = Reader { root: &root, file: path, manifest: manifest.as_ref(), name: &name, problems };
    reader.check_fields();
    let parts = reader.parts();
    let notes = reader.notes();
    let text = |field: &str| manifest.as_ref()?.value.get(field)?.as_str().map(str::to_owned);
    let (version, description) = (text("version"), text("description"));
    let data = config_root.join("plugins").join("data").join(&name);
    Ok(Plugin { source: source(&name), version, description, data, parts, notes, root: root.clone(), name })
}

/// A file that cannot be read, as the line and the text of a problem.
pub fn line_and_text(error: SettingsError) -> (Option<u64>, String) {
    match error {
        SettingsError::Syntax { line, column, problem, .. } => {
            (u64::try_from(line).ok(), format!("is not valid JSON: {problem} (column {column})"))
        }
        SettingsError::Unreadable { problem, .. } => (None, format!("cannot be read: {problem}")),
        SettingsError::Value { key, problem, .. } => (None, format!("`{key}` {problem}")),
    }
}

fn line(layer: &Layer, pointer: &str) -> Option<u64> {
    layer.lines.get(pointer).copied().map(u64::from)
}

/// Why a path is not one of the plugin.
#[derive(Debug, PartialEq, Eq)]
enum Outside {
    Missing,
    Leaves,
    Unreadable(String),
}

impl Outside {
    fn text(&self) -> String {
        match self {
            Self::Missing => "does not exist".to_owned(),
            Self::Leaves => "leads out of the plugin through a link".to_owned(),
            Self::Unreadable(problem) => format!("cannot be read: {problem}"),
        }
    }
}

/// The real place of something in the plugin.
fn inside(root: &Path, path: &Path) -> Result<PathBuf, Outside> {
    match path.canonicalize() {
        Ok(real) if real.starts_with(root) => Ok(real),
        Ok(_) => Err(Outside::Leaves),
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            Err(Outside::Missing)
        }
        Err(error) => Err(Outside::Unreadable(error.to_string())),
    }
}

/// What a part may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Folder,
    File,
    Either,
}

struct Reader<'a> {
    root: &'a Path,
    file: PathBuf,
    manifest: Option<&'a Layer>,
    name: &'a str,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, pointer: &str, text: String) {
        let line = self.manifest.and_then(|layer| line(layer, pointer));
        let origin = Origin::Plugin(self.name.to_owned());
        self.problems.push(Problem { path: self.file.clone(), line, text, origin });
    }

    /// Unknown fields, and values that are not texts.
    fn check_fields(&mut self) {
        let fields = self.manifest.and_then(|layer| layer.value.as_object());
        for (field, value) in fields.into_iter().flatten() {
            let pointer = format!("/{}", field.replace('~', "~0").replace('/', "~1"));
            let name = field.as_str();
            if TEXTS.contains(&name) && !value.is_string() {
                self.problem(&pointer, format!("`{field}` must be a text; it is left out"));
            } else if name != "name" && ![&TEXTS[..], &LOOSE, &PLACES].concat().contains(&name) {
                self.problem(&pointer, format!("`{field}` is not a field of a plugin; it is left out"));
            }
        }
    }

    fn parts(&mut self) -> PluginParts {
        PluginParts {
            commands: self.places("commands", &["commands"], Shape::Either),
            agents: self.places("agents", &["agents"], Shape::Either),
            skills: self.places("skills", &["skills"], Shape::Folder),
            hooks: self.places("hooks", &["hooks/hooks.json"], Shape::File),
            servers: self.servers(),
        }
    }

    fn servers(&mut self) -> Vec<PathBuf> {
        match self.manifest.and_then(|layer| layer.value.get("mcpServers")) {
            Some(Value::Object(_)) => vec![self.file.clone()],
            Some(_) | None => self.places("mcpServers", &[".mcp.json", "mcp.json"], Shape::File),
        }
    }

    fn notes(&mut self) -> Vec<String> {
        let styles = self.places("outputStyles", &["output-styles"], Shape::Either);
        let styles =
            (!styles.is_empty()).then(|| "output styles are not supported; they do nothing".to_owned());
        let bin = self.root.join("bin").is_dir().then(|| {
            "bin/ is reached as ${QODER_PLUGIN_ROOT}/bin; it is not in the PATH of commands".to_owned()
        });
        styles.into_iter().chain(bin).collect()
    }

    /// Where the parts of one kind lie: what the manifest says, else the first of the usual places that is there.
    fn places(&mut self, field: &str, usual: &[&str], shape: Shape) -> Vec<PathBuf> {
        let pointer = format!("/{field}");
        let named: Vec<(String, String)> = match self.manifest.and_then(|layer| layer.value.get(field)) {
            None => return self.usual_place(usual, shape),
            Some(Value::String(one)) => vec![(pointer, one.clone())],
            Some(Value::Array(several)) => {
                let mut named = Vec::new();
                for (index, one) in several.iter().enumerate() {
                    let pointer = format!("{pointer}/{index}");
                    match one.as_str() {
                        Some(text) => named.push((pointer, text.to_owned())),
                        None => self.problem(&pointer, format!("`{field}` must list paths as texts")),
                    }
                }
                named
            }
            Some(_) => {
                self.problem(&pointer, format!("`{field}` must be a path or a list of paths"));
                return Vec::new();
            }
        };
        let mut places = Vec::new();
        for (pointer, text) in named {
            match self.place(&text, shape) {
                Ok(path) => places.push(path),
                Err(problem) => self.problem(&pointer, format!("`{field}`: {text:?} {problem}")),
            }
        }
        places
    }

    fn usual_place(&mut self, usual: &[&str], shape: Shape) -> Vec<PathBuf> {
        for place in usual {
            // A link that leads nowhere is there too.
            if self.root.join(place).symlink_metadata().is_err() {
                continue;
            }
            match self.place(place, shape) {
                Ok(path) => return vec![path],
                Err(text) => {
                    let (path, origin) = (self.root.join(place), Origin::Plugin(self.name.to_owned()));
                    self.problems.push(Problem { path, line: None, text, origin });
                    return Vec::new();
                }
            }
        }
        Vec::new()
    }

    fn place(&self, text: &str, shape: Shape) -> Result<PathBuf, String> {
        let path = Path::new(text);
        let stays = path.components().all(|part| matches!(part, Component::CurDir | Component::Normal(_)));
        if text.trim().is_empty() || !stays {
            return Err("must be a path inside the plugin, such as ./more/commands".to_owned());
        }
        let real = inside(self.root, &self.root.join(path)).map_err(|outside| outside.text())?;
        match shape {
            Shape::Folder if !real.is_dir() => Err("must be a folder".to_owned()),
            Shape::File if !real.is_file() => Err("must be a file".to_owned()),
            Shape::Folder | Shape::File | Shape::Either => Ok(real),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("demo");
        std::fs::create_dir(&root).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        (folder, root)
    }

    fn load(root: &Path) -> (Result<Plugin, Problem>, Vec<String>) {
        let mut problems = Vec::new();
        let read = read(root, |_| "inline".to_owned(), Path::new("/c"), &mut problems);
        let short = |problem: &Problem| problem.to_string().replace(&format!("{}/", root.display()), "");
        (read, problems.iter().map(short).collect())
    }

    #[test]
    fn without_a_manifest_the_folder_names_the_plugin_and_the_usual_places_count() {
        let (_folder, root) =
            plugin(&[("commands/a.md", ""), ("hooks/hooks.json", "{}"), ("mcp.json", "{}")]);
        let (plugin, problems) = load(&root);
        let plugin = plugin.unwrap();
        assert_eq!((plugin.name.as_str(), problems.len()), ("demo", 0));
        assert_eq!(plugin.parts.commands, [root.join("commands")]);
        assert_eq!(plugin.parts.hooks, [root.join("hooks/hooks.json")]);
        assert_eq!(plugin.parts.servers, [root.join("mcp.json")]);
        assert_eq!(plugin.data, Path::new("/c/plugins/data/demo"));
    }

    #[test]
    fn a_manifest_says_where_the_parts_lie() {
        let text = "{\"name\": \"my-plugin\", \"version\": \"1.0.0\", \"description\": \"d\", \"author\": {\"name\": \"x\"},\n\
                    \"commands\": [\"./more\", \"one.md\"], \"mcpServers\": {\"s\": {\"command\": \"x\"}}}";
        let (_folder, root) =
            plugin(&[(MANIFEST, text), ("commands/a.md", ""), ("more/b.md", ""), ("one.md", "")]);
        let (plugin, problems) = load(&root);
        let plugin = plugin.unwrap();
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!((plugin.name.as_str(), plugin.version.as_deref()), ("my-plugin", Some("1.0.0")));
        assert_eq!(plugin.parts.commands, [root.join("more"), root.join("one.md")]);
        assert_eq!(plugin.parts.servers, [root.join(MANIFEST)]);
    }

    #[test]
    fn paths_stay_inside_and_what_is_wrong_has_its_line() {
        let text = "{\n\"name\": \"p\",\n\"commands\": \"../x\",\n\"agents\": [\"/etc\",\n\"absent\", 1],\n\"skills\": \"link\",\n\
                    \"hooks\": {},\n\"colour\": 1,\n\"version\": 2}";
        let (_folder, root) = plugin(&[(MANIFEST, text)]);
        std::os::unix::fs::symlink("/tmp", root.join("link")).unwrap();
        let (plugin, problems) = load(&root);
        assert!(plugin.unwrap().parts.is_empty());
        let at = |line: u64| {
            problems.iter().filter(|one| one.starts_with(&format!("{MANIFEST}:{line}: "))).count()
        };
        for line in [3, 4, 6, 7, 8, 9] {
            assert_eq!(at(line), 1, "{line}: {problems:?}");
        }
        assert_eq!(at(5), 2, "{problems:?}");
        assert!(problems.iter().any(|one| one.contains("leads out of the plugin")), "{problems:?}");
    }

    #[test]
    fn a_plugin_without_a_usable_name_is_refused_as_a_whole() {
        for (text, line) in [
            ("{\"name\": \"a b\"}", Some(1)),
            ("{\n\"version\": \"1\"}", Some(1)),
            ("{\n\"name\": 3}", Some(2)),
            ("{\n\"name\": \"a\",,\n}", Some(2)),
            ("{\"name\": \"a/b\"}", Some(1)),
            ("{\"name\": \"a_b\"}", Some(1)),
        ] {
            let (_folder, root) = plugin(&[(MANIFEST, text)]);
            let problem = load(&root).0.unwrap_err();
            assert_eq!((problem.path, problem.line), (root.join(MANIFEST), line), "{text}: {}", problem.text);
        }
        let problem = load(Path::new("/nowhere/at-all")).0.unwrap_err();
        assert_eq!(problem.text, "there is no such folder");
    }
}
