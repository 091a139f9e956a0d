//! Skills and their versions: what is kept of each, and how clients read them. Both spellings of clients are written.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::ids::{SkillId, SkillVersionId};
use crate::model::metadata::Metadata;
use crate::model::time::Time;

/// What a row keeps of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillBody {
    /// For people.
    pub display_name: String,
    /// What the owner wrote on it.
    #[serde(default)]
    pub metadata: Metadata,
}

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The skill.
    pub id: SkillId,
    /// What is kept of it.
    pub body: SkillBody,
    /// Its newest version.
    pub latest: SkillVersionId,
    /// When that was created.
    pub latest_at: Time,
    /// When it was created.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
}

impl Skill {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "id": self.id, "type": "skill", "display_name": self.body.display_name,
            "display_title": self.body.display_name, "latest_version_id": self.latest,
            "latest_version": version_name(self.latest_at), "source": { "type": "custom" },
            "metadata": self.body.metadata, "created_at": self.created_at, "updated_at": self.updated_at,
        })
    }
}

/// What a row keeps of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillVersionBody {
    /// The name that its `SKILL.md` gives.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The length of its archive.
    pub size: u64,
}

/// A version of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillVersion {
    /// The version.
    pub id: SkillVersionId,
    /// Its skill.
    pub skill: SkillId,
    /// What is kept of it.
    pub body: SkillVersionBody,
    /// The blob that holds its archive.
    pub blob: String,
    /// When it was created. No other version of its skill has this time.
    pub created_at: Time,
}

impl SkillVersion {
    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({
            "id": self.id, "type": "skill_version", "skill_id": self.skill, "name": self.body.name,
            "description": self.body.description, "version": version_name(self.created_at),
            "directory": self.body.name, "created_at": self.created_at,
        })
    }

    /// The name of the blob of a version.
    #[must_use]
    pub fn blob_name(id: SkillVersionId) -> String {
        id.to_string()
    }
}

/// The name of a version for clients that name versions by times.
fn version_name(at: Time) -> String {
    at.0.to_string()
}
