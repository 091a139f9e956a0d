//! Skills and their versions.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::files;
use crate::model::ids::{SkillId, SkillVersionId, TenantId};
use crate::model::names::VersionName;
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::skill::{Skill, SkillBody, SkillVersion};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    DbFuture, Done, ListQuery, ListedPage, NewSkillVersion, Once, SkillQuery, SkillVersionQuery, SkillsDb,
    UnusedArchive,
};
use crate::store::sqlite::SqliteDb;
use crate::store::sqlite::columns::{json, raw, stored, time};
use crate::store::sqlite::lists::{List, page};
use crate::store::sqlite::once::once;

const SKILL: &str = "SELECT s.id, s.body, s.head_version, v.created_at, s.created_at, s.updated_at
    FROM skills s JOIN skill_versions v ON v.skill_id = s.id AND v.id = s.head_version";
const VERSION: &str = "SELECT v.id, v.skill_id, v.body, v.blob, v.created_at FROM skill_versions v";

fn read_skill(row: &Row<'_>) -> rusqlite::Result<Skill> {
    Ok(Skill {
        id: SkillId(raw(row, 0)?),
        body: json(row, 1)?,
        latest: SkillVersionId(raw(row, 2)?),
        latest_at: time(row, 3)?,
        created_at: time(row, 4)?,
        updated_at: time(row, 5)?,
    })
}

fn read_version(row: &Row<'_>) -> rusqlite::Result<SkillVersion> {
    Ok(SkillVersion {
        id: SkillVersionId(raw(row, 0)?),
        skill: SkillId(raw(row, 1)?),
        body: json(row, 2)?,
        blob: row.get(3)?,
        created_at: time(row, 4)?,
    })
}

fn text(body: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(body).map_err(|error| DbError::Corrupt(error.to_string()))
}

fn find(connection: &Connection, tenant: TenantId, id: SkillId) -> Result<Skill, DbError> {
    let sql = format!("{SKILL} WHERE s.tenant_id = ?1 AND s.id = ?2 AND s.deleted_at IS NULL");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read_skill).optional()?;
    found.ok_or_else(|| Refusal::not_found("skill", id).into())
}

fn find_version(connection: &Connection, query: SkillVersionQuery) -> Result<SkillVersion, DbError> {
    let skill = find(connection, query.tenant, query.skill)?;
    let (column, value) = match query.version {
        VersionName::Latest => ("id", Value::Blob(skill.latest.0.to_vec())),
        VersionName::Id(id) => ("id", Value::Blob(id.0.to_vec())),
        VersionName::Time(at) => ("created_at", Value::Integer(at.0)),
    };
    let sql = format!("{VERSION} WHERE v.skill_id = ?1 AND v.{column} = ?2 AND v.deleted_at IS NULL");
    let found =
        connection.prepare_cached(&sql)?.query_row(params![query.skill.0, value], read_version).optional()?;
    found.ok_or_else(|| {
        let shown = match query.version {
            VersionName::Latest => "latest".to_owned(),
            VersionName::Id(id) => id.to_string(),
            VersionName::Time(at) => at.0.to_string(),
        };
        Refusal::not_found("skill version", shown).into()
    })
}

fn insert_version(
    connection: &Connection,
    skill: SkillId,
    new: NewSkillVersion,
    at: Time,
) -> Result<SkillVersion, DbError> {
    files::check_room(connection, new.tenant, new.body.size, new.quota)?;
    let blob = SkillVersion::blob_name(new.id);
    connection
        .prepare_cached(
            "INSERT INTO skill_versions (skill_id, id, body, blob, created_at, tenant_id, size)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            skill.0,
            new.id.0,
            text(&new.body)?,
            blob,
            at.0,
            new.tenant.0,
            stored(new.body.size)
        ])?;
    Ok(SkillVersion { id: new.id, skill, body: new.body, blob, created_at: at })
}

fn create(connection: &Connection, body: SkillBody, version: NewSkillVersion) -> Result<Skill, DbError> {
    let (id, now, latest) = (SkillId::random(), Time::now(), version.id);
    let (tenant, name) = (version.tenant, version.body.name.clone());
    let taken = connection
        .prepare_cached("SELECT id FROM skills WHERE tenant_id = ?1 AND name = ?2 AND deleted_at IS NULL")?
        .query_row(params![tenant.0, name], |row| raw(row, 0))
        .optional()?;
    if let Some(taken) = taken {
        let problem = format!(
            "has a SKILL.md with the name `{name}`, which `{}` has; add a version to that skill, or use another name",
            SkillId(taken)
        );
        return Err(Problem::field("files", problem).with_code("skill_name_taken").into());
    }
    connection
        .prepare_cached(
            "INSERT INTO skills (id, tenant_id, name, body, head_version, created_at, updated_at, display_name)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)",
        )?
        .execute(params![id.0, tenant.0, name, text(&body)?, latest.0, now.0, body.display_name])?;
    insert_version(connection, id, version, now)?;
    Ok(Skill { id, body, latest, latest_at: now, created_at: now, updated_at: now })
}

fn create_version(
    connection: &Connection,
    skill: SkillId,
    new: NewSkillVersion,
) -> Result<SkillVersion, DbError> {
    let before = find(connection, new.tenant, skill)?;
    let name: String = connection
        .prepare_cached("SELECT name FROM skills WHERE id = ?1")?
        .query_row([skill.0], |row| row.get(0))?;
    if name != new.body.name {
        let problem =
            format!("has a SKILL.md with the name `{}`; versions keep the name `{name}`", new.body.name);
        return Err(Problem::field("files", problem).into());
    }
    // Versions are named by their times, too.
    let newest: i64 = connection
        .prepare_cached("SELECT max(created_at) FROM skill_versions WHERE skill_id = ?1")?
        .query_row([skill.0], |row| row.get(0))?;
    let now = Time(Time::now().0.max(newest + 1).max(before.latest_at.0 + 1));
    let version = insert_version(connection, skill, new, now)?;
    connection
        .prepare_cached("UPDATE skills SET head_version = ?2, updated_at = ?3 WHERE id = ?1")?
        .execute(params![skill.0, version.id.0, now.0])?;
    Ok(version)
}

fn delete(connection: &Connection, tenant: TenantId, id: SkillId) -> Result<(), DbError> {
    find(connection, tenant, id)?;
    let now = Time::now();
    for sql in [
        "UPDATE skills SET deleted_at = ?2 WHERE id = ?1",
        "UPDATE skill_versions SET deleted_at = ?2 WHERE skill_id = ?1 AND deleted_at IS NULL",
    ] {
        connection.prepare_cached(sql)?.execute(params![id.0, now.0])?;
    }
    Ok(())
}

fn delete_version(connection: &Connection, query: SkillVersionQuery) -> Result<SkillVersionId, DbError> {
    let version = find_version(connection, query)?;
    let next = connection
        .prepare_cached(
            "SELECT id FROM skill_versions WHERE skill_id = ?1 AND id <> ?2 AND deleted_at IS NULL
             ORDER BY created_at DESC LIMIT 1",
        )?
        .query_row(params![query.skill.0, version.id.0], |row| raw(row, 0))
        .optional()?;
    let Some(next) = next else {
        let message = format!("`{}` is the only version of its skill. Delete the skill instead.", version.id);
        return Err(Refusal::conflict(message).into());
    };
    let now = Time::now();
    connection
        .prepare_cached("UPDATE skill_versions SET deleted_at = ?3 WHERE skill_id = ?1 AND id = ?2")?
        .execute(params![query.skill.0, version.id.0, now.0])?;
    connection
        .prepare_cached(
            "UPDATE skills SET head_version = CASE head_version WHEN ?2 THEN ?3 ELSE head_version END, updated_at = ?4
             WHERE id = ?1",
        )?
        .execute(params![query.skill.0, version.id.0, next, now.0])?;
    Ok(version.id)
}

fn list(connection: &Connection, query: &SkillQuery) -> Result<ListedPage<Skill>, DbError> {
    let mut conditions = vec![("s.deleted_at IS NULL".to_owned(), Vec::new())];
    for (column, value) in [("name", &query.name), ("display_name", &query.display_name)] {
        if let Some(value) = value {
            conditions.push((format!("s.{column} = ?"), vec![Value::Text(value.clone())]));
        }
    }
    let list = List {
        select: SKILL,
        alias: "s",
        order: "id",
        find: "SELECT created_at, id FROM skills WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    page(connection, list, &query.list, read_skill)
}

fn list_versions(
    connection: &Connection,
    skill: SkillId,
    query: &ListQuery,
) -> Result<ListedPage<SkillVersion>, DbError> {
    find(connection, query.tenant, skill)?;
    let list = List {
        select: VERSION,
        alias: "v",
        order: "id",
        find: "SELECT created_at, id FROM skill_versions WHERE tenant_id = ?1 AND id = ?2",
        conditions: vec![
            ("v.deleted_at IS NULL".to_owned(), Vec::new()),
            ("v.skill_id = ?".to_owned(), vec![Value::Blob(skill.0.to_vec())]),
        ],
    };
    page(connection, list, query, read_version)
}

fn unused(connection: &Connection, limit: usize) -> Result<Vec<UnusedArchive>, DbError> {
    let mut statement = connection.prepare_cached(
        "SELECT tenant_id, id, blob FROM skill_versions WHERE blob <> '' AND deleted_at IS NOT NULL LIMIT ?1",
    )?;
    let rows = statement.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
        Ok(UnusedArchive {
            tenant: TenantId(raw(row, 0)?),
            id: SkillVersionId(raw(row, 1)?),
            blob: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl SkillsDb for SqliteDb {
    fn create_skill(
        &self,
        body: SkillBody,
        version: NewSkillVersion,
        done: Once<Skill>,
    ) -> DbFuture<'_, Done<Skill>> {
        self.write(move |connection| once(connection, done, || create(connection, body, version)))
    }

    fn skill(&self, tenant: TenantId, id: SkillId) -> DbFuture<'_, Skill> {
        self.read(move |connection| find(connection, tenant, id))
    }

    fn list_skills(&self, query: SkillQuery) -> DbFuture<'_, ListedPage<Skill>> {
        self.read(move |connection| list(connection, &query))
    }

    fn delete_skill(&self, tenant: TenantId, id: SkillId, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |connection| once(connection, done, || delete(connection, tenant, id)))
    }

    fn create_skill_version(
        &self,
        skill: SkillId,
        version: NewSkillVersion,
        done: Once<SkillVersion>,
    ) -> DbFuture<'_, Done<SkillVersion>> {
        self.write(move |connection| once(connection, done, || create_version(connection, skill, version)))
    }

    fn skill_version(&self, query: SkillVersionQuery) -> DbFuture<'_, SkillVersion> {
        self.read(move |connection| find_version(connection, query))
    }

    fn list_skill_versions(
        &self,
        skill: SkillId,
        query: ListQuery,
    ) -> DbFuture<'_, ListedPage<SkillVersion>> {
        self.read(move |connection| list_versions(connection, skill, &query))
    }

    fn delete_skill_version(
        &self,
        query: SkillVersionQuery,
        done: Once<SkillVersionId>,
    ) -> DbFuture<'_, Done<SkillVersionId>> {
        self.write(move |connection| once(connection, done, || delete_version(connection, query)))
    }

    fn unused_archives(&self, limit: usize) -> DbFuture<'_, Vec<UnusedArchive>> {
        self.read(move |connection| unused(connection, limit))
    }

    fn forget_archive(&self, id: SkillVersionId) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            connection
                .prepare_cached("UPDATE skill_versions SET blob = '', size = 0 WHERE id = ?1")?
                .execute([id.0])?;
            Ok(())
        })
    }
}
