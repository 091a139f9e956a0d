//! Endpoints that get notices.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::deliveries;
use crate::model::delivery::{Attempt, Delivery, RetrySchedule};
use crate::model::endpoint::{Endpoint, EndpointBody, MOST_ENDPOINTS};
use crate::model::happening::Happening;
use crate::model::ids::{DeliveryId, NodeId, TenantId, WebhookEndpointId, WebhookEventId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{
    ClaimDeliveries, DbFuture, DeliveryQuery, Done, DueDelivery, EndpointChange, ListQuery, ListedPage,
    NewEndpoint, Once, WebhooksDb,
};
use crate::store::sqlite::SqliteDb;
use crate::store::sqlite::columns::{json, number, optional_time, raw, time};
use crate::store::sqlite::lists::{List, page};
use crate::store::sqlite::once::once;

const SELECT: &str =
    "SELECT w.id, w.body, w.active, w.disabled_reason, w.failures, w.last_success_at, w.last_failure_at,
    w.created_at, w.updated_at FROM webhook_endpoints w";
/// Why an endpoint is not active that its owner disabled.
const BY_OWNER: &str = "manual";

fn read(row: &Row<'_>) -> rusqlite::Result<Endpoint> {
    Ok(Endpoint {
        id: WebhookEndpointId(raw(row, 0)?),
        body: json(row, 1)?,
        is_active: row.get(2)?,
        disabled_reason: row.get(3)?,
        failures: number(row, 4)?,
        last_success_at: optional_time(row, 5)?,
        last_failure_at: optional_time(row, 6)?,
        created_at: time(row, 7)?,
        updated_at: time(row, 8)?,
    })
}

fn text(body: &EndpointBody) -> Result<String, DbError> {
    serde_json::to_string(body).map_err(|error| DbError::Corrupt(error.to_string()))
}

pub(super) fn find(
    connection: &Connection,
    tenant: TenantId,
    id: WebhookEndpointId,
) -> Result<Endpoint, DbError> {
    let sql = format!("{SELECT} WHERE w.tenant_id = ?1 AND w.id = ?2");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read).optional()?;
    found.ok_or_else(|| Refusal::not_found("webhook endpoint", id).into())
}

fn create(connection: &Connection, new: &NewEndpoint) -> Result<Endpoint, DbError> {
    let count = connection
        .prepare_cached("SELECT count(*) FROM webhook_endpoints WHERE tenant_id = ?1")?
        .query_row([new.tenant.0], |row| number(row, 0))?;
    if count >= MOST_ENDPOINTS {
        let message = format!("There are {count} webhook endpoints already. Delete one first.");
        return Err(Refusal::conflict(message).into());
    }
    let now = Time::now();
    connection
        .prepare_cached(
            "INSERT INTO webhook_endpoints (id, tenant_id, body, sealed, active, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5)",
        )?
        .execute(params![new.id.0, new.tenant.0, text(&new.body)?, new.sealed, now.0])?;
    find(connection, new.tenant, new.id)
}

fn update(
    connection: &Connection,
    tenant: TenantId,
    id: WebhookEndpointId,
    change: EndpointChange,
) -> Result<Endpoint, DbError> {
    let before = find(connection, tenant, id)?;
    let (body, active) = change(&before)?;
    let now = Time::now();
    if body != before.body {
        connection
            .prepare_cached("UPDATE webhook_endpoints SET body = ?2, updated_at = ?3 WHERE id = ?1")?
            .execute(params![id.0, text(&body)?, now.0])?;
    }
    match active {
        Some(true) if !before.is_active => enable(connection, id, now)?,
        Some(false) if before.is_active => disable(connection, id, BY_OWNER, now)?,
        Some(_) | None => {}
    }
    find(connection, tenant, id)
}

/// What waits for the endpoint is due.
fn enable(connection: &Connection, id: WebhookEndpointId, now: Time) -> Result<(), DbError> {
    connection
        .prepare_cached(
            "UPDATE webhook_endpoints SET active = 1, disabled_reason = NULL, failures = 0, updated_at = ?2 WHERE id = ?1",
        )?
        .execute(params![id.0, now.0])?;
    connection
        .prepare_cached("UPDATE deliveries SET next_at = ?2 WHERE endpoint_id = ?1 AND state = 'pending'")?
        .execute(params![id.0, now.0])?;
    Ok(())
}

/// What waits for the endpoint stays and is not tried.
pub(super) fn disable(
    connection: &Connection,
    id: WebhookEndpointId,
    reason: &str,
    now: Time,
) -> Result<(), DbError> {
    connection
        .prepare_cached(
            "UPDATE webhook_endpoints SET active = 0, disabled_reason = ?2, updated_at = ?3 WHERE id = ?1",
        )?
        .execute(params![id.0, reason, now.0])?;
    connection
        .prepare_cached("UPDATE deliveries SET next_at = NULL WHERE endpoint_id = ?1 AND state = 'pending'")?
        .execute([id.0])?;
    Ok(())
}

fn delete(connection: &Connection, tenant: TenantId, id: WebhookEndpointId) -> Result<(), DbError> {
    find(connection, tenant, id)?;
    connection.prepare_cached("DELETE FROM deliveries WHERE endpoint_id = ?1")?.execute([id.0])?;
    connection.prepare_cached("DELETE FROM webhook_endpoints WHERE id = ?1")?.execute([id.0])?;
    Ok(())
}

fn test(connection: &Connection, tenant: TenantId, id: WebhookEndpointId) -> Result<WebhookEventId, DbError> {
    if !find(connection, tenant, id)?.is_active {
        let message = format!("The webhook endpoint `{id}` is disabled. Enable it first.");
        return Err(Refusal::conflict(message).into());
    }
    let event = WebhookEventId::now();
    deliveries::insert(connection, tenant, id, event, &Happening::new("webhook.test", id))?;
    Ok(event)
}

fn list(connection: &Connection, query: ListQuery) -> Result<ListedPage<Endpoint>, DbError> {
    let list = List {
        select: SELECT,
        alias: "w",
        order: "id",
        find: "SELECT created_at, id FROM webhook_endpoints WHERE tenant_id = ?1 AND id = ?2",
        conditions: Vec::new(),
    };
    // Endpoints are not archived.
    page(connection, list, &ListQuery { include_archived: true, ..query }, read)
}

impl WebhooksDb for SqliteDb {
    fn create_endpoint(&self, new: NewEndpoint, done: Once<Endpoint>) -> DbFuture<'_, Done<Endpoint>> {
        self.write(move |connection| once(connection, done, || create(connection, &new)))
    }

    fn endpoint(&self, tenant: TenantId, id: WebhookEndpointId) -> DbFuture<'_, Endpoint> {
        self.read(move |connection| find(connection, tenant, id))
    }

    fn update_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        change: EndpointChange,
        done: Once<Endpoint>,
    ) -> DbFuture<'_, Done<Endpoint>> {
        self.write(move |connection| once(connection, done, || update(connection, tenant, id, change)))
    }

    fn delete_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        done: Once<()>,
    ) -> DbFuture<'_, Done<()>> {
        self.write(move |connection| once(connection, done, || delete(connection, tenant, id)))
    }

    fn list_endpoints(&self, query: ListQuery) -> DbFuture<'_, ListedPage<Endpoint>> {
        self.read(move |connection| list(connection, query))
    }

    fn test_endpoint(
        &self,
        tenant: TenantId,
        id: WebhookEndpointId,
        done: Once<WebhookEventId>,
    ) -> DbFuture<'_, Done<WebhookEventId>> {
        self.write(move |connection| once(connection, done, || test(connection, tenant, id)))
    }

    fn list_deliveries(&self, query: DeliveryQuery) -> DbFuture<'_, ListedPage<Delivery>> {
        self.read(move |connection| deliveries::list(connection, &query))
    }

    fn notify(&self, tenant: TenantId, happening: Happening) -> DbFuture<'_, ()> {
        self.write(move |connection| deliveries::notify(connection, tenant, &happening))
    }

    fn next_delivery(&self) -> DbFuture<'_, Option<Time>> {
        self.read(deliveries::next)
    }

    fn claim_deliveries(&self, claim: ClaimDeliveries) -> DbFuture<'_, Vec<DueDelivery>> {
        self.write(move |connection| deliveries::claim(connection, &claim))
    }

    fn finish_delivery(
        &self,
        id: DeliveryId,
        node: NodeId,
        attempt: Attempt,
        schedule: RetrySchedule,
    ) -> DbFuture<'_, bool> {
        self.write(move |connection| deliveries::finish(connection, id, node, &attempt, schedule))
    }

    fn void_deliveries(&self, node: NodeId) -> DbFuture<'_, ()> {
        self.write(move |connection| deliveries::void(connection, node))
    }
}
