//! Skills and their versions.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

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
use crate::store::postgres::PostgresDb;
use crate::store::postgres::columns::{json, optional_raw, raw, stored, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};
use crate::store::postgres::once::once;

const SKILL: &str = "SELECT s.id, s.body::text, s.head_version, v.created_at, s.created_at, s.updated_at
    FROM skills s JOIN skill_versions v ON v.skill_id = s.id AND v.id = s.head_version";
const VERSION: &str = "SELECT v.id, v.skill_id, v.body::text, v.blob, v.created_at FROM skill_versions v";

fn read_skill(row: &Row) -> Result<Skill, DbError> {
    Ok(Skill {
        id: SkillId(raw(row, 0)?),
        body: json(row, 1)?,
        latest: SkillVersionId(raw(row, 2)?),
        latest_at: time(row, 3)?,
        created_at: time(row, 4)?,
        updated_at: time(row, 5)?,
    })
}

fn read_version(row: &Row) -> Result<SkillVersion, DbError> {
    Ok(SkillVersion {
        id: SkillVersionId(raw(row, 0)?),
        skill: SkillId(raw(row, 1)?),
        body: json(row, 2)?,
        blob: row.try_get(3)?,
        created_at: time(row, 4)?,
    })
}

async fn find(client: &impl GenericClient, tenant: TenantId, id: SkillId) -> Result<Skill, DbError> {
    let sql = format!("{SKILL} WHERE s.tenant_id = $1 AND s.id = $2 AND s.deleted_at IS NULL");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    read_skill(&row.ok_or_else(|| Refusal::not_found("skill", id))?)
}

/// A skill whose row no other transaction changes until this one ends, with the name of its folder.
async fn lock(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: SkillId,
) -> Result<(Skill, String), DbError> {
    let sql = "SELECT name FROM skills WHERE tenant_id = $1 AND id = $2 FOR UPDATE";
    let statement = transaction.prepare_cached(sql).await?;
    let row = transaction.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    let name = row.map(|row| row.try_get(0)).transpose()?;
    Ok((find(transaction, tenant, id).await?, name.unwrap_or_default()))
}

async fn find_version(
    client: &impl GenericClient,
    query: SkillVersionQuery,
) -> Result<SkillVersion, DbError> {
    let skill = find(client, query.tenant, query.skill).await?;
    let (latest, at);
    let (column, value): (&str, &(dyn ToSql + Sync)) = match query.version {
        VersionName::Latest => {
            latest = uuid(skill.latest.0);
            ("id", &latest)
        }
        VersionName::Id(id) => {
            latest = uuid(id.0);
            ("id", &latest)
        }
        VersionName::Time(time) => {
            at = time.0;
            ("created_at", &at)
        }
    };
    let sql = format!("{VERSION} WHERE v.skill_id = $1 AND v.{column} = $2 AND v.deleted_at IS NULL");
    let statement = client.prepare_cached(&sql).await?;
    let found = client.query_opt(&statement, &[&uuid(query.skill.0), value]).await?;
    let row = found.ok_or_else(|| {
        let shown = match query.version {
            VersionName::Latest => "latest".to_owned(),
            VersionName::Id(id) => id.to_string(),
            VersionName::Time(at) => at.0.to_string(),
        };
        Refusal::not_found("skill version", shown)
    })?;
    read_version(&row)
}

async fn insert_version(
    transaction: &Transaction<'_>,
    skill: SkillId,
    new: NewSkillVersion,
    at: Time,
) -> Result<SkillVersion, DbError> {
    let blob = SkillVersion::blob_name(new.id);
    let sql = "INSERT INTO skill_versions (skill_id, id, body, blob, created_at, tenant_id, size)
        VALUES ($1, $2, $3::text::json, $4, $5, $6, $7)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &uuid(skill.0),
                &uuid(new.id.0),
                &text(&new.body)?,
                &blob,
                &at.0,
                &uuid(new.tenant.0),
                &stored(new.body.size),
            ],
        )
        .await?;
    Ok(SkillVersion { id: new.id, skill, body: new.body, blob, created_at: at })
}

async fn create(
    transaction: &Transaction<'_>,
    body: SkillBody,
    version: NewSkillVersion,
) -> Result<Skill, DbError> {
    let (id, now, latest) = (SkillId::random(), Time::now(), version.id);
    let (tenant, name) = (version.tenant, version.body.name.clone());
    // This also has two of the same name wait for each other.
    files::check_room(transaction, tenant, version.body.size, version.quota).await?;
    let sql = "SELECT id FROM skills WHERE tenant_id = $1 AND name = $2 AND deleted_at IS NULL";
    let statement = transaction.prepare_cached(sql).await?;
    if let Some(row) = transaction.query_opt(&statement, &[&uuid(tenant.0), &name]).await? {
        let problem = format!(
            "has a SKILL.md with the name `{name}`, which `{}` has; add a version to that skill, or use another name",
            SkillId(raw(&row, 0)?)
        );
        return Err(Problem::field("files", problem).with_code("skill_name_taken").into());
    }
    let sql =
        "INSERT INTO skills (id, tenant_id, name, body, head_version, created_at, updated_at, display_name)
        VALUES ($1, $2, $3, $4::text::json, $5, $6, $6, $7)";
    let statement = transaction.prepare_cached(sql).await?;
    let (key, owner, head) = (uuid(id.0), uuid(tenant.0), uuid(latest.0));
    transaction
        .execute(&statement, &[&key, &owner, &name, &text(&body)?, &head, &now.0, &body.display_name])
        .await?;
    insert_version(transaction, id, version, now).await?;
    Ok(Skill { id, body, latest, latest_at: now, created_at: now, updated_at: now })
}

async fn create_version(
    transaction: &Transaction<'_>,
    skill: SkillId,
    new: NewSkillVersion,
) -> Result<SkillVersion, DbError> {
    files::check_room(transaction, new.tenant, new.body.size, new.quota).await?;
    let (before, name) = lock(transaction, new.tenant, skill).await?;
    if name != new.body.name {
        let problem =
            format!("has a SKILL.md with the name `{}`; versions keep the name `{name}`", new.body.name);
        return Err(Problem::field("files", problem).into());
    }
    // Versions are named by their times, too.
    let sql = "SELECT max(created_at) FROM skill_versions WHERE skill_id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    let newest: i64 = transaction.query_one(&statement, &[&uuid(skill.0)]).await?.try_get(0)?;
    let now = Time(Time::now().0.max(newest + 1).max(before.latest_at.0 + 1));
    let version = insert_version(transaction, skill, new, now).await?;
    let sql = "UPDATE skills SET head_version = $2, updated_at = $3 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(skill.0), &uuid(version.id.0), &now.0]).await?;
    Ok(version)
}

async fn delete(transaction: &Transaction<'_>, tenant: TenantId, id: SkillId) -> Result<(), DbError> {
    lock(transaction, tenant, id).await?;
    let now = Time::now();
    for sql in [
        "UPDATE skills SET deleted_at = $2 WHERE id = $1",
        "UPDATE skill_versions SET deleted_at = $2 WHERE skill_id = $1 AND deleted_at IS NULL",
    ] {
        transaction.execute(&transaction.prepare_cached(sql).await?, &[&uuid(id.0), &now.0]).await?;
    }
    Ok(())
}

async fn delete_version(
    transaction: &Transaction<'_>,
    query: SkillVersionQuery,
) -> Result<SkillVersionId, DbError> {
    lock(transaction, query.tenant, query.skill).await?;
    let version = find_version(transaction, query).await?;
    let (skill, id) = (uuid(query.skill.0), uuid(version.id.0));
    let sql = "SELECT id FROM skill_versions WHERE skill_id = $1 AND id <> $2 AND deleted_at IS NULL
        ORDER BY created_at DESC LIMIT 1";
    let statement = transaction.prepare_cached(sql).await?;
    let next = transaction.query_opt(&statement, &[&skill, &id]).await?;
    let Some(next) = next.map(|row| optional_raw(&row, 0)).transpose()?.flatten() else {
        let message = format!("`{}` is the only version of its skill. Delete the skill instead.", version.id);
        return Err(Refusal::conflict(message).into());
    };
    let now = Time::now();
    let sql = "UPDATE skill_versions SET deleted_at = $3 WHERE skill_id = $1 AND id = $2";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&skill, &id, &now.0]).await?;
    let sql = "UPDATE skills SET head_version = CASE head_version WHEN $2 THEN $3 ELSE head_version END, updated_at = $4
        WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&skill, &id, &uuid(next), &now.0]).await?;
    Ok(version.id)
}

async fn list(connection: &Object, query: &SkillQuery) -> Result<ListedPage<Skill>, DbError> {
    let mut conditions = Conditions::default();
    conditions.plain("s.deleted_at IS NULL");
    for (column, value) in [("name", &query.name), ("display_name", &query.display_name)] {
        if let Some(value) = value {
            conditions.with(&format!("s.{column} = ?"), vec![Box::new(value.clone())]);
        }
    }
    let list = List { select: SKILL, alias: "s", order: "id", table: "skills", conditions };
    page(connection, list, &query.list, read_skill).await
}

async fn list_versions(
    connection: &Object,
    skill: SkillId,
    query: &ListQuery,
) -> Result<ListedPage<SkillVersion>, DbError> {
    find(connection, query.tenant, skill).await?;
    let mut conditions = Conditions::default();
    conditions.plain("v.deleted_at IS NULL");
    conditions.with("v.skill_id = ?", vec![Box::new(uuid(skill.0))]);
    let list = List { select: VERSION, alias: "v", order: "id", table: "skill_versions", conditions };
    page(connection, list, query, read_version).await
}

async fn unused(connection: &Object, limit: usize) -> Result<Vec<UnusedArchive>, DbError> {
    let sql =
        "SELECT tenant_id, id, blob FROM skill_versions WHERE blob <> '' AND deleted_at IS NOT NULL LIMIT $1";
    let statement = connection.prepare_cached(sql).await?;
    let rows = connection.query(&statement, &[&stored(limit as u64)]).await?;
    let read = |row: &Row| {
        let (tenant, id) = (TenantId(raw(row, 0)?), SkillVersionId(raw(row, 1)?));
        Ok(UnusedArchive { tenant, id, blob: row.try_get(2)? })
    };
    rows.iter().map(read).collect()
}

async fn forget(transaction: &Transaction<'_>, id: SkillVersionId) -> Result<(), DbError> {
    let sql = "UPDATE skill_versions SET blob = '', size = 0 WHERE id = $1";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&uuid(id.0)]).await?;
    Ok(())
}

impl SkillsDb for PostgresDb {
    fn create_skill(
        &self,
        body: SkillBody,
        version: NewSkillVersion,
        done: Once<Skill>,
    ) -> DbFuture<'_, Done<Skill>> {
        self.write(move |transaction| Box::pin(once(transaction, done, create(transaction, body, version))))
    }

    fn skill(&self, tenant: TenantId, id: SkillId) -> DbFuture<'_, Skill> {
        self.read(move |connection| Box::pin(find(connection, tenant, id)))
    }

    fn list_skills(&self, query: SkillQuery) -> DbFuture<'_, ListedPage<Skill>> {
        self.read(move |connection| Box::pin(async move { list(connection, &query).await }))
    }

    fn delete_skill(&self, tenant: TenantId, id: SkillId, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| Box::pin(once(transaction, done, delete(transaction, tenant, id))))
    }

    fn create_skill_version(
        &self,
        skill: SkillId,
        version: NewSkillVersion,
        done: Once<SkillVersion>,
    ) -> DbFuture<'_, Done<SkillVersion>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, create_version(transaction, skill, version)))
        })
    }

    fn skill_version(&self, query: SkillVersionQuery) -> DbFuture<'_, SkillVersion> {
        self.read(move |connection| Box::pin(find_version(connection, query)))
    }

    fn list_skill_versions(
        &self,
        skill: SkillId,
        query: ListQuery,
    ) -> DbFuture<'_, ListedPage<SkillVersion>> {
        self.read(move |connection| Box::pin(async move { list_versions(connection, skill, &query).await }))
    }

    fn delete_skill_version(
        &self,
        query: SkillVersionQuery,
        done: Once<SkillVersionId>,
    ) -> DbFuture<'_, Done<SkillVersionId>> {
        self.write(move |transaction| Box::pin(once(transaction, done, delete_version(transaction, query))))
    }

    fn unused_archives(&self, limit: usize) -> DbFuture<'_, Vec<UnusedArchive>> {
        self.read(move |connection| Box::pin(unused(connection, limit)))
    }

    fn forget_archive(&self, id: SkillVersionId) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(forget(transaction, id)))
    }
}
