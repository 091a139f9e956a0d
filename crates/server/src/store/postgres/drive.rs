//! Driving sessions: claiming them, and everything that a seat reads. Claims skip heads that another node is about to claim.

use std::collections::HashMap;
use std::time::Duration;

use deadpool_postgres::{GenericClient, Object, Transaction};
use qoder_types::InboxEntry;

use super::columns::{json, number, optional_raw, raw, stored, uuid};
use super::{PostgresDb, heads, recover, sessions, threads};
use crate::model::event::Event;
use crate::model::ids::{NodeId, SessionId, TenantId};
use crate::model::outcome::Outcome;
use crate::model::refusal::Refusal;
use crate::model::status::Status;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::running;
use crate::store::port::{
    Append, Appended, Claim, DbFuture, DriveDb, InboxRow, RecordRow, Recovered, SeatRow, Stranded,
    UnusedWorkspace,
};
use crate::store::record_parts;

/// When the statement began, which an index can be compared with.
const STATEMENT_TIME: &str = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint";
/// How long a session is left to the node that alone has its files, in microseconds.
const HOME_FIRST: i64 = 2_000_000;
const DUE: &str = "wake_at IS NOT NULL AND lease_node IS NULL AND quarantined_at IS NULL";

/// The records of a log, in order.
pub(super) async fn records(
    client: &impl GenericClient,
    tenant: TenantId,
    log: i64,
) -> Result<Vec<RecordRow>, DbError> {
    let sql = "SELECT seq, body, refs, blob FROM records WHERE log_key = $1 ORDER BY seq";
    let statement = client.prepare_cached(sql).await?;
    let rows = client.query(&statement, &[&log]).await?;
    let mut hashes: Vec<Vec<u8>> = Vec::new();
    for row in &rows {
        let references: Option<&[u8]> = row.try_get(2)?;
        hashes.extend(record_parts::hashes(references.unwrap_or_default()).map(<[u8]>::to_vec));
    }
    hashes.sort_unstable();
    hashes.dedup();
    let mut known: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    if !hashes.is_empty() {
        let sql = "SELECT sha256, body FROM parts WHERE tenant_id = $1 AND sha256 = ANY($2)";
        let statement = client.prepare_cached(sql).await?;
        for row in client.query(&statement, &[&uuid(tenant.0), &hashes]).await? {
            known.insert(row.try_get(0)?, row.try_get(1)?);
        }
    }
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let line = match row.try_get::<_, Option<&[u8]>>(2)? {
            None => row.try_get(1)?,
            Some(references) => record_parts::assemble(row.try_get(1)?, references, &known)?,
        };
        found.push(RecordRow { seq: number(row, 0)?, line, blob: row.try_get(3)? });
    }
    Ok(found)
}

/// True while a session waits for the node that alone has its files, so that another one (`$node`) leaves it for a moment.
fn waits_for_home(node: &str) -> String {
    format!(
        "(h.home_node IS NOT NULL AND h.wake_at > {STATEMENT_TIME} - {HOME_FIRST}
          AND EXISTS (SELECT FROM nodes n WHERE n.home = h.home_node AND n.id <> {node} AND n.expires_at >= {STATEMENT_TIME}
              AND NOT n.draining))"
    )
}

async fn claim(
    transaction: &Transaction<'_>,
    node: NodeId,
    most: usize,
) -> Result<(Vec<Claim>, Vec<Recovered>), DbError> {
    let sql = format!(
        "SELECT {} FROM heads h WHERE {DUE} AND wake_at <= {STATEMENT_TIME} AND NOT {}
         ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED",
        heads::columns(),
        waits_for_home("$2")
    );
    let statement = transaction.prepare_cached(&sql).await?;
    let rows = transaction.query(&statement, &[&stored(most as u64), &uuid(node.0)]).await?;
    let (mut claims, mut recovered) = (Vec::new(), Vec::new());
    for row in &rows {
        let mut head = heads::read(row)?;
        let key = head.key;
        if let Some(events) = recover::give_up(transaction, &mut head).await? {
            recovered.push(Recovered { key, events });
            continue;
        }
        head.lease_to(node);
        if head.status == Status::Rescheduling {
            head.become_status(Status::Running);
            let events = heads::add(transaction, &mut head, vec![running()]).await?;
            recovered.push(Recovered { key, events });
        }
        heads::save(transaction, &head).await?;
        claims.push(heads::claim(transaction, &head).await?);
    }
    Ok((claims, recovered))
}

async fn seat(connection: &Object, key: i64) -> Result<SeatRow, DbError> {
    let session = sessions::by_key(connection, key).await?;
    let sql = "SELECT t.id, t.data_key, e.body::text, h.inbox_seq, h.workspace, h.home_node FROM sessions s JOIN tenants t ON t.id = s.tenant_id
        JOIN environments e ON e.id = s.environment_id JOIN heads h ON h.session_key = s.key WHERE s.key = $1";
    let statement = connection.prepare_cached(sql).await?;
    let row = connection.query_opt(&statement, &[&key]).await?.ok_or(DbError::Fenced(key))?;
    let tenant = TenantId(raw(&row, 0)?);
    // The number of the last entry is read before the entries: one that is left in between is among them, and none is missed.
    Ok(SeatRow {
        session,
        tenant,
        data_key: row.try_get(1)?,
        environment: json(&row, 2)?,
        inbox_seq: number(&row, 3)?,
        workspace: row.try_get(4)?,
        home: optional_raw(&row, 5)?.map(NodeId),
        records: records(connection, tenant, key).await?,
        threads: threads::rows(connection, tenant, key).await?,
        inbox: inbox_after(connection, key, 0).await?,
    })
}

pub(super) async fn inbox_after(
    client: &impl GenericClient,
    key: i64,
    seen: u64,
) -> Result<Vec<InboxRow>, DbError> {
    let sql = "SELECT seq, body FROM inbox WHERE session_key = $1 AND seq > $2 ORDER BY seq";
    let statement = client.prepare_cached(sql).await?;
    let mut entries = Vec::new();
    for row in client.query(&statement, &[&key, &stored(seen)]).await? {
        let entry: InboxEntry = serde_json::from_slice(row.try_get(1)?)
            .map_err(|error| DbError::Corrupt(format!("an inbox entry: {error}")))?;
        entries.push(InboxRow { seq: number(&row, 0)?, entry });
    }
    Ok(entries)
}

async fn export(connection: &Object, id: SessionId) -> Result<(TenantId, Vec<RecordRow>), DbError> {
    let statement = connection.prepare_cached("SELECT key, tenant_id FROM sessions WHERE id = $1").await?;
    let row = connection.query_opt(&statement, &[&uuid(id.0)]).await?;
    let row = row.ok_or_else(|| Refusal::not_found("session", id))?;
    let tenant = TenantId(raw(&row, 1)?);
    Ok((tenant, records(connection, tenant, row.try_get(0)?).await?))
}

async fn next_due(connection: &Object, node: NodeId) -> Result<Option<Duration>, DbError> {
    let waits = waits_for_home("$1");
    let sql = format!(
        "SELECT min(wake_at + CASE WHEN {waits} THEN {HOME_FIRST} ELSE 0 END) - {STATEMENT_TIME} FROM heads h WHERE {DUE}"
    );
    let statement = connection.prepare_cached(&sql).await?;
    let row = connection.query_one(&statement, &[&uuid(node.0)]).await?;
    let due: Option<i64> = row.try_get(0)?;
    Ok(due.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0))))
}

impl DriveDb for PostgresDb {
    fn claim(&self, node: NodeId, most: usize) -> DbFuture<'_, (Vec<Claim>, Vec<Recovered>)> {
        self.write(move |transaction| Box::pin(claim(transaction, node, most)))
    }

    fn seat(&self, key: i64) -> DbFuture<'_, SeatRow> {
        self.read(move |connection| Box::pin(seat(connection, key)))
    }

    fn append(&self, commit: Append) -> DbFuture<'_, Appended> {
        Box::pin(self.append_once(commit))
    }

    fn inbox_after(&self, key: i64, seen: u64) -> DbFuture<'_, Vec<InboxRow>> {
        self.read(move |connection| Box::pin(inbox_after(connection, key, seen)))
    }

    fn outcomes(&self, key: i64) -> DbFuture<'_, Vec<Outcome>> {
        self.read(move |connection| Box::pin(heads::outcomes(connection, key)))
    }

    fn release(&self, key: i64, fence: i64, failed: bool) -> DbFuture<'_, Vec<Event>> {
        self.write(move |transaction| Box::pin(recover::release(transaction, key, fence, failed)))
    }

    fn fail(&self, key: i64, fence: i64, error: String) -> DbFuture<'_, Vec<Event>> {
        self.write(move |transaction| {
            Box::pin(async move { recover::fail(transaction, key, fence, &error).await })
        })
    }

    fn void_leases(&self, node: NodeId) -> DbFuture<'_, Vec<Recovered>> {
        Box::pin(recover::void_leases(self, node))
    }

    fn next_due(&self, node: NodeId) -> DbFuture<'_, Option<Duration>> {
        self.read(move |connection| Box::pin(next_due(connection, node)))
    }

    fn unused_workspaces(&self, before: Time, limit: usize) -> DbFuture<'_, Vec<UnusedWorkspace>> {
        self.read(move |connection| Box::pin(recover::unused_workspaces(connection, before, limit)))
    }

    fn forget_workspace(&self, key: i64) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(recover::forget_workspace(transaction, key)))
    }

    fn quarantined(&self) -> DbFuture<'_, Vec<Stranded>> {
        self.read(|connection| Box::pin(recover::quarantined(connection)))
    }

    fn release_quarantined(&self, id: SessionId) -> DbFuture<'_, bool> {
        self.write(move |transaction| Box::pin(recover::release_quarantined(transaction, id)))
    }

    fn export(&self, id: SessionId) -> DbFuture<'_, (TenantId, Vec<RecordRow>)> {
        self.read(move |connection| Box::pin(export(connection, id)))
    }
}
