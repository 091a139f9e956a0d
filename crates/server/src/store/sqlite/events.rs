//! Reading events: lists, and the places where streams begin.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::columns::{number, optional_time, raw, stored, time};
use super::sessions;
use crate::model::event::Event;
use crate::model::ids::{EventId, SessionId, TenantId, ThreadId};
use crate::model::problem::Problem;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::{made_at, may_be_announced};
use crate::store::port::{EventQuery, ListedPage, StreamStart};

const SELECT: &str =
    "SELECT seq, id, type, at, processed_at, previewed, body, blob, thread_id, posted FROM events";

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Event> {
    let body: Vec<u8> = row.get(6)?;
    Ok(Event {
        seq: number(row, 0)?,
        id: EventId(raw(row, 1)?),
        kind: row.get(2)?,
        at: time(row, 3)?,
        processed_at: optional_time(row, 4)?,
        is_previewed: row.get(5)?,
        body: String::from_utf8_lossy(&body).into_owned(),
        blob: row.get(7)?,
        thread: row.get::<_, Option<[u8; 16]>>(8)?.map(ThreadId),
        is_posted: row.get(9)?,
    })
}

/// An event of a session.
pub(super) fn find(connection: &Connection, key: i64, id: EventId) -> Result<Option<Event>, DbError> {
    let sql = format!("{SELECT} WHERE session_key = ?1 AND id = ?2");
    Ok(connection.prepare_cached(&sql)?.query_row(params![key, id.0], read).optional()?)
}

pub(super) fn list(connection: &Connection, query: &EventQuery) -> Result<ListedPage<Event>, DbError> {
    let (key, _) = sessions::key(connection, query.tenant, query.session)?;
    let mut wanted = vec![("session_key = ?".to_owned(), vec![Value::Integer(key)])];
    wanted.push(match query.thread {
        Some(thread) => ("thread_id = ?".to_owned(), vec![Value::Blob(thread.0.to_vec())]),
        None => ("(thread_id IS NULL OR posted = 1)".to_owned(), Vec::new()),
    });
    let place = |id: EventId, field: &str| -> Result<Value, DbError> {
        let event = find(connection, key, id)?;
        let event = event.ok_or_else(|| {
            Problem::field(field, format!("is `{id}`, which is not an event of the session"))
        })?;
        Ok(Value::Integer(stored(event.seq)))
    };
    // `after` continues in the direction of the list.
    let (behind, ahead) = if query.descending { ("<", ">") } else { (">", "<") };
    if let Some(id) = query.after {
        wanted.push((format!("seq {behind} ?"), vec![place(id, "page")?]));
    }
    if let Some(id) = query.before {
        wanted.push((format!("seq {ahead} ?"), vec![place(id, "before_id")?]));
    }
    if !query.kinds.is_empty() {
        let marks = vec!["?"; query.kinds.len()].join(", ");
        let kinds = query.kinds.iter().cloned().map(Value::Text).collect();
        wanted.push((format!("type IN ({marks})"), kinds));
    }
    for (time, comparison) in [(query.from, ">="), (query.to, "<=")] {
        if let Some(time) = time {
            wanted.push((format!("processed_at {comparison} ?"), vec![Value::Integer(time.0)]));
        }
    }
    // What comes before an event is read from it backwards.
    let backwards = query.before.is_some();
    let direction = if query.descending == backwards { "ASC" } else { "DESC" };
    let texts: Vec<&str> = wanted.iter().map(|(text, _)| text.as_str()).collect();
    let sql =
        format!("{SELECT} WHERE {} ORDER BY seq {direction} LIMIT {}", texts.join(" AND "), query.limit + 1);
    let values = wanted.into_iter().flat_map(|(_, values)| values);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), read)?;
    let mut items = rows.collect::<Result<Vec<Event>, _>>()?;
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
pub(super) fn start(
    connection: &Connection,
    tenant: TenantId,
    session: SessionId,
    last: Option<EventId>,
) -> Result<StreamStart, DbError> {
    let row = sessions::find(connection, tenant, session)?.session;
    let newest = connection
        .prepare_cached("SELECT event_seq FROM heads WHERE session_key = ?1")?
        .query_row([row.key], |row| number(row, 0))?;
    let after = match last {
        None => newest,
        Some(id) => match find(connection, row.key, id)? {
            Some(event) if event.is_previewed => event.seq - 1,
            Some(event) => event.seq,
            None => announced(connection, row.key, id, row.created_at)?,
        },
    };
    Ok(StreamStart { key: row.key, after })
}

/// The last event that was stored when an id was made.
fn announced(connection: &Connection, key: i64, id: EventId, created_at: Time) -> Result<u64, DbError> {
    let unknown = || DbError::from(Refusal::not_found("event", id));
    let made = made_at(id).ok_or_else(unknown)?;
    let (works, last_at) = connection
        .prepare_cached(
            "SELECT status NOT IN ('idle', 'terminated'), last_at FROM heads WHERE session_key = ?1",
        )?
        .query_row([key], |row| Ok((row.get(0)?, time(row, 1)?)))?;
    let until = if works { Time::now() } else { last_at };
    if !may_be_announced(made, created_at, until) {
        return Err(unknown());
    }
    let sql = "SELECT coalesce(max(seq), 0) FROM events WHERE session_key = ?1 AND at <= ?2";
    Ok(connection.prepare_cached(sql)?.query_row(params![key, made.0], |row| number(row, 0))?)
}

pub(super) fn after(
    connection: &Connection,
    key: i64,
    after: u64,
    limit: usize,
) -> Result<Option<Vec<Event>>, DbError> {
    let deleted: Option<bool> = connection
        .prepare_cached("SELECT deleted_at IS NOT NULL FROM sessions WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    if deleted != Some(false) {
        return Ok(None);
    }
    let sql = format!("{SELECT} WHERE session_key = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![key, stored(after), stored(limit as u64)], read)?;
    Ok(Some(rows.collect::<Result<_, _>>()?))
}
