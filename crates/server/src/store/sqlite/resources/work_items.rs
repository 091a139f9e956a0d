//! The queue of work for self-hosted environments. What becomes of an item is decided by the model; a transaction reads it, has it
//! decided and writes it back.

use rusqlite::{Connection, OptionalExtension, Row, params, types::Value};

use crate::model::ids::{EnvironmentId, SessionId, TenantId, WorkId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::model::work_items::{Beat, Beaten, Work, WorkState, WorkStats};
use crate::store::error::DbError;
use crate::store::port::{
    ChangeMetadata, DbFuture, Done, KEPT_WORK, ListQuery, ListedPage, Once, POLLER_IS_THERE, PollWork,
    TenantRow, WorkDb, WorkPlace,
};
use crate::store::sqlite::SqliteDb;
use crate::store::sqlite::columns::{json, number, optional_time, raw, time};
use crate::store::sqlite::lists::{List, page};
use crate::store::sqlite::once::once;

const SELECT: &str = "SELECT w.id, w.tenant_id, w.environment_id, w.session_key, w.session_id, w.state, w.metadata, w.created_at,
    w.due_at, w.handed_at, w.acknowledged_at, w.started_at, w.beat_at, w.ttl, w.expires_at, w.stop_requested_at, w.stopped_at
    FROM work w";

/// What a poll may hand out: no one has it, and no worker that was asked to stop is still at the same session.
const WAITS: &str = "w.environment_id = ?1 AND w.state = 'queued' AND w.due_at <= ?2
    AND (w.handed_at IS NULL OR w.handed_at <= ?3)
    AND NOT EXISTS (SELECT 1 FROM work o WHERE o.session_key = w.session_key AND o.state = 'stopping')";

fn read(row: &Row<'_>) -> rusqlite::Result<Work> {
    let state: String = row.get(5)?;
    Ok(Work {
        id: WorkId(raw(row, 0)?),
        tenant: TenantId(raw(row, 1)?),
        environment: EnvironmentId(raw(row, 2)?),
        session_key: row.get(3)?,
        session: SessionId(raw(row, 4)?),
        state: WorkState::parse(&state).unwrap_or(WorkState::Stopped),
        metadata: json(row, 6)?,
        created_at: time(row, 7)?,
        due_at: time(row, 8)?,
        handed_at: optional_time(row, 9)?,
        acknowledged_at: optional_time(row, 10)?,
        started_at: optional_time(row, 11)?,
        beat_at: optional_time(row, 12)?,
        ttl: row.get(13)?,
        expires_at: optional_time(row, 14)?,
        stop_requested_at: optional_time(row, 15)?,
        stopped_at: optional_time(row, 16)?,
    })
}

fn find(connection: &Connection, place: WorkPlace) -> Result<Work, DbError> {
    let sql = format!("{SELECT} WHERE w.id = ?1 AND w.environment_id = ?2 AND w.tenant_id = ?3");
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![place.id.0, place.environment.0, place.tenant.0], read)
        .optional()?;
    found.ok_or_else(|| Refusal::not_found("work item", place.id).into())
}

fn save(connection: &Connection, work: &Work) -> Result<(), DbError> {
    let metadata =
        serde_json::to_string(&work.metadata).map_err(|error| DbError::Corrupt(error.to_string()))?;
    let at = |time: Option<Time>| time.map(|time| time.0);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO work VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            work.id.0,
            work.tenant.0,
            work.environment.0,
            work.session_key,
            work.session.0,
            work.state.as_str(),
            metadata,
            work.created_at.0,
            work.due_at.0,
            at(work.handed_at),
            at(work.acknowledged_at),
            at(work.started_at),
            at(work.beat_at),
            work.ttl,
            at(work.expires_at),
            at(work.stop_requested_at),
            at(work.stopped_at),
        ])?;
    Ok(())
}

/// Queues a session, unless an item serves it already. One that `follows` another item waits a moment.
pub(in crate::store::sqlite) fn enqueue(
    connection: &Connection,
    key: i64,
    follows: bool,
) -> Result<(), DbError> {
    let is_served: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM work WHERE session_key = ?1 AND state IN ('queued', 'starting', 'active'))",
        )?
        .query_row([key], |row| row.get(0))?;
    if is_served {
        return Ok(());
    }
    let (tenant, environment, session) = connection
        .prepare_cached("SELECT tenant_id, environment_id, id FROM sessions WHERE key = ?1")?
        .query_row([key], |row| Ok((raw(row, 0)?, raw(row, 1)?, raw(row, 2)?)))?;
    let owner = (TenantId(tenant), EnvironmentId(environment));
    save(connection, &Work::new(owner, (SessionId(session), key), Time::now(), follows))
}

/// Queues a session anew when it still needs a worker.
fn enqueue_rest(connection: &Connection, key: i64) -> Result<(), DbError> {
    let needs: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM sessions s JOIN heads h ON h.session_key = s.key
                WHERE s.key = ?1 AND s.archived_at IS NULL AND s.deleted_at IS NULL AND h.status <> 'terminated'
                AND (h.status <> 'idle'
                    OR EXISTS (SELECT 1 FROM pending p WHERE p.session_key = s.key AND p.closed_at IS NULL
                    AND p.kind IN ('worker', 'confirmed'))))",
        )?
        .query_row([key], |row| row.get(0))?;
    if needs { enqueue(connection, key, true) } else { Ok(()) }
}

/// A session needs no worker any longer: its items stop, at once when it is deleted.
pub(in crate::store::sqlite) fn end(
    connection: &Connection,
    key: i64,
    is_deleted: bool,
) -> Result<(), DbError> {
    let sql = format!("{SELECT} WHERE w.session_key = ?1 AND w.state <> 'stopped'");
    let open: Vec<Work> =
        connection.prepare_cached(&sql)?.query_map([key], read)?.collect::<Result<_, _>>()?;
    for mut work in open {
        // One that was asked before stays asked.
        if work.stop(Time::now(), is_deleted).is_ok() {
            save(connection, &work)?;
        }
    }
    Ok(())
}

/// Removes what is over for long.
pub(in crate::store::sqlite) fn clean(connection: &Connection, now: Time) -> Result<usize, DbError> {
    connection
        .prepare_cached("DELETE FROM work_pollers WHERE seen_at < ?1")?
        .execute([now.after(-POLLER_IS_THERE).0])?;
    let sql = "DELETE FROM work WHERE stopped_at < ?1";
    Ok(connection.prepare_cached(sql)?.execute([now.after(-KEPT_WORK).0])?)
}

/// True when a poll has something to write: an item, a lease that is over, or a worker that was not seen lately.
fn has_work(connection: &Connection, poll: &PollWork) -> Result<bool, DbError> {
    let now = Time::now();
    let reclaimed = now.after(-i64::try_from(poll.reclaim).unwrap_or(i64::MAX));
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM work w WHERE {WAITS})
            OR EXISTS (SELECT 1 FROM work WHERE environment_id = ?1 AND expires_at <= ?2)
            OR (?4 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM work_pollers
                WHERE environment_id = ?1 AND worker = ?4 AND seen_at > ?5))"
    );
    let seen = now.after(-POLLER_IS_THERE / 3);
    let values = params![poll.environment.0, now.0, reclaimed.0, poll.worker, seen.0];
    Ok(connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0))?)
}

fn poll(connection: &Connection, poll: &PollWork) -> Result<Option<Work>, DbError> {
    let now = Time::now();
    if let Some(worker) = &poll.worker {
        connection
            .prepare_cached("INSERT OR REPLACE INTO work_pollers VALUES (?1, ?2, ?3)")?
            .execute(params![poll.environment.0, worker, now.0])?;
    }
    let sql = format!("{SELECT} WHERE w.environment_id = ?1 AND w.expires_at <= ?2");
    let lost: Vec<Work> = connection
        .prepare_cached(&sql)?
        .query_map(params![poll.environment.0, now.0], read)?
        .collect::<Result<_, _>>()?;
    for mut work in lost {
        work.expire(now);
        save(connection, &work)?;
    }
    let reclaimed = now.after(-i64::try_from(poll.reclaim).unwrap_or(i64::MAX));
    let sql = format!("{SELECT} WHERE {WAITS} ORDER BY w.created_at LIMIT 1");
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![poll.environment.0, now.0, reclaimed.0], read)
        .optional()?;
    let Some(mut work) = found else { return Ok(None) };
    work.handed_at = Some(now);
    save(connection, &work)?;
    Ok(Some(work))
}

fn change(
    connection: &Connection,
    place: WorkPlace,
    change: impl FnOnce(&mut Work) -> Result<(), Refusal>,
) -> Result<Work, DbError> {
    let mut work = find(connection, place)?;
    let served = work.state.serves();
    change(&mut work)?;
    save(connection, &work)?;
    if served && !work.state.serves() {
        enqueue_rest(connection, work.session_key)?;
    }
    Ok(work)
}

fn stats(connection: &Connection, environment: EnvironmentId) -> Result<WorkStats, DbError> {
    let seen = Time::now().after(-POLLER_IS_THERE);
    let sql =
        "SELECT count(*) FILTER (WHERE handed_at IS NULL), count(*) FILTER (WHERE handed_at IS NOT NULL),
            min(created_at), (SELECT count(*) FROM work_pollers WHERE environment_id = ?1 AND seen_at > ?2)
        FROM work WHERE environment_id = ?1 AND state = 'queued'";
    Ok(connection.prepare_cached(sql)?.query_row(params![environment.0, seen.0], |row| {
        Ok(WorkStats {
            depth: number(row, 0)?,
            pending: number(row, 1)?,
            oldest: optional_time(row, 2)?,
            workers: number(row, 3)?,
        })
    })?)
}

fn of_token(connection: &Connection, id: WorkId) -> Result<Option<(Work, TenantRow)>, DbError> {
    let sql = format!("{SELECT} WHERE w.id = ?1");
    let Some(work) = connection.prepare_cached(&sql)?.query_row([id.0], read).optional()? else {
        return Ok(None);
    };
    let tenant = connection
        .prepare_cached("SELECT id, name, data_key FROM tenants WHERE id = ?1")?
        .query_row([work.tenant.0], |row| {
            Ok(TenantRow { id: TenantId(raw(row, 0)?), name: row.get(1)?, data_key: row.get(2)? })
        })?;
    Ok(Some((work, tenant)))
}

impl WorkDb for SqliteDb {
    fn poll_work(&self, wanted: PollWork) -> DbFuture<'_, Option<Work>> {
        Box::pin(async move {
            let looked = wanted.clone();
            if !self.read(move |connection| has_work(connection, &looked)).await? {
                return Ok(None);
            }
            self.write(move |connection| poll(connection, &wanted)).await
        })
    }

    fn acknowledge_work(&self, place: WorkPlace, done: Once<Work>) -> DbFuture<'_, Done<Work>> {
        self.write(move |connection| {
            once(connection, done, || change(connection, place, |work| work.acknowledge(Time::now())))
        })
    }

    fn beat_work(&self, place: WorkPlace, beat: Beat) -> DbFuture<'_, (Work, Beaten)> {
        self.write(move |connection| {
            let mut work = find(connection, place)?;
            let beaten = work.beat(Time::now(), &beat);
            if beaten == Beaten::Extended {
                save(connection, &work)?;
            }
            Ok((work, beaten))
        })
    }

    fn stop_work(&self, place: WorkPlace, force: bool, done: Once<Work>) -> DbFuture<'_, Done<Work>> {
        self.write(move |connection| {
            once(connection, done, || change(connection, place, |work| work.stop(Time::now(), force)))
        })
    }

    fn work(&self, place: WorkPlace) -> DbFuture<'_, Work> {
        self.read(move |connection| find(connection, place))
    }

    fn update_work(
        &self,
        place: WorkPlace,
        patch: ChangeMetadata,
        done: Once<Work>,
    ) -> DbFuture<'_, Done<Work>> {
        self.write(move |connection| {
            let changed = |work: &mut Work| {
                work.metadata = patch(&work.metadata)?;
                Ok(())
            };
            once(connection, done, || change(connection, place, changed))
        })
    }

    fn list_work(&self, environment: EnvironmentId, query: ListQuery) -> DbFuture<'_, ListedPage<Work>> {
        self.read(move |connection| {
            let list = List {
                select: SELECT,
                alias: "w",
                order: "id",
                find: "SELECT created_at, id FROM work WHERE tenant_id = ?1 AND id = ?2",
                conditions: vec![(
                    "w.environment_id = ?".to_owned(),
                    vec![Value::Blob(environment.0.to_vec())],
                )],
            };
            page(connection, list, &query, read)
        })
    }

    fn work_stats(&self, environment: EnvironmentId) -> DbFuture<'_, WorkStats> {
        self.read(move |connection| stats(connection, environment))
    }

    fn work_of_token(&self, id: WorkId) -> DbFuture<'_, Option<(Work, TenantRow)>> {
        self.read(move |connection| of_token(connection, id))
    }
}
