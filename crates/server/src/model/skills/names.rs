//! How agents and paths name skills and their versions.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::model::fields::{Fields, each};
use crate::model::ids::{SkillId, SkillVersionId};
use crate::model::problem::Problem;
use crate::model::time::Time;

/// The newest version.
const LATEST: &str = "latest";
/// The most skills of an agent.
const MOST_SKILLS: usize = 64;

/// Which version of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionName {
    /// The newest one.
    Latest,
    /// By its ID.
    Id(SkillVersionId),
    /// By the time that it was created at, in microseconds.
    Time(Time),
}

impl VersionName {
    /// Reads the name of a version; `None` when no version can have it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text == LATEST {
            return Some(Self::Latest);
        }
        let by_time = || text.parse().ok().filter(|time| *time > 0).map(|time| Self::Time(Time(time)));
        SkillVersionId::parse(text).map(Self::Id).or_else(by_time)
    }
}

/// A skill that an agent uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillChoice {
    /// The skill.
    pub skill_id: String,
    /// Its version: `latest`, an ID or a time.
    pub version: String,
}

impl SkillChoice {
    /// Reads the skills of an agent.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn read(fields: Fields<'_>) -> Result<Vec<Self>, Problem> {
        let items = fields.items("skills", MOST_SKILLS)?;
        let skills = each("skills", items, |item| {
            let fields = Fields::of_item(item)?;
            let kind = fields.word("type", &["custom", "qoder", "anthropic"])?;
            let id = fields.text("skill_id", 1..=256)?;
            if kind.is_some_and(|kind| kind != "custom") {
                let problem =
                    format!("is `{id}`, a skill of a hosted service; upload it, and use the type `custom`");
                return Err(Problem::field("skill_id", problem));
            }
            let version = fields.optional_text("version", 1..=256)?.unwrap_or(LATEST);
            if VersionName::parse(version).is_none() {
                let problem = format!("is `{version}`; use `{LATEST}` or the ID of a version");
                return Err(Problem::field("version", problem));
            }
            Ok(Self { skill_id: id.to_owned(), version: version.to_owned() })
        })?;
        let mut seen = BTreeSet::new();
        match skills.iter().position(|skill| !seen.insert(skill.skill_id.as_str())) {
            Some(index) => Err(Problem::field(format!("skills[{index}].skill_id"), "is a duplicate")),
            None => Ok(skills),
        }
    }

    /// The skill and which version of it; `None` when no skill can have this name.
    #[must_use]
    pub fn named(&self) -> Option<(SkillId, VersionName)> {
        Some((SkillId::parse(&self.skill_id)?, VersionName::parse(&self.version)?))
    }

    /// Names the versions that skills have now, so that those who use them keep these.
    pub fn pin(skills: &mut [Self], pinned: &HashMap<String, String>) {
        for choice in skills {
            if let Some(version) = pinned.get(&choice.skill_id) {
                choice.version.clone_from(version);
            }
        }
    }

    /// As clients read it.
    #[must_use]
    pub fn view(&self) -> Value {
        json!({ "type": "custom", "skill_id": self.skill_id, "version": self.version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_names_its_skills_once_and_by_versions_that_can_exist() {
        let read = |skills: Value| {
            let body = json!({ "skills": skills });
            SkillChoice::read(Fields::of_body(&body).unwrap())
        };
        let one = json!({ "type": "custom", "skill_id": "skill_1" });
        assert_eq!(read(json!([one])).unwrap()[0].version, "latest");
        assert_eq!(read(Value::Null).unwrap(), []);
        for (wrong, field) in [
            (json!([one, one]), "skills[1].skill_id"),
            (json!([{ "type": "anthropic", "skill_id": "xlsx" }]), "skills[0].skill_id"),
            (json!([{ "skill_id": "skill_1", "version": "1.0" }]), "skills[0].version"),
            (json!([{ "type": "custom" }]), "skills[0].skill_id"),
        ] {
            assert_eq!(read(wrong.clone()).unwrap_err().field.as_deref(), Some(field), "{wrong}");
        }
        let time = VersionName::parse("1759178010641129");
        assert_eq!(time, Some(VersionName::Time(Time(1_759_178_010_641_129))));
        assert_eq!((VersionName::parse("-1"), VersionName::parse("")), (None, None));
    }
}
