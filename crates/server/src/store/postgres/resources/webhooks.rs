//! Endpoints that get notices.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use super::deliveries;
use crate::model::delivery::{Attempt, Delivery, RetrySchedule};
use crate::model::endpoint::{Endpoint, MOST_ENDPOINTS};
use crate::model::happening::Happening;
use crate::model::ids::{DeliveryId, NodeId, TenantId, WebhookEndpointId, WebhookEventId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    ClaimDeliveries, DbFuture, DeliveryQuery, Done, DueDelivery, EndpointChange, ListQuery, ListedPage,
    NewEndpoint, Once, WebhooksDb,
};
use crate::store::postgres::PostgresDb;
use crate::store::postgres::columns::{json, number, optional_time, raw, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};
use crate::store::postgres::once::once;

const SELECT: &str =
    "SELECT w.id, w.body::text, w.active, w.disabled_reason, w.failures, w.last_success_at, w.last_failure_at,
    w.created_at, w.updated_at FROM webhook_endpoints w";
/// Why an endpoint is not active that its owner disabled.
const BY_OWNER: &str = "manual";

fn read(row: &Row) -> Result<Endpoint, DbError> {
    Ok(Endpoint {
        id: WebhookEndpointId(raw(row, 0)?),
        body: json(row, 1)?,
        is_active: row.try_get(2)?,
        disabled_reason: row.try_get(3)?,
        failures: number(row, 4)?,
        last_success_at: optional_time(row, 5)?,
        last_failure_at: optional_time(row, 6)?,
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
    })
}

async fn select(
    client: &impl GenericClient,
    tenant: TenantId,
    id: WebhookEndpointId,
    lock: &str,
) -> Result<Endpoint, DbError> {
    let sql = format!("{SELECT} WHERE w.tenant_id = $1 AND w.id = $2 {lock}");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    read(&row.ok_or_else(|| Refusal::not_found("webhook endpoint", id))?)
}

pub(super) async fn find(
    client: &impl GenericClient,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<Endpoint, DbError> {
    select(client, tenant, id, "").await
}

async fn create(transaction: &Transaction<'_>, new: NewEndpoint) -> Result<Endpoint, DbError> {
    // Endpoints of a tenant are created one after the other, so that their count holds.
    let lock = transaction.prepare_cached("SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE").await?;
    transaction.query_opt(&lock, &[&uuid(new.tenant.0)]).await?;
    let sql = "SELECT count(*) FROM webhook_endpoints WHERE tenant_id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    let count = number(&transaction.query_one(&statement, &[&uuid(new.tenant.0)]).await?, 0)?;
    if count >= MOST_ENDPOINTS {
        let message = format!("There are {count} webhook endpoints already. Delete one first.");
        return Err(Refusal::conflict(message).into());
    }
    let sql = "INSERT INTO webhook_endpoints (id, tenant_id, body, sealed, active, created_at, updated_at)
        VALUES ($1, $2, $3::text::json, $4, true, $5, $5)";
    let statement = transaction.prepare_cached(sql).await?;
    let (id, tenant, now) = (uuid(new.id.0), uuid(new.tenant.0), Time::now());
    transaction.execute(&statement, &[&id, &tenant, &text(&new.body)?, &new.sealed, &now.0]).await?;
    find(transaction, new.tenant, new.id).await
}

async fn update(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
    change: EndpointChange,
) -> Result<Endpoint, DbError> {
    let before = select(transaction, tenant, id, "FOR UPDATE").await?;
    let (body, active) = change(&before)?;
    let now = Time::now();
    if body != before.body {
        let sql = "UPDATE webhook_endpoints SET body = $2::text::json, updated_at = $3 WHERE id = $1";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&uuid(id.0), &text(&body)?, &now.0]).await?;
    }
    match active {
        Some(true) if !before.is_active => enable(transaction, id, now).await?,
        Some(false) if before.is_active => disable(transaction, id, BY_OWNER, now).await?,
        Some(_) | None => {}
    }
    find(transaction, tenant, id).await
}

/// What waits for the endpoint is due.
async fn enable(transaction: &Transaction<'_>, id: WebhookEndpointId, now: Time) -> Result<(), DbError> {
    for sql in [
        "UPDATE webhook_endpoints SET active = true, disabled_reason = NULL, failures = 0, updated_at = $2 WHERE id = $1",
        "UPDATE deliveries SET next_at = $2 WHERE endpoint_id = $1 AND state = 'pending'",
    ] {
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&uuid(id.0), &now.0]).await?;
    }
    Ok(())
}

/// What waits for the endpoint stays and is not tried.
pub(super) async fn disable(
    transaction: &Transaction<'_>,
    id: WebhookEndpointId,
    reason: &str,
    now: Time,
) -> Result<(), DbError> {
    let sql =
        "UPDATE webhook_endpoints SET active = false, disabled_reason = $2, updated_at = $3 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &reason, &now.0]).await?;
    let sql = "UPDATE deliveries SET next_at = NULL WHERE endpoint_id = $1 AND state = 'pending'";
    transaction.execute(&transaction.prepare_cached(sql).await?, &[&uuid(id.0)]).await?;
    Ok(())
}

async fn delete(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<(), DbError> {
    select(transaction, tenant, id, "FOR UPDATE").await?;
    for sql in
        ["DELETE FROM deliveries WHERE endpoint_id = $1", "DELETE FROM webhook_endpoints WHERE id = $1"]
    {
        transaction.execute(&transaction.prepare_cached(sql).await?, &[&uuid(id.0)]).await?;
    }
    Ok(())
}

async fn test(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<WebhookEventId, DbError> {
    if !find(transaction, tenant, id).await?.is_active {
        let message = format!("The webhook endpoint `{id}` is disabled. Enable it first.");
        return Err(Refusal::conflict(message).into());
    }
    let event = WebhookEventId::now();
    deliveries::insert(transaction, tenant, id, event, &Happening::new("webhook.test", id)).await?;
    Ok(event)
}

async fn list(connection: &Object, query: ListQuery) -> Result<ListedPage<Endpoint>, DbError> {
    let conditions = Conditions::default();
    let list = List { select: SELECT, alias: "w", order: "id", table: "webhook_endpoints", conditions };
    // Endpoints are not archived.
    page(connection, list, &ListQuery { include_archived: true, ..query }, read).await
}

impl WebhooksDb for PostgresDb {
    fn create_endpoint(&self, new: NewEndpoint, done: Once<Endpoint>) -> DbFuture<'_, Done<Endpoint>> {
        self.write(move |transaction| Box::pin(once(transaction, done, create(transaction, new))))
    }

    fn endpoint(&self, tenant: TenantId, id: WebhookEndpointId) -> DbFuture<'_, Endpoint> {
        self.read(move |connection| Box::pin(find(connection, tenant, id)))
    }

    fn update_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        change: EndpointChange,
        done: Once<Endpoint>,
    ) -> DbFuture<'_, Done<Endpoint>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, update(transaction, tenant, id, change)))
        })
    }

    fn delete_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        done: Once<()>,
    ) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| Box::pin(once(transaction, done, delete(transaction, tenant, id))))
    }

    fn list_endpoints(&self, query: ListQuery) -> DbFuture<'_, ListedPage<Endpoint>> {
        self.read(move |connection| Box::pin(list(connection, query)))
    }

    fn test_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        done: Once<WebhookEventId>,
    ) -> DbFuture<'_, Done<WebhookEventId>> {
        self.write(move |transaction| Box::pin(once(transaction, done, test(transaction, tenant, id))))
    }

    fn list_deliveries(&self, query: DeliveryQuery) -> DbFuture<'_, ListedPage<Delivery>> {
        self.read(move |connection| Box::pin(deliveries::list(connection, query)))
    }

    fn notify(&self, tenant: TenantId, happening: Happening) -> DbFuture<'_, ()> {
        self.write(move |transaction| {
            Box::pin(async move { deliveries::notify(transaction, tenant, &happening).await })
        })
    }

    fn next_delivery(&self) -> DbFuture<'_, Option<Time>> {
        self.read(|connection| Box::pin(deliveries::next(connection)))
    }

    fn claim_deliveries(&self, claim: ClaimDeliveries) -> DbFuture<'_, Vec<DueDelivery>> {
        self.write(move |transaction| Box::pin(deliveries::claim(transaction, claim)))
    }

    fn finish_delivery(
        &self,
        id: DeliveryId,
        node: NodeId,
        attempt: Attempt,
        schedule: RetrySchedule,
    ) -> DbFuture<'_, bool> {
        self.write(move |transaction| Box::pin(deliveries::finish(transaction, id, node, attempt, schedule)))
    }

    fn void_deliveries(&self, node: NodeId) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(deliveries::void(transaction, node)))
    }
}
