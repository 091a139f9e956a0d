//! Puts the skills of a session's agent where the session reads them, before it wakes: each version in a folder of its own, which
//! is written once. A skill that is gone is reported, and the session runs without it.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::drive::node::Node;
use crate::drive::shared::Shared;
use crate::environment::Places;
use crate::model::event::NewEvent;
use crate::model::ids::hex;
use crate::model::names::SkillChoice;
use crate::model::skill::SkillVersion;
use crate::model::upload::SkillFile;
use crate::store::{self, SeatRow, SkillVersionQuery};

/// The skills of a session, as the runtime finds them.
#[derive(Debug, Clone, Default)]
pub(in crate::drive) struct Skills {
    /// Folders, each with the folder of one skill in it.
    pub(in crate::drive) folders: Vec<PathBuf>,
    /// Their names.
    pub(in crate::drive) names: Vec<String>,
}

/// Makes the skills of a session ready.
pub(in crate::drive) async fn provide(
    node: &Node,
    row: &SeatRow,
    places: &Places,
    shared: &Shared,
) -> Skills {
    let mut skills = Skills::default();
    for choice in row.session.session.body.skills() {
        match install(node, row, choice, places).await {
            Ok((folder, name)) => {
                skills.folders.push(folder);
                skills.names.push(name);
            }
            Err(problem) => {
                let message = format!("The skill `{}` cannot be used: {problem}.", choice.skill_id);
                let error = json!({ "type": "unknown_error", "message": message,
                    "retry_status": { "type": "retrying" } });
                shared.report(NewEvent::new("session.error", &json!({ "error": error })));
            }
        }
    }
    skills
}

/// What the model reads about its skills where workers put them beside its files.
pub(in crate::drive) async fn listed(node: &Node, row: &SeatRow) -> Vec<String> {
    let mut lines = Vec::new();
    for choice in row.session.session.body.skills() {
        let Some((skill, version)) = choice.named() else { continue };
        let query = SkillVersionQuery { tenant: row.tenant, skill, version };
        // One that is gone is not there for the worker, either.
        if let Ok(SkillVersion { body, .. }) = node.store.db.skill_version(query).await {
            lines.push(format!("- {}: {} (skills/{}/SKILL.md)", body.name, body.description, body.name));
        }
    }
    if !lines.is_empty() {
        let head = "Skills are folders in the working directory. Read the SKILL.md of one before you do what it is for.";
        lines.insert(0, head.to_owned());
    }
    lines
}

/// Unpacks a version, unless it is there. Answers with the folder that its folder is in, and its name.
async fn install(
    node: &Node,
    row: &SeatRow,
    choice: &SkillChoice,
    places: &Places,
) -> Result<(PathBuf, String), String> {
    let (skill, version) = choice.named().ok_or("it does not exist")?;
    let query = SkillVersionQuery { tenant: row.tenant, skill, version };
    let version = node.store.db.skill_version(query).await.map_err(|error| error.to_string())?;
    let folder = places.mounts.join("skills").join(hex(&version.id.0));
    if !folder.is_dir() {
        let archive = node.store.read_file(row.tenant, &version.blob).await;
        let archive = archive.map_err(|error| error.to_string())?;
        let target = folder.clone();
        let unpacked = tokio::task::spawn_blocking(move || {
            let files = store::unpack(&archive).map_err(|problem| problem.message)?;
            write(&target, &files).map_err(|error| error.to_string())
        });
        unpacked.await.map_err(|error| error.to_string())??;
    }
    let SkillVersion { body, .. } = version;
    Ok((folder, body.name))
}

/// Writes files beside their place and moves them there, so that a folder that is there is whole.
fn write(folder: &Path, files: &[SkillFile]) -> std::io::Result<()> {
    let beside = folder.with_extension("new");
    match std::fs::remove_dir_all(&beside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    store::write_files(&beside, files)?;
    std::fs::rename(&beside, folder)
}
