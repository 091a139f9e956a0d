//! Runs of deployments. A scheduled one is written before its session, together with the next time of the schedule, so that a time
//! counts once; a node that finds it unfinished, and its node gone, finishes it.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{deliveries, deployments};
use crate::model::deployment::Paused;
use crate::model::happening::Happening;
use crate::model::ids::{AgentId, DeploymentId, DeploymentRunId, NodeId, SessionId, TenantId};
use crate::model::refusal::Refusal;
use crate::model::run::{Run, Trigger};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{DueRun, ListQuery, ListedPage, RunQuery};
use crate::store::postgres::NOW;
use crate::store::postgres::columns::{
    number, optional_json, optional_raw, optional_time, raw, stored, text, time, uuid,
};
use crate::store::postgres::lists::{Conditions, List, page};

const SELECT: &str =
    "SELECT r.id, r.tenant_id, r.deployment_id, r.agent_id, r.agent_version, r.scheduled_at, r.session_id,
    r.error::text, r.created_at FROM deployment_runs r";
const UNFINISHED: &str = "r.session_id IS NULL AND r.error IS NULL";

/// A run that no node carries out which is alive.
fn left() -> String {
    format!(
        "{UNFINISHED} AND (r.claimed_by IS NULL
            OR NOT EXISTS (SELECT FROM nodes n WHERE n.id = r.claimed_by AND n.expires_at >= {NOW}))"
    )
}

fn read(row: &Row) -> Result<Run, DbError> {
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

pub(super) async fn find(
    client: &impl GenericClient,
    tenant: TenantId,
    id: DeploymentRunId,
) -> Result<Run, DbError> {
    let statement = client.prepare_cached(&format!("{SELECT} WHERE r.tenant_id = $1 AND r.id = $2")).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    read(&row.ok_or_else(|| Refusal::not_found("deployment run", id))?)
}

pub(super) async fn list(connection: &Object, query: RunQuery) -> Result<ListedPage<Run>, DbError> {
    let mut conditions = Conditions::default();
    if let Some(deployment) = query.deployment {
        deployments::find(connection, query.list.tenant, deployment).await?;
        conditions.with("r.deployment_id = ?", vec![Box::new(uuid(deployment.0))]);
    }
    for (column, wanted) in [("r.error", query.has_error), ("r.scheduled_at", query.is_scheduled)] {
        if let Some(is_there) = wanted {
            conditions.plain(format!("{column} IS {} NULL", if is_there { "NOT" } else { "" }));
        }
    }
    let list = List { select: SELECT, alias: "r", order: "id", table: "deployment_runs", conditions };
    // Runs are not archived.
    page(connection, list, &ListQuery { include_archived: true, ..query.list }, read).await
}

pub(super) async fn next(connection: &Object) -> Result<Option<Time>, DbError> {
    let sql = format!("SELECT FROM deployment_runs r WHERE {} LIMIT 1", left());
    if connection.query_opt(&connection.prepare_cached(&sql).await?, &[]).await?.is_some() {
        return Ok(Some(Time(0)));
    }
    let sql = "SELECT min(next_at) FROM deployments WHERE next_at IS NOT NULL";
    optional_time(&connection.query_one(&connection.prepare_cached(sql).await?, &[]).await?, 0)
}

/// Takes runs that no other node is taking.
pub(super) async fn claim(
    transaction: &Transaction<'_>,
    node: NodeId,
    most: usize,
) -> Result<Vec<DueRun>, DbError> {
    begin(transaction, most).await?;
    let sql = format!("{SELECT} WHERE {} ORDER BY r.created_at LIMIT $1 FOR UPDATE OF r SKIP LOCKED", left());
    let statement = transaction.prepare_cached(&sql).await?;
    let rows = transaction.query(&statement, &[&stored(most as u64)]).await?;
    let runs = rows.iter().map(read).collect::<Result<Vec<Run>, _>>()?;
    let ids: Vec<Uuid> = runs.iter().map(|run| uuid(run.id.0)).collect();
    let sql = "UPDATE deployment_runs SET claimed_by = $2 WHERE id = ANY($1)";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&ids, &uuid(node.0)]).await?;
    let mut due = Vec::with_capacity(runs.len());
    for run in runs {
        let row = deployments::find(transaction, run.tenant, run.deployment).await?;
        let statement = transaction.prepare_cached("SELECT data_key FROM tenants WHERE id = $1").await?;
        let data_key = transaction.query_one(&statement, &[&uuid(run.tenant.0)]).await?.try_get(0)?;
        due.push(DueRun { run, row, data_key });
    }
    Ok(due)
}

/// Writes a run for every schedule that is due, and when the schedule is due next. Schedules that another node looks at are its own.
async fn begin(transaction: &Transaction<'_>, most: usize) -> Result<(), DbError> {
    let now = Time::now();
    let sql = format!(
        "{} WHERE d.next_at IS NOT NULL AND d.next_at <= $1 ORDER BY d.next_at LIMIT $2
         FOR NO KEY UPDATE SKIP LOCKED",
        deployments::SELECT
    );
    let statement = transaction.prepare_cached(&sql).await?;
    let rows = transaction.query(&statement, &[&now.0, &stored(most as u64)]).await?;
    for row in &rows {
        let deployment = deployments::read(row)?;
        let run = Run {
            id: DeploymentRunId::random(),
            tenant: TenantId(raw(row, 10)?),
            deployment: deployment.id,
            agent: deployment.agent,
            agent_version: deployment.body.agent_version,
            trigger: Trigger::Schedule(deployment.next_at.unwrap_or(now)),
            session: None,
            error: None,
            created_at: now,
        };
        insert(transaction, &run).await?;
        let update = transaction.prepare_cached("UPDATE deployments SET next_at = $2 WHERE id = $1").await?;
        let next = deployment.next(now).map(|time| time.0);
        transaction.execute(&update, &[&uuid(deployment.id.0), &next]).await?;
    }
    Ok(())
}

/// Writes a run that begins, unless it is there.
async fn insert(transaction: &Transaction<'_>, run: &Run) -> Result<(), DbError> {
    let sql = "INSERT INTO deployment_runs (id, tenant_id, deployment_id, agent_id, agent_version, scheduled_at, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let statement = transaction.prepare_cached(sql).await?;
    let inserted = transaction
        .execute(
            &statement,
            &[
                &uuid(run.id.0),
                &uuid(run.tenant.0),
                &uuid(run.deployment.0),
                &uuid(run.agent.0),
                &stored(run.agent_version),
                &run.trigger.scheduled_at().map(|time| time.0),
                &run.created_at.0,
            ],
        )
        .await?;
    if inserted == 1 {
        let sql = "UPDATE deployments SET last_run_at = $2 WHERE id = $1";
        let update = transaction.prepare_cached(sql).await?;
        transaction.execute(&update, &[&uuid(run.deployment.0), &run.created_at.0]).await?;
        let happening = Happening::new("deployment_run.started", run.id);
        deliveries::notify(transaction, run.tenant, &happening).await?;
    }
    Ok(())
}

/// Ends a run with its session or its error. It ends once.
async fn end(transaction: &Transaction<'_>, run: &Run) -> Result<(), DbError> {
    insert(transaction, run).await?;
    let sql = format!(
        "UPDATE deployment_runs r SET session_id = $2, error = $3::text::json, claimed_by = NULL
         WHERE r.id = $1 AND {UNFINISHED}"
    );
    let session = run.session.map(|session| uuid(session.0));
    let error = run.error.as_ref().map(text).transpose()?;
    let statement = transaction.prepare_cached(&sql).await?;
    if transaction.execute(&statement, &[&uuid(run.id.0), &session, &error]).await? == 0 {
        return Err(Refusal::conflict(format!("The run `{}` has ended already.", run.id)).into());
    }
    let kind = if run.error.is_some() { "deployment_run.failed" } else { "deployment_run.succeeded" };
    deliveries::notify(transaction, run.tenant, &Happening::new(kind, run.id)).await
}

/// Ends a run with the session that was created for it.
pub(in crate::store::postgres) async fn succeed(
    transaction: &Transaction<'_>,
    run: &Run,
    session: SessionId,
) -> Result<(), DbError> {
    end(transaction, &Run { session: Some(session), ..run.clone() }).await
}

pub(super) async fn fail(transaction: &Transaction<'_>, run: Run) -> Result<Run, DbError> {
    let row = deployments::lock(transaction, run.tenant, run.deployment).await?;
    end(transaction, &run).await?;
    let error = run.error.clone().filter(|error| error.pauses() && run.trigger.scheduled_at().is_some());
    if let Some(error) = error.filter(|_| row.deployment.paused.is_none()) {
        let paused = text(&Paused::Error { error })?;
        let sql =
            "UPDATE deployments SET paused = $2::text::json, next_at = NULL, updated_at = $3 WHERE id = $1";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&uuid(run.deployment.0), &paused, &Time::now().0]).await?;
        let happening = Happening::new("deployment.paused", run.deployment);
        deliveries::notify(transaction, run.tenant, &happening).await?;
    }
    Ok(run)
}

/// Other nodes that are alive keep what they have taken.
pub(super) async fn void(transaction: &Transaction<'_>, node: NodeId) -> Result<(), DbError> {
    let sql = format!(
        "UPDATE deployment_runs SET claimed_by = NULL WHERE id IN
            (SELECT r.id FROM deployment_runs r WHERE {} AND r.claimed_by <> $1 FOR UPDATE SKIP LOCKED)",
        left()
    );
    transaction.execute(&transaction.prepare_cached(&sql).await?, &[&uuid(node.0)]).await?;
    Ok(())
}
