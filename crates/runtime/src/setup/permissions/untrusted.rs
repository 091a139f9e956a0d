//! What is left out because the folder is not trusted, by name. Only lists names: nothing of such a folder is read. A file
//! that would be left out anyway, because its source is not asked for or it is the user's own, is not among them.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use qoder_core::OptionNames;
use qoder_types::RuleSource;

use crate::events::{Notice, NoticeKind};
use crate::setup::Setup;
use qoder_config::home;
use qoder_config::memory;
use qoder_config::sources::Kind;
use qoder_config::trust::is_too_wide;

/// How many files a notice lists.
const MOST_FILES: usize = 100;
/// How many of them its text names.
const MOST_NAMED: usize = 10;
/// How deep folders of commands are looked into.
const COMMAND_DEPTH: usize = 4;
/// How many entries of a folder are looked at.
const MOST_ENTRIES: usize = 5_000;

impl Setup {
    /// Names the files that would count if the folder were trusted.
    pub(in crate::setup) fn untrusted_notice(&self) -> Option<Notice> {
        if self.config.trust.is_trusted() {
            return None;
        }
        let mut files = self.files_without_trust();
        // In the home directory the user's own files are in the same place, and they count.
        files.retain(|path| !path.starts_with(&self.config.config_root));
        files.sort();
        files.dedup();
        let folder = self.config.project_root.display();
        let names: Vec<String> = files.iter().take(MOST_NAMED).map(|path| self.short_name(path)).collect();
        let named = match (names.as_slice(), files.len() - names.len()) {
            ([], _) => return None,
            ([one], 0) => format!("its {one} is not used"),
            (_, 0) => format!("these files are not used: {}", names.join(", ")),
            (_, more) => format!("these files are not used: {} and {more} more", names.join(", ")),
        };
        let home = home::home(&self.options.environment);
        let home = home.canonicalize().unwrap_or(home);
        let text = if is_too_wide(&self.cwd, &home) {
            format!(
                "{folder} cannot be trusted as a whole, so {named}. Start in the folder of one project instead."
            )
        } else {
            let names = self.options.option_names;
            let once = match names {
                OptionNames::Flags => "pass `--trust` for one run".to_owned(),
                OptionNames::SnakeCase | OptionNames::CamelCase => {
                    format!("list `project` in {}", names.name("setting-sources"))
                }
            };
            format!(
                "{folder} is not trusted, so {named}. To trust the folder, run `qodercli trust`, or {once}."
            )
        };
        files.truncate(MOST_FILES);
        Some(Notice { kind: NoticeKind::UntrustedFolder, text, files })
    }

    fn files_without_trust(&self) -> Vec<PathBuf> {
        let wanted = |source| self.options.setting_sources.as_ref().is_none_or(|all| all.contains(&source));
        let (project, local) = (wanted(RuleSource::ProjectSettings), wanted(RuleSource::LocalSettings));
        let mut files = Vec::new();
        // An empty system prompt leaves memory out in any folder.
        if self.options.system_prompt.as_deref() != Some("") {
            let places = memory::MemoryPlaces { user: false, project, local, ..self.memory_places() };
            files.extend(memory::candidates(&places, &self.config.settings));
        }
        let mut single = Vec::new();
        for root in [&self.config.project_root, &self.cwd] {
            let own = root.join(".qoder");
            if project {
                single.push(own.join("settings.json"));
                for kind in [Kind::Agents, Kind::Skills, Kind::Commands] {
                    files.extend(definitions(&own.join(kind.folder()), kind));
                }
            }
            if local {
                single.push(own.join("settings.local.json"));
            }
        }
        if project && !self.options.strict_mcp_config {
            single.push(self.config.project_root.join(".mcp.json"));
        }
        files.extend(single.into_iter().filter(|path| path.is_file()));
        files
    }

    /// The path as seen from the project.
    fn short_name(&self, path: &Path) -> String {
        path.strip_prefix(&self.config.project_root).unwrap_or(path).display().to_string()
    }
}

/// The files of a folder that define something.
fn definitions(folder: &Path, kind: Kind) -> Vec<PathBuf> {
    if !folder.is_dir() {
        return Vec::new();
    }
    let depth = match kind {
        Kind::Agents => 1,
        Kind::Skills => 2,
        Kind::Commands => COMMAND_DEPTH,
    };
    let defines = |path: &Path| match kind {
        Kind::Skills => path.file_name().is_some_and(|name| name == "SKILL.md"),
        Kind::Agents | Kind::Commands => path.extension().is_some_and(|extension| extension == "md"),
    };
    WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .max_depth(Some(depth))
        .build()
        .take(MOST_ENTRIES)
        .filter_map(Result::ok)
        .map(ignore::DirEntry::into_path)
        .filter(|path| defines(path))
        .collect()
}
