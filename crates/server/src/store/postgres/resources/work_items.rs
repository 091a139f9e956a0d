//! The queue of work for self-hosted environments. What becomes of an item is decided by the model, under a lock; one that another
//! poll looks at is skipped. Who locks an item and the head of its session locks the head first.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use crate::model::ids::{EnvironmentId, SessionId, TenantId, WorkId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::model::work_items::{Beat, Beaten, Work, WorkState, WorkStats};
use crate::store::error::DbError;
use crate::store::port::{
    ChangeMetadata, DbFuture, Done, KEPT_WORK, ListQuery, ListedPage, Once, POLLER_IS_THERE, PollWork,
    TenantRow, WorkDb, WorkPlace,
};
use crate::store::postgres::columns::{json, number, optional_time, raw, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};
use crate::store::postgres::once::once;
use crate::store::postgres::{NOW, PostgresDb, heads};

const SELECT: &str =
    "SELECT w.id, w.tenant_id, w.environment_id, w.session_key, w.session_id, w.state, w.metadata::text, w.created_at,
    w.due_at, w.handed_at, w.acknowledged_at, w.started_at, w.beat_at, w.ttl, w.expires_at, w.stop_requested_at, w.stopped_at
    FROM work w";

/// What a poll may hand out: no one has it, and no worker that was asked to stop is still at the same session.
const WAITS: &str = "w.environment_id = $1 AND w.state = 'queued' AND w.due_at <= $2
    AND (w.handed_at IS NULL OR w.handed_at <= $3)
    AND NOT EXISTS (SELECT FROM work o WHERE o.session_key = w.session_key AND o.state = 'stopping')";

fn read(row: &Row) -> Result<Work, DbError> {
    let state: &str = row.try_get(5)?;
    Ok(Work {
        id: WorkId(raw(row, 0)?),
        tenant: TenantId(raw(row, 1)?),
        environment: EnvironmentId(raw(row, 2)?),
        session_key: row.try_get(3)?,
        session: SessionId(raw(row, 4)?),
        state: WorkState::parse(state)
            .ok_or_else(|| DbError::Corrupt(format!("`{state}` is not a state of work")))?,
        metadata: json(row, 6)?,
        created_at: time(row, 7)?,
        due_at: time(row, 8)?,
        handed_at: optional_time(row, 9)?,
        acknowledged_at: optional_time(row, 10)?,
        started_at: optional_time(row, 11)?,
        beat_at: optional_time(row, 12)?,
        ttl: u32::try_from(number(row, 13)?).unwrap_or(u32::MAX),
        expires_at: optional_time(row, 14)?,
        stop_requested_at: optional_time(row, 15)?,
        stopped_at: optional_time(row, 16)?,
    })
}

async fn select(client: &impl GenericClient, place: WorkPlace, lock: &str) -> Result<Work, DbError> {
    let sql = format!("{SELECT} WHERE w.id = $1 AND w.environment_id = $2 AND w.tenant_id = $3 {lock}");
    let statement = client.prepare_cached(&sql).await?;
    let values = (uuid(place.id.0), uuid(place.environment.0), uuid(place.tenant.0));
    let row = client.query_opt(&statement, &[&values.0, &values.1, &values.2]).await?;
    read(&row.ok_or_else(|| Refusal::not_found("work item", place.id))?)
}

/// The present moment by the clock of the database.
async fn now(client: &impl GenericClient) -> Result<Time, DbError> {
    let statement = client.prepare_cached(&format!("SELECT {NOW}")).await?;
    time(&client.query_one(&statement, &[]).await?, 0)
}

/// Inserts an item, unless the session has one that serves it.
async fn insert(client: &impl GenericClient, work: &Work) -> Result<(), DbError> {
    let sql = "INSERT INTO work (id, tenant_id, environment_id, session_key, session_id, state, metadata, created_at, due_at, ttl)
        VALUES ($1, $2, $3, $4, $5, $6, $7::text::json, $8, $9, $10) ON CONFLICT DO NOTHING";
    let statement = client.prepare_cached(sql).await?;
    client
        .execute(
            &statement,
            &[
                &uuid(work.id.0),
                &uuid(work.tenant.0),
                &uuid(work.environment.0),
                &work.session_key,
                &uuid(work.session.0),
                &work.state.as_str(),
                &text(&work.metadata)?,
                &work.created_at.0,
                &work.due_at.0,
                &i64::from(work.ttl),
            ],
        )
        .await?;
    Ok(())
}

async fn save(client: &impl GenericClient, work: &Work) -> Result<(), DbError> {
    let sql = "UPDATE work SET state = $2, metadata = $3::text::json, due_at = $4, handed_at = $5, acknowledged_at = $6,
        started_at = $7, beat_at = $8, ttl = $9, expires_at = $10, stop_requested_at = $11, stopped_at = $12 WHERE id = $1";
    let at = |time: Option<Time>| time.map(|time| time.0);
    let statement = client.prepare_cached(sql).await?;
    client
        .execute(
            &statement,
            &[
                &uuid(work.id.0),
                &work.state.as_str(),
                &text(&work.metadata)?,
                &work.due_at.0,
                &at(work.handed_at),
                &at(work.acknowledged_at),
                &at(work.started_at),
                &at(work.beat_at),
                &i64::from(work.ttl),
                &at(work.expires_at),
                &at(work.stop_requested_at),
                &at(work.stopped_at),
            ],
        )
        .await?;
    Ok(())
}

/// Queues a session, unless an item serves it already. One that `follows` another item waits a moment.
pub(in crate::store::postgres) async fn enqueue(
    transaction: &Transaction<'_>,
    key: i64,
    follows: bool,
) -> Result<(), DbError> {
    let statement = transaction
        .prepare_cached(
            "SELECT tenant_id, environment_id, id FROM sessions WHERE key = $1 AND NOT EXISTS (SELECT FROM work
                WHERE session_key = $1 AND state IN ('queued', 'starting', 'active'))",
        )
        .await?;
    let Some(row) = transaction.query_opt(&statement, &[&key]).await? else { return Ok(()) };
    let owner = (TenantId(raw(&row, 0)?), EnvironmentId(raw(&row, 1)?));
    let session = (SessionId(raw(&row, 2)?), key);
    insert(transaction, &Work::new(owner, session, now(transaction).await?, follows)).await
}

/// Queues a session anew when it still needs a worker. Its head is locked.
async fn enqueue_rest(transaction: &Transaction<'_>, key: i64) -> Result<(), DbError> {
    let sql = "SELECT EXISTS (SELECT FROM sessions s JOIN heads h ON h.session_key = s.key
        WHERE s.key = $1 AND s.archived_at IS NULL AND s.deleted_at IS NULL AND h.status <> 'terminated'
        AND (h.status <> 'idle'
            OR EXISTS (SELECT FROM pending p WHERE p.session_key = s.key AND p.closed_at IS NULL
                    AND p.kind IN ('worker', 'confirmed'))))";
    let statement = transaction.prepare_cached(sql).await?;
    let needs: bool = transaction.query_one(&statement, &[&key]).await?.try_get(0)?;
    if needs { enqueue(transaction, key, true).await } else { Ok(()) }
}

/// A session needs no worker any longer: its items stop, at once when it is deleted. Its head is locked.
pub(in crate::store::postgres) async fn end(
    transaction: &Transaction<'_>,
    key: i64,
    is_deleted: bool,
) -> Result<(), DbError> {
    let sql = format!("{SELECT} WHERE w.session_key = $1 AND w.state <> 'stopped' FOR UPDATE");
    let statement = transaction.prepare_cached(&sql).await?;
    let rows = transaction.query(&statement, &[&key]).await?;
    let now = now(transaction).await?;
    for row in &rows {
        let mut work = read(row)?;
        // One that was asked before stays asked.
        if work.stop(now, is_deleted).is_ok() {
            save(transaction, &work).await?;
        }
    }
    Ok(())
}

/// Removes what is over for long.
pub(in crate::store::postgres) async fn clean(
    transaction: &Transaction<'_>,
    now: Time,
) -> Result<u64, DbError> {
    let statement = transaction.prepare_cached("DELETE FROM work_pollers WHERE seen_at < $1").await?;
    transaction.execute(&statement, &[&now.after(-POLLER_IS_THERE).0]).await?;
    let statement = transaction.prepare_cached("DELETE FROM work WHERE stopped_at < $1").await?;
    Ok(transaction.execute(&statement, &[&now.after(-KEPT_WORK).0]).await?)
}

/// True when a poll has something to write: an item, a lease that is over, or a worker that was not seen lately.
async fn has_work(connection: &Object, poll: &PollWork) -> Result<bool, DbError> {
    let now = now(connection).await?;
    let reclaimed = now.after(-i64::try_from(poll.reclaim).unwrap_or(i64::MAX));
    let sql = format!(
        "SELECT EXISTS (SELECT FROM work w WHERE {WAITS})
            OR EXISTS (SELECT FROM work WHERE environment_id = $1 AND expires_at <= $2)
            OR ($4::text IS NOT NULL AND NOT EXISTS (SELECT FROM work_pollers
                WHERE environment_id = $1 AND worker = $4 AND seen_at > $5))"
    );
    let seen = now.after(-POLLER_IS_THERE / 3);
    let statement = connection.prepare_cached(&sql).await?;
    let row = connection
        .query_one(&statement, &[&uuid(poll.environment.0), &now.0, &reclaimed.0, &poll.worker, &seen.0])
        .await?;
    Ok(row.try_get(0)?)
}

async fn poll(transaction: &Transaction<'_>, poll: PollWork) -> Result<Option<Work>, DbError> {
    let now = now(transaction).await?;
    let environment = uuid(poll.environment.0);
    if let Some(worker) = &poll.worker {
        let sql = "INSERT INTO work_pollers VALUES ($1, $2, $3)
            ON CONFLICT (environment_id, worker) DO UPDATE SET seen_at = excluded.seen_at";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&environment, worker, &now.0]).await?;
    }
    let sql =
        format!("{SELECT} WHERE w.environment_id = $1 AND w.expires_at <= $2 FOR UPDATE OF w SKIP LOCKED");
    let statement = transaction.prepare_cached(&sql).await?;
    for row in &transaction.query(&statement, &[&environment, &now.0]).await? {
        let mut work = read(row)?;
        work.expire(now);
        save(transaction, &work).await?;
    }
    let reclaimed = now.after(-i64::try_from(poll.reclaim).unwrap_or(i64::MAX));
    let sql = format!("{SELECT} WHERE {WAITS} ORDER BY w.created_at LIMIT 1 FOR UPDATE OF w SKIP LOCKED");
    let statement = transaction.prepare_cached(&sql).await?;
    let found = transaction.query_opt(&statement, &[&environment, &now.0, &reclaimed.0]).await?;
    let Some(mut work) = found.as_ref().map(read).transpose()? else { return Ok(None) };
    work.handed_at = Some(now);
    save(transaction, &work).await?;
    Ok(Some(work))
}

async fn change(
    transaction: &Transaction<'_>,
    place: WorkPlace,
    change: impl FnOnce(&mut Work, Time) -> Result<(), Refusal>,
) -> Result<Work, DbError> {
    let found = select(transaction, place, "").await?;
    // A session that was deleted and removed has no head.
    match heads::lock(transaction, found.session_key).await {
        Ok(_) | Err(DbError::Fenced(_)) => {}
        Err(error) => return Err(error),
    }
    let mut work = select(transaction, place, "FOR UPDATE").await?;
    let served = work.state.serves();
    change(&mut work, now(transaction).await?)?;
    save(transaction, &work).await?;
    if served && !work.state.serves() {
        enqueue_rest(transaction, work.session_key).await?;
    }
    Ok(work)
}

async fn beat(
    transaction: &Transaction<'_>,
    place: WorkPlace,
    beat: Beat,
) -> Result<(Work, Beaten), DbError> {
    let mut work = select(transaction, place, "FOR UPDATE").await?;
    let beaten = work.beat(now(transaction).await?, &beat);
    if beaten == Beaten::Extended {
        save(transaction, &work).await?;
    }
    Ok((work, beaten))
}

async fn stats(connection: &Object, environment: EnvironmentId) -> Result<WorkStats, DbError> {
    let sql = format!(
        "SELECT count(*) FILTER (WHERE handed_at IS NULL), count(*) FILTER (WHERE handed_at IS NOT NULL), min(created_at),
            (SELECT count(*) FROM work_pollers WHERE environment_id = $1 AND seen_at > {NOW} - $2)
        FROM work WHERE environment_id = $1 AND state = 'queued'"
    );
    let statement = connection.prepare_cached(&sql).await?;
    let row = connection.query_one(&statement, &[&uuid(environment.0), &(POLLER_IS_THERE * 1_000)]).await?;
    Ok(WorkStats {
        depth: number(&row, 0)?,
        pending: number(&row, 1)?,
        oldest: optional_time(&row, 2)?,
        workers: number(&row, 3)?,
    })
}

async fn of_token(connection: &Object, id: WorkId) -> Result<Option<(Work, TenantRow)>, DbError> {
    let statement = connection.prepare_cached(&format!("{SELECT} WHERE w.id = $1")).await?;
    let Some(row) = connection.query_opt(&statement, &[&uuid(id.0)]).await? else { return Ok(None) };
    let work = read(&row)?;
    let statement = connection.prepare_cached("SELECT id, name, data_key FROM tenants WHERE id = $1").await?;
    let row = connection.query_one(&statement, &[&uuid(work.tenant.0)]).await?;
    let tenant = TenantRow { id: TenantId(raw(&row, 0)?), name: row.try_get(1)?, data_key: row.try_get(2)? };
    Ok(Some((work, tenant)))
}

impl WorkDb for PostgresDb {
    fn poll_work(&self, wanted: PollWork) -> DbFuture<'_, Option<Work>> {
        Box::pin(async move {
            let looked = wanted.clone();
            let has_work =
                self.read(move |connection| Box::pin(async move { has_work(connection, &looked).await }));
            if !has_work.await? {
                return Ok(None);
            }
            self.write(move |transaction| Box::pin(poll(transaction, wanted))).await
        })
    }

    fn acknowledge_work(&self, place: WorkPlace, done: Once<Work>) -> DbFuture<'_, Done<Work>> {
        self.write(move |transaction| {
            let acknowledged = change(transaction, place, Work::acknowledge);
            Box::pin(once(transaction, done, acknowledged))
        })
    }

    fn beat_work(&self, place: WorkPlace, heartbeat: Beat) -> DbFuture<'_, (Work, Beaten)> {
        self.write(move |transaction| Box::pin(beat(transaction, place, heartbeat)))
    }

    fn stop_work(&self, place: WorkPlace, force: bool, done: Once<Work>) -> DbFuture<'_, Done<Work>> {
        self.write(move |transaction| {
            let stopped = change(transaction, place, move |work, now| work.stop(now, force));
            Box::pin(once(transaction, done, stopped))
        })
    }

    fn work(&self, place: WorkPlace) -> DbFuture<'_, Work> {
        self.read(move |connection| Box::pin(select(connection, place, "")))
    }

    fn update_work(
        &self,
        place: WorkPlace,
        patch: ChangeMetadata,
        done: Once<Work>,
    ) -> DbFuture<'_, Done<Work>> {
        self.write(move |transaction| {
            let changed = change(transaction, place, move |work, _| {
                work.metadata = patch(&work.metadata)?;
                Ok(())
            });
            Box::pin(once(transaction, done, changed))
        })
    }

    fn list_work(&self, environment: EnvironmentId, query: ListQuery) -> DbFuture<'_, ListedPage<Work>> {
        self.read(move |connection| {
            Box::pin(async move {
                let mut conditions = Conditions::default();
                conditions.with("w.environment_id = ?", vec![Box::new(uuid(environment.0))]);
                let list = List { select: SELECT, alias: "w", order: "id", table: "work", conditions };
                page(connection, list, &query, read).await
            })
        })
    }

    fn work_stats(&self, environment: EnvironmentId) -> DbFuture<'_, WorkStats> {
        self.read(move |connection| Box::pin(stats(connection, environment)))
    }

    fn work_of_token(&self, id: WorkId) -> DbFuture<'_, Option<(Work, TenantRow)>> {
        self.read(move |connection| Box::pin(of_token(connection, id)))
    }
}
