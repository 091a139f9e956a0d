//! The outbox of notices: queued in the transaction of what they are about, taken by a node, and tried until they are delivered or
//! given up.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::webhooks;
use crate::model::delivery::{Attempt, Delivery, DeliveryState, RetrySchedule};
use crate::model::endpoint::EndpointBody;
use crate::model::event::Event;
use crate::model::happening::{self, Happening};
use crate::model::ids::{DeliveryId, NodeId, SessionId, TenantId, WebhookEndpointId, WebhookEventId};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{ClaimDeliveries, DeliveryQuery, DueDelivery, ListQuery, ListedPage};
use crate::store::sqlite::columns::{json, number, optional_time, raw, stored, time};
use crate::store::sqlite::lists::{List, page};

const SELECT: &str =
    "SELECT d.id, d.endpoint_id, d.event_id, d.type, d.state, d.attempts, d.next_at, d.attempted_at,
    d.response_status, d.error, d.created_at FROM deliveries d";
/// Candidates that are looked at to take notices for several endpoints.
const CANDIDATES: usize = 256;
/// How long a delivery stays on record.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

fn read(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    let state: String = row.get(4)?;
    Ok(Delivery {
        id: DeliveryId(raw(row, 0)?),
        endpoint: WebhookEndpointId(raw(row, 1)?),
        event: WebhookEventId(raw(row, 2)?),
        kind: row.get(3)?,
        state: DeliveryState::parse(&state).unwrap_or(DeliveryState::Failed),
        attempts: number(row, 5)?,
        next_at: optional_time(row, 6)?,
        attempted_at: optional_time(row, 7)?,
        response_status: row.get(8)?,
        error: row.get(9)?,
        created_at: time(row, 10)?,
    })
}

/// The endpoints of a tenant that are active.
fn active(
    connection: &Connection,
    tenant: TenantId,
) -> Result<Vec<(WebhookEndpointId, EndpointBody)>, DbError> {
    let mut select = connection
        .prepare_cached("SELECT id, body FROM webhook_endpoints WHERE tenant_id = ?1 AND active = 1")?;
    let rows = select.query_map([tenant.0], |row| Ok((WebhookEndpointId(raw(row, 0)?), json(row, 1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Queues notices about something for every endpoint that wants them.
pub(in crate::store::sqlite) fn notify(
    connection: &Connection,
    tenant: TenantId,
    happening: &Happening,
) -> Result<(), DbError> {
    let event = WebhookEventId::now();
    for (endpoint, body) in active(connection, tenant)? {
        if body.wants(happening.kind) {
            insert(connection, tenant, endpoint, event, happening)?;
        }
    }
    Ok(())
}

/// The same for what events of a session are worth.
pub(in crate::store::sqlite) fn notify_events(
    connection: &Connection,
    session: i64,
    events: &[Event],
) -> Result<(), DbError> {
    if !events.iter().any(|event| happening::is_noted(&event.kind)) {
        return Ok(());
    }
    let (tenant, id) = connection
        .prepare_cached("SELECT tenant_id, id FROM sessions WHERE key = ?1")?
        .query_row([session], |row| Ok((TenantId(raw(row, 0)?), SessionId(raw(row, 1)?))))?;
    let endpoints = active(connection, tenant)?;
    if endpoints.is_empty() {
        return Ok(());
    }
    for happening in events.iter().flat_map(|event| happening::of_event(id, &event.kind, &event.body)) {
        let event = WebhookEventId::now();
        for (endpoint, _) in endpoints.iter().filter(|(_, body)| body.wants(happening.kind)) {
            insert(connection, tenant, *endpoint, event, &happening)?;
        }
    }
    Ok(())
}

/// Queues a notice for one endpoint.
pub(super) fn insert(
    connection: &Connection,
    tenant: TenantId,
    endpoint: WebhookEndpointId,
    event: WebhookEventId,
    happening: &Happening,
) -> Result<(), DbError> {
    let now = Time::now();
    connection
        .prepare_cached(
            "INSERT INTO deliveries (id, tenant_id, endpoint_id, event_id, type, body, state, next_at, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, ?7)",
        )?
        .execute(params![
            DeliveryId::now().0,
            tenant.0,
            endpoint.0,
            event.0,
            happening.kind,
            happening.notice(event, tenant, now),
            now.0,
        ])?;
    Ok(())
}

pub(super) fn list(connection: &Connection, query: &DeliveryQuery) -> Result<ListedPage<Delivery>, DbError> {
    webhooks::find(connection, query.list.tenant, query.endpoint)?;
    let mut conditions = vec![("d.endpoint_id = ?".to_owned(), vec![Value::Blob(query.endpoint.0.to_vec())])];
    if let Some(state) = query.state {
        conditions.push(("d.state = ?".to_owned(), vec![Value::Text(state.as_str().to_owned())]));
    }
    let list = List {
        select: SELECT,
        alias: "d",
        order: "id",
        find: "SELECT created_at, id FROM deliveries WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    // Deliveries are not archived.
    page(connection, list, &ListQuery { include_archived: true, ..query.list }, read)
}

pub(super) fn next(connection: &Connection) -> Result<Option<Time>, DbError> {
    let sql = "SELECT min(next_at) FROM deliveries WHERE next_at IS NOT NULL";
    let next: Option<i64> = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(next.map(Time))
}

pub(super) fn claim(connection: &Connection, claim: &ClaimDeliveries) -> Result<Vec<DueDelivery>, DbError> {
    let marks = vec!["?"; claim.except.len()].join(", ");
    let sql = format!(
        "SELECT d.id, d.tenant_id, t.data_key, d.endpoint_id, w.body, w.sealed, d.event_id, d.type, d.body
         FROM deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id JOIN tenants t ON t.id = d.tenant_id
         WHERE d.next_at IS NOT NULL AND d.next_at <= ? AND d.endpoint_id NOT IN ({marks})
         ORDER BY d.next_at LIMIT {CANDIDATES}"
    );
    let mut values = vec![Value::Integer(Time::now().0)];
    values.extend(claim.except.iter().map(|endpoint| Value::Blob(endpoint.0.to_vec())));
    let mut select = connection.prepare_cached(&sql)?;
    let rows = select.query_map(rusqlite::params_from_iter(values), |row| {
        let body: EndpointBody = json(row, 4)?;
        Ok(DueDelivery {
            id: DeliveryId(raw(row, 0)?),
            tenant: TenantId(raw(row, 1)?),
            data_key: row.get(2)?,
            endpoint: WebhookEndpointId(raw(row, 3)?),
            url: body.url,
            sealed: row.get(5)?,
            event: WebhookEventId(raw(row, 6)?),
            kind: row.get(7)?,
            body: row.get(8)?,
        })
    })?;
    let mut taken: Vec<DueDelivery> = Vec::new();
    let mut counts: HashMap<WebhookEndpointId, usize> = HashMap::new();
    for row in rows {
        let due = row?;
        let count = counts.entry(due.endpoint).or_default();
        if taken.len() < claim.most && *count < claim.most_of_one {
            *count += 1;
            taken.push(due);
        }
    }
    let mut update =
        connection.prepare_cached("UPDATE deliveries SET next_at = ?2, claimed_by = ?3 WHERE id = ?1")?;
    for due in &taken {
        update.execute(params![due.id.0, claim.until.0, claim.node.0])?;
    }
    Ok(taken)
}

pub(super) fn finish(
    connection: &Connection,
    id: DeliveryId,
    node: NodeId,
    attempt: &Attempt,
    schedule: RetrySchedule,
) -> Result<bool, DbError> {
    let found = connection
        .prepare_cached("SELECT endpoint_id, attempts FROM deliveries WHERE id = ?1 AND claimed_by = ?2")?
        .query_row(params![id.0, node.0], |row| Ok((WebhookEndpointId(raw(row, 0)?), number(row, 1)?)))
        .optional()?;
    let Some((endpoint, attempts)) = found else { return Ok(false) };
    let (attempts, now) = (attempts + 1, Time::now());
    let again = (!attempt.is_success() && !attempt.is_gone()).then(|| schedule.next(attempts, now)).flatten();
    let state = match (attempt.is_success(), again) {
        (true, _) => DeliveryState::Delivered,
        (false, Some(_)) => DeliveryState::Pending,
        (false, None) => DeliveryState::Failed,
    };
    let is_active: bool = connection
        .prepare_cached("SELECT active FROM webhook_endpoints WHERE id = ?1")?
        .query_row([endpoint.0], |row| row.get(0))?;
    connection
        .prepare_cached(
            "UPDATE deliveries SET state = ?2, attempts = ?3, next_at = ?4, claimed_by = NULL, attempted_at = ?5,
                response_status = ?6, error = ?7 WHERE id = ?1",
        )?
        .execute(params![
            id.0,
            state.as_str(),
            stored(attempts),
            again.filter(|_| is_active).map(|time| time.0),
            now.0,
            attempt.status,
            attempt.error,
        ])?;
    let sql = if attempt.is_success() {
        "UPDATE webhook_endpoints SET failures = 0, last_success_at = ?2 WHERE id = ?1"
    } else {
        "UPDATE webhook_endpoints SET failures = failures + 1, last_failure_at = ?2 WHERE id = ?1"
    };
    connection.prepare_cached(sql)?.execute(params![endpoint.0, now.0])?;
    if state == DeliveryState::Failed && is_active {
        let reason = if attempt.is_gone() { "gone" } else { "delivery_failed" };
        webhooks::disable(connection, endpoint, reason, now)?;
    }
    Ok(true)
}

pub(super) fn void(connection: &Connection, node: NodeId) -> Result<(), DbError> {
    connection
        .prepare_cached(
            "UPDATE deliveries SET next_at = CASE WHEN next_at IS NULL THEN NULL ELSE ?2 END, claimed_by = NULL
             WHERE claimed_by IS NOT NULL AND claimed_by <> ?1",
        )?
        .execute(params![node.0, Time::now().0])?;
    Ok(())
}

/// Removes deliveries that are too old, a few at a time. Answers with how many.
pub(in crate::store::sqlite) fn clean(connection: &Connection, now: Time) -> Result<usize, DbError> {
    let old = now.after(-KEPT_MS);
    let removed = connection
        .prepare_cached(
            "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE created_at < ?1 LIMIT 1000)",
        )?
        .execute([old.0])?;
    Ok(removed)
}
