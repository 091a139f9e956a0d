//! Runs of deployments. A scheduled one is written before its session, together with the next time of the schedule, so that a time
//! counts once; a node that finds it unfinished finishes it.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{deliveries, deployments};
use crate::model::deployment::Paused;
use crate::model::happening::Happening;
use crate::model::ids::{AgentId, DeploymentId, DeploymentRunId, NodeId, SessionId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::run::{Run, Trigger};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{DeploymentRow, DueRun, ListQuery, ListedPage, RunQuery};
use crate::store::sqlite::columns::{number, optional_json, optional_raw, optional_time, raw, stored, time};
use crate::store::sqlite::lists::{List, page};

const SELECT: &str = "SELECT r.id, r.tenant_id, r.deployment_id, r.agent_id, r.agent_version, r.scheduled_at, r.session_id, r.error,
    r.created_at FROM deployment_runs r";
const UNFINISHED: &str = "session_id IS NULL AND error IS NULL";

fn read(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: DeploymentRunId(raw(row, 0)?),
        tenant: TenantId(raw(row, 1)?),
        deployment: DeploymentId(raw(row, 2)?),
        agent: AgentId(raw(row, 3)?),
        agent_version: number(row, 4)?,
        trigger: optional_time(row, 5)?.map_or(Trigger::Manual, Trigger::Schedule),
        session: optional_raw(row, 6)?.map(SessionId),
        error: optional_json(row, 7)?,
        created_at: time(row, 8)?,
    })
}

pub(super) fn find(connection: &Connection, tenant: TenantId, id: DeploymentRunId) -> Result<Run, DbError> {
    let sql = format!("{SELECT} WHERE r.tenant_id = ?1 AND r.id = ?2");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read).optional()?;
    found.ok_or_else(|| Refusal::not_found("deployment run", id).into())
}

pub(super) fn list(connection: &Connection, query: &RunQuery) -> Result<ListedPage<Run>, DbError> {
    let mut conditions = Vec::new();
    if let Some(deployment) = query.deployment {
        deployments::find(connection, query.list.tenant, deployment)?;
        conditions.push(("r.deployment_id = ?".to_owned(), vec![Value::Blob(deployment.0.to_vec())]));
    }
    for (column, wanted) in [("r.error", query.has_error), ("r.scheduled_at", query.is_scheduled)] {
        if let Some(is_there) = wanted {
            conditions.push((format!("{column} IS {} NULL", if is_there { "NOT" } else { "" }), Vec::new()));
        }
    }
    let list = List {
        select: SELECT,
        alias: "r",
        order: "id",
        find: "SELECT created_at, id FROM deployment_runs WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    // Runs are not archived.
    page(connection, list, &ListQuery { include_archived: true, ..query.list }, read)
}

pub(super) fn next(connection: &Connection) -> Result<Option<Time>, DbError> {
    let sql = format!("SELECT 1 FROM deployment_runs WHERE {UNFINISHED} AND claimed_by IS NULL LIMIT 1");
    let left: Option<i64> = connection.prepare_cached(&sql)?.query_row([], |row| row.get(0)).optional()?;
    if left.is_some() {
        return Ok(Some(Time(0)));
    }
    let sql = "SELECT min(next_at) FROM deployments WHERE next_at IS NOT NULL";
    let next: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(next.map(Time))
}

pub(super) fn claim(connection: &Connection, node: NodeId, most: usize) -> Result<Vec<DueRun>, DbError> {
    begin(connection, most)?;
    let sql = format!("{SELECT} WHERE {UNFINISHED} AND r.claimed_by IS NULL ORDER BY r.created_at LIMIT ?1");
    let runs: Vec<Run> =
        connection.prepare_cached(&sql)?.query_map([stored(most as u64)], read)?.collect::<Result<_, _>>()?;
    let mut due = Vec::new();
    for run in runs {
        connection
            .prepare_cached("UPDATE deployment_runs SET claimed_by = ?2 WHERE id = ?1")?
            .execute(params![run.id.0, node.0])?;
        let row = deployments::find(connection, run.tenant, run.deployment)?;
        let data_key = connection
            .prepare_cached("SELECT data_key FROM tenants WHERE id = ?1")?
            .query_row([run.tenant.0], |row| row.get(0))?;
        due.push(DueRun { run, row, data_key });
    }
    Ok(due)
}

/// Writes a run for every schedule that is due, and when the schedule is due next.
fn begin(connection: &Connection, most: usize) -> Result<(), DbError> {
    let now = Time::now();
    let sql = format!(
        "{} WHERE d.next_at IS NOT NULL AND d.next_at <= ?1 ORDER BY d.next_at LIMIT ?2",
        deployments::SELECT
    );
    let rows: Vec<DeploymentRow> = connection
        .prepare_cached(&sql)?
        .query_map(params![now.0, stored(most as u64)], deployments::read_row)?
        .collect::<Result<_, _>>()?;
    for DeploymentRow { deployment, .. } in rows {
        let tenant: [u8; 16] = connection
            .prepare_cached("SELECT tenant_id FROM deployments WHERE id = ?1")?
            .query_row([deployment.id.0], |row| row.get(0))?;
        let run = Run {
            id: DeploymentRunId::random(),
            tenant: TenantId(tenant),
            deployment: deployment.id,
            agent: deployment.agent,
            agent_version: deployment.body.agent_version,
            trigger: Trigger::Schedule(deployment.next_at.unwrap_or(now)),
            session: None,
            error: None,
            created_at: now,
        };
        insert(connection, &run)?;
        connection
            .prepare_cached("UPDATE deployments SET next_at = ?2 WHERE id = ?1")?
            .execute(params![deployment.id.0, deployment.next(now).map(|time| time.0)])?;
    }
    Ok(())
}

/// Writes a run that begins. False when it is there.
fn insert(connection: &Connection, run: &Run) -> Result<bool, DbError> {
    let inserted = connection
        .prepare_cached(
            "INSERT INTO deployment_runs (id, tenant_id, deployment_id, agent_id, agent_version, scheduled_at, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            run.id.0,
            run.tenant.0,
            run.deployment.0,
            run.agent.0,
            stored(run.agent_version),
            run.trigger.scheduled_at().map(|time| time.0),
            run.created_at.0,
        ])?;
    if inserted == 1 {
        connection
            .prepare_cached("UPDATE deployments SET last_run_at = ?2 WHERE id = ?1")?
            .execute(params![run.deployment.0, run.created_at.0])?;
        deliveries::notify(connection, run.tenant, &Happening::new("deployment_run.started", run.id))?;
    }
    Ok(inserted == 1)
}

/// Ends a run with its session or its error. It ends once.
fn end(connection: &Connection, run: &Run) -> Result<(), DbError> {
    insert(connection, run)?;
    let sql = format!(
        "UPDATE deployment_runs SET session_id = ?2, error = ?3, claimed_by = NULL WHERE id = ?1 AND {UNFINISHED}"
    );
    let ended = connection.prepare_cached(&sql)?.execute(params![
        run.id.0,
        run.session.map(|session| session.0),
        run.error.as_ref().map(deployments::text).transpose()?,
    ])?;
    if ended == 0 {
        return Err(Refusal::conflict(format!("The run `{}` has ended already.", run.id)).into());
    }
    let kind = if run.error.is_some() { "deployment_run.failed" } else { "deployment_run.succeeded" };
    deliveries::notify(connection, run.tenant, &Happening::new(kind, run.id))
}

/// Ends a run with the session that was created for it.
pub(in crate::store::sqlite) fn succeed(
    connection: &Connection,
    run: &Run,
    session: SessionId,
) -> Result<(), DbError> {
    end(connection, &Run { session: Some(session), ..run.clone() })
}

pub(super) fn fail(connection: &Connection, run: Run) -> Result<Run, DbError> {
    end(connection, &run)?;
    let error = run.error.clone().filter(|error| error.pauses() && run.trigger.scheduled_at().is_some());
    let row = deployments::find(connection, run.tenant, run.deployment)?;
    if let Some(error) = error.filter(|_| row.deployment.paused.is_none()) {
        let paused = deployments::text(&Paused::Error { error })?;
        connection
            .prepare_cached(
                "UPDATE deployments SET paused = ?2, next_at = NULL, updated_at = ?3 WHERE id = ?1",
            )?
            .execute(params![run.deployment.0, paused, Time::now().0])?;
        deliveries::notify(connection, run.tenant, &Happening::new("deployment.paused", run.deployment))?;
    }
    Ok(run)
}

pub(super) fn void(connection: &Connection, node: NodeId) -> Result<(), DbError> {
    let sql = format!("UPDATE deployment_runs SET claimed_by = NULL WHERE {UNFINISHED} AND claimed_by <> ?1");
    connection.prepare_cached(&sql)?.execute([node.0])?;
    Ok(())
}
