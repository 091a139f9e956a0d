//! Skills in the database. Archives of versions are blobs, which are there before a row names them and removed after none does.

use crate::model::ids::{SkillId, SkillVersionId, TenantId};
use crate::model::names::VersionName;
use crate::model::skill::{Skill, SkillBody, SkillVersion, SkillVersionBody};

use super::resources::{ListQuery, ListedPage};
use super::{DbFuture, Done, Once};

/// A version whose archive is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSkillVersion {
    /// Whose.
    pub tenant: TenantId,
    /// The version.
    pub id: SkillVersionId,
    /// What is kept of it.
    pub body: SkillVersionBody,
    /// The most bytes that the tenant may keep.
    pub quota: u64,
}

/// Which version of which skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillVersionQuery {
    /// Whose.
    pub tenant: TenantId,
    /// Of which skill.
    pub skill: SkillId,
    /// Which.
    pub version: VersionName,
}

/// Which skills are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillQuery {
    /// What every list can be asked for.
    pub list: ListQuery,
    /// With this name in their `SKILL.md`.
    pub name: Option<String>,
    /// With this name for people.
    pub display_name: Option<String>,
}

/// An archive that no version needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedArchive {
    /// Whose.
    pub tenant: TenantId,
    /// The version.
    pub id: SkillVersionId,
    /// Its blob.
    pub blob: String,
}

/// Skills.
pub trait SkillsDb {
    /// Creates a skill with its first version, unless the tenant has one of this name or no room for it.
    fn create_skill(
        &self,
        body: SkillBody,
        version: NewSkillVersion,
        once: Once<Skill>,
    ) -> DbFuture<'_, Done<Skill>>;
    /// A skill.
    fn skill(&self, tenant: TenantId, id: SkillId) -> DbFuture<'_, Skill>;
    /// Skills, the newest first.
    fn list_skills(&self, query: SkillQuery) -> DbFuture<'_, ListedPage<Skill>>;
    /// Deletes a skill with all versions.
    fn delete_skill(&self, tenant: TenantId, id: SkillId, once: Once<()>) -> DbFuture<'_, Done<()>>;
    /// Adds a version, which is the latest from then on. It keeps the name of the skill.
    fn create_skill_version(
        &self,
        skill: SkillId,
        version: NewSkillVersion,
        once: Once<SkillVersion>,
    ) -> DbFuture<'_, Done<SkillVersion>>;
    /// A version.
    fn skill_version(&self, query: SkillVersionQuery) -> DbFuture<'_, SkillVersion>;
    /// Versions of a skill, the newest first.
    fn list_skill_versions(&self, skill: SkillId, query: ListQuery)
    -> DbFuture<'_, ListedPage<SkillVersion>>;
    /// Deletes a version; the last one of a skill stays. Answers with its ID.
    fn delete_skill_version(
        &self,
        query: SkillVersionQuery,
        once: Once<SkillVersionId>,
    ) -> DbFuture<'_, Done<SkillVersionId>>;
    /// Versions that were deleted and whose archives are still there.
    fn unused_archives(&self, limit: usize) -> DbFuture<'_, Vec<UnusedArchive>>;
    /// The archive of such a version is gone.
    fn forget_archive(&self, id: SkillVersionId) -> DbFuture<'_, ()>;
}
