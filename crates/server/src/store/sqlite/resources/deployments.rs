//! Deployments.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::{deliveries, runs};
use crate::model::deployment::Deployment;
use crate::model::happening::Happening;
use crate::model::ids::{AgentId, DeploymentId, DeploymentRunId, NodeId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::run::Run;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    DbFuture, DeploymentChange, DeploymentQuery, DeploymentRow, DeploymentsDb, Done, DueRun, ListedPage,
    NewDeployment, Once, RunQuery,
};
use crate::store::sqlite::SqliteDb;
use crate::store::sqlite::columns::{json, optional_json, optional_time, raw, time};
use crate::store::sqlite::lists::{List, page};
use crate::store::sqlite::once::once;

pub(super) const SELECT: &str =
    "SELECT d.id, d.agent_id, d.body, d.paused, d.next_at, d.last_run_at, d.created_at, d.updated_at, d.archived_at,
    d.sealed FROM deployments d";

fn read(row: &Row<'_>) -> rusqlite::Result<Deployment> {
    Ok(Deployment {
        id: DeploymentId(raw(row, 0)?),
        agent: AgentId(raw(row, 1)?),
        body: json(row, 2)?,
        paused: optional_json(row, 3)?,
        next_at: optional_time(row, 4)?,
        last_run_at: optional_time(row, 5)?,
        created_at: time(row, 6)?,
        updated_at: time(row, 7)?,
        archived_at: optional_time(row, 8)?,
    })
}

pub(super) fn read_row(row: &Row<'_>) -> rusqlite::Result<DeploymentRow> {
    Ok(DeploymentRow { deployment: read(row)?, sealed: row.get(9)? })
}

pub(super) fn text(value: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(|error| DbError::Corrupt(error.to_string()))
}

pub(super) fn find(
    connection: &Connection,
    tenant: TenantId,
    id: DeploymentId,
) -> Result<DeploymentRow, DbError> {
    let sql = format!("{SELECT} WHERE d.tenant_id = ?1 AND d.id = ?2");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read_row).optional()?;
    found.ok_or_else(|| Refusal::not_found("deployment", id).into())
}

fn create(connection: &Connection, new: &NewDeployment) -> Result<DeploymentRow, DbError> {
    let now = Time::now();
    let next = new.body.schedule.as_ref().and_then(|schedule| schedule.next(now));
    connection
        .prepare_cached(
            "INSERT INTO deployments (id, tenant_id, agent_id, body, sealed, next_at, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)",
        )?
        .execute(params![
            new.id.0,
            new.tenant.0,
            new.agent.0,
            text(&new.body)?,
            new.sealed,
            next.map(|time| time.0),
            now.0,
        ])?;
    deliveries::notify(connection, new.tenant, &Happening::new("deployment.created", new.id))?;
    find(connection, new.tenant, new.id)
}

fn update(
    connection: &Connection,
    tenant: TenantId,
    id: DeploymentId,
    change: DeploymentChange,
) -> Result<DeploymentRow, DbError> {
    let before = find(connection, tenant, id)?;
    let Some(next) = change(&before)? else { return Ok(before) };
    let now = Time::now();
    let after = Deployment {
        agent: next.agent,
        body: next.body,
        paused: next.paused,
        updated_at: now,
        archived_at: before.deployment.archived_at.or(next.is_archived.then_some(now)),
        ..before.deployment.clone()
    };
    connection
        .prepare_cached(
            "UPDATE deployments SET agent_id = ?2, body = ?3, sealed = ?4, paused = ?5, next_at = ?6, updated_at = ?7,
                archived_at = ?8 WHERE id = ?1",
        )?
        .execute(params![
            id.0,
            after.agent.0,
            text(&after.body)?,
            next.sealed,
            after.paused.as_ref().map(text).transpose()?,
            after.next_after(&before.deployment, now).map(|time| time.0),
            now.0,
            after.archived_at.map(|time| time.0),
        ])?;
    deliveries::notify(connection, tenant, &Happening::new(next.kind, id))?;
    find(connection, tenant, id)
}

fn list(connection: &Connection, query: &DeploymentQuery) -> Result<ListedPage<Deployment>, DbError> {
    let mut conditions = Vec::new();
    if let Some(agent) = query.agent {
        conditions.push(("d.agent_id = ?".to_owned(), vec![Value::Blob(agent.0.to_vec())]));
    }
    if let Some(is_paused) = query.is_paused {
        conditions.push((format!("d.paused IS {} NULL", if is_paused { "NOT" } else { "" }), Vec::new()));
    }
    let list = List {
        select: SELECT,
        alias: "d",
        order: "id",
        find: "SELECT created_at, id FROM deployments WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    page(connection, list, &query.list, read)
}

impl DeploymentsDb for SqliteDb {
    fn create_deployment(
        &self,
        new: NewDeployment,
        done: Once<DeploymentRow>,
    ) -> DbFuture<'_, Done<DeploymentRow>> {
        self.write(move |connection| once(connection, done, || create(connection, &new)))
    }

    fn deployment(&self, tenant: TenantId, id: DeploymentId) -> DbFuture<'_, DeploymentRow> {
        self.read(move |connection| find(connection, tenant, id))
    }

    fn update_deployment(
        &self,
        tenant: TenantId,
        id: DeploymentId,
        change: DeploymentChange,
        done: Once<DeploymentRow>,
    ) -> DbFuture<'_, Done<DeploymentRow>> {
        self.write(move |connection| once(connection, done, || update(connection, tenant, id, change)))
    }

    fn list_deployments(&self, query: DeploymentQuery) -> DbFuture<'_, ListedPage<Deployment>> {
        self.read(move |connection| list(connection, &query))
    }

    fn run(&self, tenant: TenantId, id: DeploymentRunId) -> DbFuture<'_, Run> {
        self.read(move |connection| runs::find(connection, tenant, id))
    }

    fn list_runs(&self, query: RunQuery) -> DbFuture<'_, ListedPage<Run>> {
        self.read(move |connection| runs::list(connection, &query))
    }

    fn next_run(&self) -> DbFuture<'_, Option<Time>> {
        self.read(runs::next)
    }

    fn claim_runs(&self, node: NodeId, most: usize) -> DbFuture<'_, Vec<DueRun>> {
        self.write(move |connection| runs::claim(connection, node, most))
    }

    fn fail_run(&self, run: Run, done: Once<Run>) -> DbFuture<'_, Done<Run>> {
        self.write(move |connection| once(connection, done, || runs::fail(connection, run)))
    }

    fn void_runs(&self, node: NodeId) -> DbFuture<'_, ()> {
        self.write(move |connection| runs::void(connection, node))
    }
}
