//! Deployments.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

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
use crate::store::postgres::PostgresDb;
use crate::store::postgres::columns::{json, optional_json, optional_time, raw, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};
use crate::store::postgres::once::once;

pub(super) const SELECT: &str =
    "SELECT d.id, d.agent_id, d.body::text, d.paused::text, d.next_at, d.last_run_at, d.created_at, d.updated_at,
    d.archived_at, d.sealed, d.tenant_id FROM deployments d";

pub(super) fn read(row: &Row) -> Result<Deployment, DbError> {
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

async fn select(
    client: &impl GenericClient,
    tenant: TenantId,
    id: DeploymentId,
    lock: &str,
) -> Result<DeploymentRow, DbError> {
    let sql = format!("{SELECT} WHERE d.tenant_id = $1 AND d.id = $2 {lock}");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    let row = row.ok_or_else(|| Refusal::not_found("deployment", id))?;
    Ok(DeploymentRow { deployment: read(&row)?, sealed: row.try_get(9)? })
}

pub(super) async fn find(
    client: &impl GenericClient,
    tenant: TenantId,
    id: DeploymentId,
) -> Result<DeploymentRow, DbError> {
    select(client, tenant, id, "").await
}

/// A deployment that stays as it is until the transaction ends.
pub(super) async fn lock(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: DeploymentId,
) -> Result<DeploymentRow, DbError> {
    select(transaction, tenant, id, "FOR NO KEY UPDATE").await
}

async fn create(transaction: &Transaction<'_>, new: NewDeployment) -> Result<DeploymentRow, DbError> {
    let now = Time::now();
    let next = new.body.schedule.as_ref().and_then(|schedule| schedule.next(now)).map(|time| time.0);
    let sql =
        "INSERT INTO deployments (id, tenant_id, agent_id, body, sealed, next_at, created_at, updated_at)
        VALUES ($1, $2, $3, $4::text::json, $5, $6, $7, $7)";
    let statement = transaction.prepare_cached(sql).await?;
    let (id, tenant, agent) = (uuid(new.id.0), uuid(new.tenant.0), uuid(new.agent.0));
    transaction
        .execute(&statement, &[&id, &tenant, &agent, &text(&new.body)?, &new.sealed, &next, &now.0])
        .await?;
    let happening = Happening::new("deployment.created", new.id);
    deliveries::notify(transaction, new.tenant, &happening).await?;
    find(transaction, new.tenant, new.id).await
}

async fn update(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: DeploymentId,
    change: DeploymentChange,
) -> Result<DeploymentRow, DbError> {
    let before = lock(transaction, tenant, id).await?;
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
    let sql =
        "UPDATE deployments SET agent_id = $2, body = $3::text::json, sealed = $4, paused = $5::text::json,
        next_at = $6, updated_at = $7, archived_at = $8 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &uuid(id.0),
                &uuid(after.agent.0),
                &text(&after.body)?,
                &next.sealed,
                &after.paused.as_ref().map(text).transpose()?,
                &after.next_after(&before.deployment, now).map(|time| time.0),
                &now.0,
                &after.archived_at.map(|time| time.0),
            ],
        )
        .await?;
    deliveries::notify(transaction, tenant, &Happening::new(next.kind, id)).await?;
    find(transaction, tenant, id).await
}

async fn list(connection: &Object, query: DeploymentQuery) -> Result<ListedPage<Deployment>, DbError> {
    let mut conditions = Conditions::default();
    if let Some(agent) = query.agent {
        conditions.with("d.agent_id = ?", vec![Box::new(uuid(agent.0))]);
    }
    if let Some(is_paused) = query.is_paused {
        conditions.plain(if is_paused { "d.paused IS NOT NULL" } else { "d.paused IS NULL" });
    }
    let list = List { select: SELECT, alias: "d", order: "id", table: "deployments", conditions };
    page(connection, list, &query.list, read).await
}

impl DeploymentsDb for PostgresDb {
    fn create_deployment(
        &self,
        new: NewDeployment,
        done: Once<DeploymentRow>,
    ) -> DbFuture<'_, Done<DeploymentRow>> {
        self.write(move |transaction| Box::pin(once(transaction, done, create(transaction, new))))
    }

    fn deployment(&self, tenant: TenantId, id: DeploymentId) -> DbFuture<'_, DeploymentRow> {
        self.read(move |connection| Box::pin(find(connection, tenant, id)))
    }

    fn update_deployment(
        &self,
        tenant: TenantId,
        id: DeploymentId,
        change: DeploymentChange,
        done: Once<DeploymentRow>,
    ) -> DbFuture<'_, Done<DeploymentRow>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, update(transaction, tenant, id, change)))
        })
    }

    fn list_deployments(&self, query: DeploymentQuery) -> DbFuture<'_, ListedPage<Deployment>> {
        self.read(move |connection| Box::pin(list(connection, query)))
    }

    fn run(&self, tenant: TenantId, id: DeploymentRunId) -> DbFuture<'_, Run> {
        self.read(move |connection| Box::pin(runs::find(connection, tenant, id)))
    }

    fn list_runs(&self, query: RunQuery) -> DbFuture<'_, ListedPage<Run>> {
        self.read(move |connection| Box::pin(runs::list(connection, query)))
    }

    fn next_run(&self) -> DbFuture<'_, Option<Time>> {
        self.read(|connection| Box::pin(runs::next(connection)))
    }

    fn claim_runs(&self, node: NodeId, most: usize) -> DbFuture<'_, Vec<DueRun>> {
        self.write(move |transaction| Box::pin(runs::claim(transaction, node, most)))
    }

    fn fail_run(&self, run: Run, done: Once<Run>) -> DbFuture<'_, Done<Run>> {
        self.write(move |transaction| Box::pin(once(transaction, done, runs::fail(transaction, run))))
    }

    fn void_runs(&self, node: NodeId) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(runs::void(transaction, node)))
    }
}
