//! What a seat did becomes one statement: records, events, actions, taken inputs, status, usage and the rest are one commit. What it
//! did in threads comes before, under the lock of the head, in the same transaction. When a connection is lost in it, the head says
//! whether it counts.

use std::time::Instant;

use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::Row;
use uuid::Uuid;

use super::columns::{number, stored, text, time, uuid};
use super::resources::deliveries::{INSERT, Notices, WANTS};
use super::sessions::events;
use super::{DEADLINE, NOW, PostgresDb, checkout, drive, heads, threads, within};
use crate::model::event::{Event, NewEvent};
use crate::model::ids::ThreadId;
use crate::store::error::DbError;
use crate::store::head::running;
use crate::store::port::{Append, Appended, NewRecord};
use crate::store::record_parts;

/// Which events of an append are stored: the first one when a turn begins, the last ones when the session comes to rest and that is
/// news.
const OF_BEGIN: i32 = 0;
const OF_SEAT: i32 = 1;
const OF_REST: i32 = 2;

/// No row means that another holder has the session, or that the log is not where it was; then nothing is written.
fn statement() -> String {
    format!(
        "WITH old AS MATERIALIZED (
            SELECT h.session_key, h.event_seq, h.inbox_seq, greatest(h.last_at, {NOW}) AS now,
                ($20 AND h.status = 'idle') AS starts,
                ($28 AND h.inbox_seq = $29) AS rests,
                (h.status <> 'idle' OR $20 OR h.stop_reason::jsonb IS DISTINCT FROM $30::text::jsonb) AS is_news
            FROM heads h WHERE h.session_key = $1 AND h.fence = $2 AND h.record_seq = $3 FOR UPDATE),
        kept AS MATERIALIZED (
            SELECT u.id, u.type, u.processed, u.previewed, u.body, u.blob, u.thread, u.posted, old.now,
                old.event_seq + row_number() OVER (ORDER BY u.place) AS seq
            FROM old, unnest($13::uuid[], $14::text[], $15::boolean[], $16::boolean[], $17::bytea[], $18::text[], $19::integer[],
                $32::uuid[], $33::boolean[])
                WITH ORDINALITY AS u (id, type, processed, previewed, body, blob, part, thread, posted, place)
            WHERE u.part = {OF_SEAT} OR (u.part = {OF_BEGIN} AND old.starts)
                OR (u.part = {OF_REST} AND old.rests AND old.is_news)),
        counted AS MATERIALIZED (SELECT count(*) AS events FROM kept),
        h AS (
            UPDATE heads SET
                record_seq = heads.record_seq + cardinality($4::bigint[]),
                event_seq = heads.event_seq + counted.events,
                status = CASE WHEN old.rests THEN 'idle' WHEN old.starts THEN 'running' ELSE heads.status END,
                stop_reason = CASE WHEN old.rests THEN $30::text::json ELSE heads.stop_reason END,
                active_ms = heads.active_ms + CASE WHEN old.rests AND heads.running_since IS NOT NULL
                    THEN greatest(0, (old.now - heads.running_since) / 1000) ELSE 0 END,
                running_since = CASE WHEN old.rests THEN NULL WHEN old.starts THEN coalesce(heads.running_since, old.now)
                    ELSE heads.running_since END,
                lease_node = CASE WHEN old.rests AND $31 THEN NULL ELSE heads.lease_node END,
                wake_at = CASE WHEN old.rests AND $31 THEN NULL ELSE heads.wake_at END,
                attempts = CASE WHEN $27 THEN 0 ELSE heads.attempts END,
                usage = coalesce($26::text::json, heads.usage),
                outcomes = coalesce($40::text::json, heads.outcomes),
                workspace = coalesce($41::text, heads.workspace),
                home_node = CASE WHEN $41::text IS NULL THEN heads.home_node ELSE $42::uuid END,
                last_at = old.now
            FROM old, counted WHERE heads.session_key = old.session_key),
        r AS (
            INSERT INTO records (log_key, seq, at, kind, body, refs, blob)
            SELECT old.session_key, u.seq, u.at, u.kind, u.body, u.refs, u.blob
            FROM old, unnest($4::bigint[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::text[])
                AS u (seq, at, kind, body, refs, blob)),
        p AS (
            INSERT INTO parts (tenant_id, sha256, body) SELECT $10, u.sha256, u.body
            FROM old, unnest($11::bytea[], $12::bytea[]) AS u (sha256, body) ON CONFLICT DO NOTHING),
        e AS (
            INSERT INTO events (session_key, seq, id, type, at, processed_at, previewed, body, blob, thread_id, posted)
            SELECT $1, k.seq, k.id, k.type, k.now, CASE WHEN k.processed THEN k.now END, k.previewed, k.body, k.blob, k.thread,
                k.posted
            FROM kept k),
        a AS (
            INSERT INTO pending (session_key, event_id, tenant_id, log_key, call_id, kind, asked_at, asked_seq)
            SELECT $1, u.event, $10, coalesce(l.log_key, $1), u.call, u.kind, old.now,
                coalesce(k.seq, old.event_seq + counted.events)
            FROM old CROSS JOIN counted
                CROSS JOIN unnest($21::uuid[], $22::text[], $23::text[], $34::uuid[]) AS u (event, call, kind, thread)
                LEFT JOIN kept k ON k.id = u.event
                LEFT JOIN logs l ON l.session_key = $1 AND l.thread_id = u.thread
            ON CONFLICT DO NOTHING),
        m AS (
            UPDATE events SET processed_at = old.now FROM old
            WHERE events.session_key = $1 AND events.id = ANY($24::uuid[]) AND events.processed_at IS NULL),
        n AS (
            {INSERT}
            SELECT gen_random_uuid(), $10, w.id, u.id, u.kind, u.body, 'pending', $39, $39
            FROM kept k JOIN unnest($35::uuid[], $36::uuid[], $37::text[], $38::text[]) AS u (event, id, kind, body)
                ON u.event = k.id
                JOIN webhook_endpoints w ON w.tenant_id = $10 AND w.active AND {WANTS}),
        d AS (DELETE FROM inbox USING old WHERE inbox.session_key = $1 AND inbox.seq <= $25)
        SELECT old.now, old.event_seq, old.starts, old.rests, old.rests AND old.is_news, old.inbox_seq FROM old"
    )
}

/// What the row of an event keeps of its body.
fn body_of(event: &NewEvent) -> &[u8] {
    if event.blob.is_some() { &[] } else { event.body.as_bytes() }
}

/// The parts of records that are kept apart: their hashes and their bytes.
fn parts_of(records: &[NewRecord]) -> (Vec<&[u8]>, Vec<&[u8]>) {
    let parts = records.iter().flat_map(|record| &record.parts);
    parts.map(|(_, hash, body)| (hash.as_slice(), body.as_slice())).unzip()
}

fn of_thread(thread: Option<ThreadId>) -> Option<Uuid> {
    thread.map(|thread| uuid(thread.0))
}

/// An append with everything that is made once, however often it is tried.
struct Prepared {
    append: Append,
    /// Events with the part that each belongs to, in order.
    events: Vec<(i32, NewEvent)>,
    stop: Option<String>,
    notices: Notices,
    outcomes: Option<String>,
}

impl Prepared {
    fn new(mut append: Append) -> Result<Self, DbError> {
        let of_seat = std::mem::take(&mut append.events).into_iter().map(|event| (OF_SEAT, event));
        let mut events: Vec<_> = [(OF_BEGIN, running())].into_iter().chain(of_seat).collect();
        let mut stop = None;
        if let Some(rest) = &mut append.rest {
            events.extend(std::mem::take(&mut rest.events).into_iter().map(|event| (OF_REST, event)));
            stop = Some(text(&rest.stop)?);
        }
        let noted = events.iter().map(|(_, event)| (event.id, event.kind, event.body.as_str()));
        let notices = Notices::of_events((append.tenant, append.session), noted);
        let outcomes = append.outcomes.as_ref().map(text).transpose()?;
        Ok(Self { append, events, stop, notices, outcomes })
    }

    /// Sends it; `None` when the session has another holder, or its log is not where it was.
    async fn send(&self, connection: &mut Object) -> Result<Option<Appended>, DbError> {
        let append = &self.append;
        if append.threads.is_empty() {
            return self.execute(connection).await;
        }
        let transaction = connection.transaction().await?;
        let head = heads::lock(&transaction, append.key).await?;
        if head.fence != append.fence || head.record_seq != append.expected {
            return Ok(None);
        }
        for thread in &append.threads {
            threads::append(&transaction, &head, append.tenant, thread).await?;
        }
        let appended = self.execute(&transaction).await?;
        if appended.is_some() {
            transaction.commit().await?;
        }
        Ok(appended)
    }

    async fn execute(&self, connection: &impl GenericClient) -> Result<Option<Appended>, DbError> {
        let append = &self.append;
        let records = &append.records;
        let record_column = |part: fn(&NewRecord) -> i64| records.iter().map(part).collect::<Vec<i64>>();
        let kinds: Vec<&str> = records.iter().map(|record| record.kind.as_str()).collect();
        let bodies: Vec<&[u8]> = records.iter().map(|record| record.body.as_slice()).collect();
        let references: Vec<Option<Vec<u8>>> = records.iter().map(record_parts::references).collect();
        let record_blobs: Vec<Option<&str>> = records.iter().map(|record| record.blob.as_deref()).collect();
        let (hashes, part_bodies) = parts_of(records);
        let events = &self.events;
        let ids: Vec<Uuid> = events.iter().map(|(_, event)| uuid(event.id.0)).collect();
        let types: Vec<&str> = events.iter().map(|(_, event)| event.kind).collect();
        let processed: Vec<bool> = events.iter().map(|(_, event)| event.is_processed).collect();
        let previewed: Vec<bool> = events.iter().map(|(_, event)| event.is_previewed).collect();
        let event_bodies: Vec<&[u8]> = events.iter().map(|(_, event)| body_of(event)).collect();
        let event_blobs: Vec<Option<&str>> = events.iter().map(|(_, event)| event.blob.as_deref()).collect();
        let event_parts: Vec<i32> = events.iter().map(|(part, _)| *part).collect();
        let event_threads: Vec<Option<Uuid>> =
            events.iter().map(|(_, event)| of_thread(event.thread)).collect();
        let posted: Vec<bool> = events.iter().map(|(_, event)| event.is_posted).collect();
        let action_threads: Vec<_> = append.actions.iter().map(|action| of_thread(action.thread)).collect();
        let action_events: Vec<Uuid> = append.actions.iter().map(|action| uuid(action.event.0)).collect();
        let calls: Vec<&str> = append.actions.iter().map(|action| action.call_id.as_str()).collect();
        let action_kinds: Vec<&str> = append.actions.iter().map(|action| action.kind).collect();
        let now_processed: Vec<Uuid> = append.processed.iter().map(|event| uuid(event.0)).collect();
        let rest = append.rest.as_ref();
        let row = connection
            .query_opt(
                &connection.prepare_cached(&statement()).await?,
                &[
                    &append.key,
                    &append.fence,
                    &stored(append.expected),
                    &record_column(|record| stored(record.seq)),
                    &record_column(|record| record.at.0),
                    &kinds,
                    &bodies,
                    &references,
                    &record_blobs,
                    &uuid(append.tenant.0),
                    &hashes,
                    &part_bodies,
                    &ids,
                    &types,
                    &processed,
                    &previewed,
                    &event_bodies,
                    &event_blobs,
                    &event_parts,
                    &append.begins,
                    &action_events,
                    &calls,
                    &action_kinds,
                    &now_processed,
                    &stored(append.taken),
                    &append.usage,
                    &append.is_progress,
                    &rest.is_some(),
                    &rest.map_or(-1, |rest| stored(rest.seen)),
                    &self.stop,
                    &rest.is_some_and(|rest| rest.releases),
                    &event_threads,
                    &posted,
                    &action_threads,
                    &self.notices.of,
                    &self.notices.ids,
                    &self.notices.kinds,
                    &self.notices.bodies,
                    &self.notices.at,
                    &self.outcomes,
                    &append.workspace.as_ref().map(|change| change.reference.as_str()),
                    &append.workspace.as_ref().and_then(|change| change.home).map(|home| uuid(home.0)),
                ],
            )
            .await?;
        match row {
            None => Ok(None),
            Some(row) => self.appended(connection, &row).await.map(Some),
        }
    }

    /// What the statement has stored.
    async fn appended(&self, connection: &impl GenericClient, row: &Row) -> Result<Appended, DbError> {
        let now = time(row, 0)?;
        let (starts, rests, is_news): (bool, bool, bool) =
            (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
        let kept = self.events.iter().filter(|(part, _)| match *part {
            OF_BEGIN => starts,
            OF_REST => is_news,
            _ => true,
        });
        let first = number(row, 1)? + 1;
        let events = kept.zip(first..).map(|((_, event), seq)| Event {
            seq,
            id: event.id,
            kind: event.kind.to_owned(),
            at: now,
            processed_at: event.is_processed.then_some(now),
            is_previewed: event.is_previewed,
            body: event.body.clone(),
            blob: event.blob.clone(),
            thread: event.thread,
            is_posted: event.is_posted,
        });
        let events = events.collect();
        Ok(Appended { events, rests, inbox: self.left(connection, rests).await?, inbox_seq: number(row, 5)? })
    }

    /// What was left meanwhile, when the session does not rest although it was to.
    async fn left(
        &self,
        connection: &impl GenericClient,
        rests: bool,
    ) -> Result<Vec<crate::store::port::InboxRow>, DbError> {
        match &self.append.rest {
            Some(rest) if !rests => drive::inbox_after(connection, self.append.key, rest.seen).await,
            Some(_) | None => Ok(Vec::new()),
        }
    }

    /// Whether an append counts whose connection was lost: `None` when nothing of it is stored, so that it may be sent again.
    async fn outcome(&self, connection: &Object) -> Result<Option<Appended>, DbError> {
        let append = &self.append;
        let (key, count) = (append.key, append.records.len() as u64);
        let sql = "SELECT h.fence, h.record_seq, h.inbox_seq, h.lease_node IS NULL, h.status = 'idle',
                (SELECT r.body FROM records r WHERE r.log_key = h.session_key AND r.seq = h.record_seq)
            FROM heads h WHERE h.session_key = $1";
        let statement = connection.prepare_cached(sql).await?;
        let head = connection.query_opt(&statement, &[&key]).await?.ok_or(DbError::Fenced(key))?;
        let record_seq = number(&head, 1)?;
        if head.try_get::<_, i64>(0)? != append.fence {
            return Err(DbError::Fenced(key));
        }
        let last: Option<Vec<u8>> = head.try_get(5)?;
        let is_ours = append.records.last().is_some_and(|record| last.as_ref() == Some(&record.body));
        if count > 0 && record_seq == append.expected {
            return Ok(None);
        }
        if record_seq != append.expected + count || (count > 0 && !is_ours) {
            return Err(DbError::Fenced(key));
        }
        let in_thread = append.threads.iter().find(|thread| !thread.records.is_empty());
        let is_stored = match in_thread {
            Some(thread) if count == 0 => threads::is_stored(connection, key, thread).await?,
            Some(_) | None => count > 0,
        };
        if in_thread.is_some() && !is_stored {
            return Ok(None);
        }
        let ids: Vec<Uuid> = self.events.iter().map(|(_, event)| uuid(event.id.0)).collect();
        let sql = format!("{} WHERE session_key = $1 AND id = ANY($2) ORDER BY seq", events::SELECT);
        let statement = connection.prepare_cached(&sql).await?;
        let rows = connection.query(&statement, &[&key, &ids]).await?;
        let events = rows.iter().map(events::read).collect::<Result<Vec<_>, _>>()?;
        if !is_stored && events.is_empty() {
            // Sent twice, it would change nothing that it has not changed.
            return Ok(None);
        }
        let inbox_seq = number(&head, 2)?;
        let (is_free, is_idle): (bool, bool) = (head.try_get(3)?, head.try_get(4)?);
        let rests = append
            .rest
            .as_ref()
            .is_some_and(|rest| if rest.releases { is_free } else { is_idle && rest.seen == inbox_seq });
        Ok(Some(Appended { events, rests, inbox: self.left(connection, rests).await?, inbox_seq }))
    }
}

impl PostgresDb {
    /// Commits what a seat did, once, however often it is tried.
    pub(super) async fn append_once(&self, append: Append) -> Result<Appended, DbError> {
        let (key, is_repeated) = (append.key, append.is_repeated);
        let prepared = Prepared::new(append)?;
        let mut connection = checkout(&self.appends).await?;
        let begun = Instant::now();
        let done = within(DEADLINE, async {
            if is_repeated && let Some(appended) = prepared.outcome(&connection).await? {
                return Ok(appended);
            }
            if let Some(appended) = prepared.send(&mut connection).await? {
                return Ok(appended);
            }
            // An earlier attempt may have been committed between the two.
            let late = if is_repeated { prepared.outcome(&connection).await? } else { None };
            late.ok_or(DbError::Fenced(key))
        })
        .await;
        self.keep(connection, &done, begun);
        done
    }
}
