//! Reading events: lists, and the places where streams begin.

use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::Row;

use crate::model::event::Event;
use crate::model::ids::{EventId, SessionId, TenantId, ThreadId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::{made_at, may_be_announced};
use crate::store::port::{EventQuery, ListedPage, StreamStart};
use crate::store::postgres::NOW;
use crate::store::postgres::columns::{number, optional_raw, optional_time, raw, stored, time, uuid};
use crate::store::postgres::lists::Conditions;
use crate::store::postgres::sessions;

pub(in crate::store::postgres) const SELECT: &str =
    "SELECT seq, id, type, at, processed_at, previewed, body, blob, thread_id, posted FROM events";

pub(in crate::store::postgres) fn read(row: &Row) -> Result<Event, DbError> {
    let body: &[u8] = row.try_get(6)?;
    Ok(Event {
        seq: number(row, 0)?,
        id: EventId(raw(row, 1)?),
        kind: row.try_get(2)?,
        at: time(row, 3)?,
        processed_at: optional_time(row, 4)?,
        is_previewed: row.try_get(5)?,
        body: String::from_utf8_lossy(body).into_owned(),
        blob: row.try_get(7)?,
        thread: optional_raw(row, 8)?.map(ThreadId),
        is_posted: row.try_get(9)?,
    })
}

/// An event of a session.
pub(in crate::store::postgres) async fn find(
    client: &impl GenericClient,
    key: i64,
    id: EventId,
) -> Result<Option<Event>, DbError> {
    let sql = format!("{SELECT} WHERE session_key = $1 AND id = $2");
    let statement = client.prepare_cached(&sql).await?;
    client.query_opt(&statement, &[&key, &uuid(id.0)]).await?.as_ref().map(read).transpose()
}

pub(in crate::store::postgres) async fn list(
    connection: &Object,
    query: &EventQuery,
) -> Result<ListedPage<Event>, DbError> {
    let (key, _) = sessions::key(connection, query.tenant, query.session).await?;
    let mut conditions = Conditions::default();
    conditions.with("session_key = ?", vec![Box::new(key)]);
    match query.thread {
        Some(thread) => conditions.with("thread_id = ?", vec![Box::new(uuid(thread.0))]),
        None => conditions.plain("(thread_id IS NULL OR posted)"),
    }
    // `after` continues in the direction of the list.
    let (behind, ahead) = if query.descending { ("<", ">") } else { (">", "<") };
    for (id, comparison, field) in [(query.after, behind, "page"), (query.before, ahead, "before_id")] {
        let Some(id) = id else { continue };
        let event = find(connection, key, id).await?.ok_or_else(|| {
            Problem::field(field, format!("is `{id}`, which is not an event of the session"))
        })?;
        conditions.with(&format!("seq {comparison} ?"), vec![Box::new(stored(event.seq))]);
    }
    if !query.kinds.is_empty() {
        conditions.with("type = ANY(?)", vec![Box::new(query.kinds.clone())]);
    }
    for (time, comparison) in [(query.from, ">="), (query.to, "<=")] {
        if let Some(time) = time {
            conditions.with(&format!("processed_at {comparison} ?"), vec![Box::new(time.0)]);
        }
    }
    // What comes before an event is read from it backwards.
    let backwards = query.before.is_some();
    let direction = if query.descending == backwards { "ASC" } else { "DESC" };
    let sql =
        format!("{SELECT} WHERE {} ORDER BY seq {direction} LIMIT {}", conditions.text(), query.limit + 1);
    let rows = conditions.query(connection, &sql).await?;
    let mut items = rows.iter().map(read).collect::<Result<Vec<Event>, _>>()?;
    let more = items.len() > query.limit;
    items.truncate(query.limit);
    if backwards {
        items.reverse();
    }
    let (has_more, has_before) = if backwards { (true, more) } else { (more, query.after.is_some()) };
    Ok(ListedPage { items, has_more, has_before })
}

/// Where a stream begins. The id of an event that was shown in pieces means that event again; an id that was announced and is
/// not stored means the events that were stored after it was made; any other unknown one is not found.
pub(in crate::store::postgres) async fn start(
    connection: &Object,
    tenant: TenantId,
    session: SessionId,
    last: Option<EventId>,
) -> Result<StreamStart, DbError> {
    let row = sessions::find(connection, tenant, session).await?.session;
    let after = match last {
        None => {
            let sql = "SELECT event_seq FROM heads WHERE session_key = $1";
            let statement = connection.prepare_cached(sql).await?;
            let newest = connection.query_opt(&statement, &[&row.key]).await?;
            newest.map_or(Ok(0), |newest| number(&newest, 0))?
        }
        Some(id) => match find(connection, row.key, id).await? {
            Some(event) if event.is_previewed => event.seq - 1,
            Some(event) => event.seq,
            None => announced(connection, row.key, id, row.created_at).await?,
        },
    };
    Ok(StreamStart { key: row.key, after })
}

/// The last event that was stored when an id was made.
async fn announced(connection: &Object, key: i64, id: EventId, created_at: Time) -> Result<u64, DbError> {
    let unknown = || DbError::from(Refusal::not_found("event", id));
    let made = made_at(id).ok_or_else(unknown)?;
    let sql = format!(
        "SELECT (SELECT coalesce(max(seq), 0) FROM events WHERE session_key = $1 AND at <= $2),
            CASE WHEN status IN ('idle', 'terminated') THEN last_at ELSE {NOW} END
         FROM heads WHERE session_key = $1"
    );
    let statement = connection.prepare_cached(&sql).await?;
    let row = connection.query_one(&statement, &[&key, &made.0]).await?;
    if !may_be_announced(made, created_at, time(&row, 1)?) {
        return Err(unknown());
    }
    number(&row, 0)
}

pub(in crate::store::postgres) async fn after(
    connection: &Object,
    key: i64,
    after: u64,
    limit: usize,
) -> Result<Option<Vec<Event>>, DbError> {
    let sql = "SELECT deleted_at IS NOT NULL FROM sessions WHERE key = $1";
    let statement = connection.prepare_cached(sql).await?;
    let row = connection.query_opt(&statement, &[&key]).await?;
    if row.map(|row| row.try_get::<_, bool>(0)).transpose()? != Some(false) {
        return Ok(None);
    }
    let sql = format!("{SELECT} WHERE session_key = $1 AND seq > $2 ORDER BY seq LIMIT $3");
    let statement = connection.prepare_cached(&sql).await?;
    let rows = connection.query(&statement, &[&key, &stored(after), &stored(limit as u64)]).await?;
    rows.iter().map(read).collect::<Result<_, _>>().map(Some)
}
