//! The outbox of notices: queued in the transaction of what they are about, taken by one node, and tried until they are delivered or
//! given up. What changes an endpoint and its notices locks the endpoint first.

use std::collections::HashMap;

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;
use uuid::Uuid;

use super::webhooks;
use crate::model::delivery::{Attempt, Delivery, DeliveryState, RetrySchedule};
use crate::model::endpoint::EndpointBody;
use crate::model::event::Event;
use crate::model::happening::{self, Happening};
use crate::model::ids::{
    DeliveryId, EventId, NodeId, SessionId, TenantId, WebhookEndpointId, WebhookEventId,
};
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{ClaimDeliveries, DeliveryQuery, DueDelivery, ListQuery, ListedPage};
use crate::store::postgres::NOW;
use crate::store::postgres::columns::{json, number, optional_time, raw, stored, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};

const SELECT: &str =
    "SELECT d.id, d.endpoint_id, d.event_id, d.type, d.state, d.attempts, d.next_at, d.attempted_at,
    d.response_status, d.error, d.created_at FROM deliveries d";
/// The columns of a notice that is queued.
pub(in crate::store::postgres) const INSERT: &str =
    "INSERT INTO deliveries (id, tenant_id, endpoint_id, event_id, type, body, state, next_at, created_at)";
/// True when the endpoint `w` wants the notice `u`.
pub(in crate::store::postgres) const WANTS: &str =
    "EXISTS (SELECT FROM json_array_elements_text(w.body -> 'events') AS x (wanted) WHERE x.wanted = u.kind
        OR (right(x.wanted, 1) = '*' AND starts_with(u.kind, left(x.wanted, -1))))";
/// Candidates that are looked at to take notices for several endpoints.
const CANDIDATES: usize = 256;
/// How long a delivery stays on record.
const KEPT_MS: i64 = 30 * 24 * 60 * 60 * 1000;

fn read(row: &Row) -> Result<Delivery, DbError> {
    let status: Option<i32> = row.try_get(8)?;
    Ok(Delivery {
        id: DeliveryId(raw(row, 0)?),
        endpoint: WebhookEndpointId(raw(row, 1)?),
        event: WebhookEventId(raw(row, 2)?),
        kind: row.try_get(3)?,
        state: DeliveryState::parse(row.try_get(4)?).unwrap_or(DeliveryState::Failed),
        attempts: number(row, 5)?,
        next_at: optional_time(row, 6)?,
        attempted_at: optional_time(row, 7)?,
        response_status: status.and_then(|status| u16::try_from(status).ok()),
        error: row.try_get(9)?,
        created_at: time(row, 10)?,
    })
}

/// Notices about things that happened, as columns of a statement. They are made once, however often the statement is tried.
pub(in crate::store::postgres) struct Notices {
    /// The event of the session that each follows from; of no meaning for one that follows from none.
    pub(in crate::store::postgres) of: Vec<Uuid>,
    /// What each is about, the same for all endpoints.
    pub(in crate::store::postgres) ids: Vec<Uuid>,
    pub(in crate::store::postgres) kinds: Vec<&'static str>,
    pub(in crate::store::postgres) bodies: Vec<String>,
    pub(in crate::store::postgres) at: i64,
}

impl Notices {
    fn new(tenant: TenantId, happenings: impl Iterator<Item = (EventId, Happening)>) -> Self {
        let at = Time::now();
        let (of, ids, kinds, bodies) = Default::default();
        let mut notices = Self { of, ids, kinds, bodies, at: at.0 };
        for (event, happening) in happenings {
            let id = WebhookEventId::now();
            notices.of.push(uuid(event.0));
            notices.ids.push(uuid(id.0));
            notices.kinds.push(happening.kind);
            notices.bodies.push(happening.notice(id, tenant, at));
        }
        notices
    }

    /// What events of a session are worth: each with its type and body.
    pub(in crate::store::postgres) fn of_events<'a>(
        (tenant, session): (TenantId, SessionId),
        events: impl Iterator<Item = (EventId, &'a str, &'a str)>,
    ) -> Self {
        let noted = events.filter(|(_, kind, _)| happening::is_noted(kind));
        let happenings = noted.flat_map(|(id, kind, body)| {
            happening::of_event(session, kind, body).into_iter().map(move |happening| (id, happening))
        });
        Self::new(tenant, happenings)
    }

    /// Puts them into the outbox, for every endpoint that wants them.
    async fn store(&self, client: &impl GenericClient, tenant: TenantId) -> Result<(), DbError> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "{INSERT} SELECT gen_random_uuid(), $1, w.id, u.id, u.kind, u.body, 'pending', $5, $5
             FROM unnest($2::uuid[], $3::text[], $4::text[]) AS u (id, kind, body)
                JOIN webhook_endpoints w ON w.tenant_id = $1 AND w.active AND {WANTS}"
        );
        let statement = client.prepare_cached(&sql).await?;
        client
            .execute(&statement, &[&uuid(tenant.0), &self.ids, &self.kinds, &self.bodies, &self.at])
            .await?;
        Ok(())
    }
}

/// Queues notices about something for every endpoint that wants them.
pub(in crate::store::postgres) async fn notify(
    client: &impl GenericClient,
    tenant: TenantId,
    happening: &Happening,
) -> Result<(), DbError> {
    let happenings = [(EventId([0; 16]), happening.clone())].into_iter();
    Notices::new(tenant, happenings).store(client, tenant).await
}

/// The same for what events of a session are worth.
pub(in crate::store::postgres) async fn notify_events(
    client: &impl GenericClient,
    session: i64,
    events: &[Event],
) -> Result<(), DbError> {
    if !events.iter().any(|event| happening::is_noted(&event.kind)) {
        return Ok(());
    }
    let statement = client.prepare_cached("SELECT tenant_id, id FROM sessions WHERE key = $1").await?;
    let row = client.query_one(&statement, &[&session]).await?;
    let (tenant, session) = (TenantId(raw(&row, 0)?), SessionId(raw(&row, 1)?));
    let events = events.iter().map(|event| (event.id, event.kind.as_str(), event.body.as_str()));
    Notices::of_events((tenant, session), events).store(client, tenant).await
}

/// Queues a notice for one endpoint.
pub(super) async fn insert(
    client: &impl GenericClient,
    tenant: TenantId,
    endpoint: WebhookEndpointId,
    event: WebhookEventId,
    happening: &Happening,
) -> Result<(), DbError> {
    let now = Time::now();
    let sql = format!("{INSERT} VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $7)");
    let statement = client.prepare_cached(&sql).await?;
    client
        .execute(
            &statement,
            &[
                &uuid(DeliveryId::now().0),
                &uuid(tenant.0),
                &uuid(endpoint.0),
                &uuid(event.0),
                &happening.kind,
                &happening.notice(event, tenant, now),
                &now.0,
            ],
        )
        .await?;
    Ok(())
}

pub(super) async fn list(connection: &Object, query: DeliveryQuery) -> Result<ListedPage<Delivery>, DbError> {
    webhooks::find(connection, query.list.tenant, query.endpoint).await?;
    let mut conditions = Conditions::default();
    conditions.with("d.endpoint_id = ?", vec![Box::new(uuid(query.endpoint.0))]);
    if let Some(state) = query.state {
        conditions.with("d.state = ?", vec![Box::new(state.as_str())]);
    }
    let list = List { select: SELECT, alias: "d", order: "id", table: "deliveries", conditions };
    // Deliveries are not archived.
    page(connection, list, &ListQuery { include_archived: true, ..query.list }, read).await
}

/// A notice that was queued while its endpoint was disabled waits, too.
pub(super) async fn next(connection: &Object) -> Result<Option<Time>, DbError> {
    let sql =
        "SELECT d.next_at FROM deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id AND w.active
        WHERE d.next_at IS NOT NULL ORDER BY d.next_at LIMIT 1";
    let row = connection.query_opt(&connection.prepare_cached(sql).await?, &[]).await?;
    row.map(|row| time(&row, 0)).transpose()
}

fn read_due(row: &Row) -> Result<DueDelivery, DbError> {
    let body: EndpointBody = json(row, 4)?;
    Ok(DueDelivery {
        id: DeliveryId(raw(row, 0)?),
        tenant: TenantId(raw(row, 1)?),
        data_key: row.try_get(2)?,
        endpoint: WebhookEndpointId(raw(row, 3)?),
        url: body.url,
        sealed: row.try_get(5)?,
        event: WebhookEventId(raw(row, 6)?),
        kind: row.try_get(7)?,
        body: row.try_get(8)?,
    })
}

/// Takes notices that no other node is taking.
pub(super) async fn claim(
    transaction: &Transaction<'_>,
    claim: ClaimDeliveries,
) -> Result<Vec<DueDelivery>, DbError> {
    let sql = format!(
        "SELECT d.id, d.tenant_id, t.data_key, d.endpoint_id, w.body::text, w.sealed, d.event_id, d.type, d.body
         FROM deliveries d JOIN webhook_endpoints w ON w.id = d.endpoint_id AND w.active
            JOIN tenants t ON t.id = d.tenant_id
         WHERE d.next_at IS NOT NULL AND d.next_at <= $1 AND d.endpoint_id <> ALL($2)
         ORDER BY d.next_at LIMIT {CANDIDATES} FOR UPDATE OF d SKIP LOCKED"
    );
    let except: Vec<Uuid> = claim.except.iter().map(|endpoint| uuid(endpoint.0)).collect();
    let statement = transaction.prepare_cached(&sql).await?;
    let rows = transaction.query(&statement, &[&Time::now().0, &except]).await?;
    let mut taken: Vec<DueDelivery> = Vec::new();
    let mut counts: HashMap<WebhookEndpointId, usize> = HashMap::new();
    for row in &rows {
        let due = read_due(row)?;
        let count = counts.entry(due.endpoint).or_default();
        if taken.len() < claim.most && *count < claim.most_of_one {
            *count += 1;
            taken.push(due);
        }
    }
    let ids: Vec<Uuid> = taken.iter().map(|due| uuid(due.id.0)).collect();
    let sql = "UPDATE deliveries SET next_at = $2, claimed_by = $3 WHERE id = ANY($1)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&ids, &claim.until.0, &uuid(claim.node.0)]).await?;
    Ok(taken)
}

pub(super) async fn finish(
    transaction: &Transaction<'_>,
    id: DeliveryId,
    node: NodeId,
    attempt: Attempt,
    schedule: RetrySchedule,
) -> Result<bool, DbError> {
    let sql = "SELECT w.id, w.active FROM webhook_endpoints w JOIN deliveries d ON d.endpoint_id = w.id
        WHERE d.id = $1 FOR UPDATE OF w";
    let row = transaction.query_opt(&transaction.prepare_cached(sql).await?, &[&uuid(id.0)]).await?;
    let Some(row) = row else { return Ok(false) };
    let (endpoint, is_active): (_, bool) = (WebhookEndpointId(raw(&row, 0)?), row.try_get(1)?);
    let sql = "SELECT attempts FROM deliveries WHERE id = $1 AND claimed_by = $2 FOR UPDATE";
    let statement = transaction.prepare_cached(sql).await?;
    let row = transaction.query_opt(&statement, &[&uuid(id.0), &uuid(node.0)]).await?;
    let Some(row) = row else { return Ok(false) };
    let (attempts, now) = (number(&row, 0)? + 1, Time::now());
    let again = (!attempt.is_success() && !attempt.is_gone()).then(|| schedule.next(attempts, now)).flatten();
    let state = match (attempt.is_success(), again) {
        (true, _) => DeliveryState::Delivered,
        (false, Some(_)) => DeliveryState::Pending,
        (false, None) => DeliveryState::Failed,
    };
    let sql =
        "UPDATE deliveries SET state = $2, attempts = $3, next_at = $4, claimed_by = NULL, attempted_at = $5,
        response_status = $6, error = $7 WHERE id = $1";
    let again = again.filter(|_| is_active).map(|time| time.0);
    let status = attempt.status.map(i32::from);
    // PostgreSQL has no text with U+0000.
    let error = attempt.error.as_ref().map(|error| error.replace('\0', ""));
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[&uuid(id.0), &state.as_str(), &stored(attempts), &again, &now.0, &status, &error],
        )
        .await?;
    let sql = if attempt.is_success() {
        "UPDATE webhook_endpoints SET failures = 0, last_success_at = $2 WHERE id = $1"
    } else {
        "UPDATE webhook_endpoints SET failures = failures + 1, last_failure_at = $2 WHERE id = $1"
    };
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(endpoint.0), &now.0]).await?;
    if state == DeliveryState::Failed && is_active {
        let reason = if attempt.is_gone() { "gone" } else { "delivery_failed" };
        webhooks::disable(transaction, endpoint, reason, now).await?;
    }
    Ok(true)
}

/// Other nodes that are alive keep what they have taken.
pub(super) async fn void(transaction: &Transaction<'_>, node: NodeId) -> Result<(), DbError> {
    let sql = format!(
        "UPDATE deliveries SET next_at = CASE WHEN next_at IS NULL THEN NULL ELSE $2::bigint END, claimed_by = NULL
         WHERE id IN (SELECT d.id FROM deliveries d WHERE d.claimed_by IS NOT NULL AND d.claimed_by <> $1
            AND NOT EXISTS (SELECT FROM nodes n WHERE n.id = d.claimed_by AND n.expires_at >= {NOW})
            FOR UPDATE SKIP LOCKED)"
    );
    let statement = transaction.prepare_cached(&sql).await?;
    transaction.execute(&statement, &[&uuid(node.0), &Time::now().0]).await?;
    Ok(())
}

/// Removes deliveries that are too old, a few at a time. Answers with how many.
pub(in crate::store::postgres) async fn clean(
    transaction: &Transaction<'_>,
    now: Time,
) -> Result<u64, DbError> {
    let sql = "DELETE FROM deliveries WHERE id IN
        (SELECT id FROM deliveries WHERE created_at < $1 LIMIT 1000 FOR UPDATE SKIP LOCKED)";
    let old = now.after(-KEPT_MS).0;
    Ok(transaction.execute(&transaction.prepare_cached(sql).await?, &[&old]).await?)
}
