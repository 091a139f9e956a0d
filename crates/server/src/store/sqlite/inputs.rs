//! Inputs on their way into a session: the events that report them, the inbox entries that the session takes, the actions that
//! they answer and the status that follows are one transaction.

use rusqlite::{Connection, params};

use super::columns::stored;
use super::resources::work_items;
use super::{events, heads, sessions, threads};
use crate::model::admission::{self, Action, ActionKind, ActionState, Admission, Follows, Taken};
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{EventId, NodeId, TenantId, ThreadId};
use crate::model::inputs::{Effect, Input};
use crate::model::status::Status;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::head::{Head, NewInboxRow, running};
use crate::store::port::{NewAction, SendInputs, Sender, Sent};

/// The outcome of a request that sends nothing.
pub(super) fn nothing_sent(key: i64) -> Sent {
    Sent { key, inputs: Vec::new(), events: Vec::new(), claim: None, leased_by: None, is_due: false }
}

/// Takes inputs into a session.
pub(super) fn send(connection: &Connection, send: SendInputs) -> Result<Sent, DbError> {
    let state = sessions::state(connection, send.tenant, send.session)?;
    let mut head = heads::find(connection, state.key)?;
    let actions = actions(connection, state.key, &send.actions)?;
    let view = admission::Head {
        status: head.status,
        is_archived: state.is_archived,
        is_leased: head.lease.is_some(),
        has_outcome: head.has_outcome(),
        is_self_hosted: state.is_self_hosted,
    };
    let admission = (send.admit)(view, &actions)?;
    if state.is_self_hosted && admission.needs_worker() {
        work_items::enqueue(connection, state.key, false)?;
    }
    apply(connection, &mut head, admission, &send.sender)
}

/// Stops the turn of a session.
pub(super) fn cancel(connection: &Connection, request: SendInputs) -> Result<(Sent, bool), DbError> {
    let (key, _) = sessions::key(connection, request.tenant, request.session)?;
    let head = heads::find(connection, key)?;
    let waits = !heads::open_actions(connection, key)?.is_empty();
    let runs = matches!(head.status, Status::Running | Status::Rescheduling);
    if !runs && !waits {
        return Ok((nothing_sent(key), false));
    }
    Ok((send(connection, request)?, true))
}

/// The actions of a session that are open, in the order of their events, and those that are named.
fn actions(connection: &Connection, key: i64, named: &[EventId]) -> Result<Vec<Action>, DbError> {
    const COLUMNS: &str =
        "SELECT p.event_id, p.kind, p.call_id, p.closed_at IS NOT NULL, p.answer, p.answered_by, p.digest, l.thread_id
         FROM pending p LEFT JOIN logs l ON l.log_key = p.log_key";
    let read = |row: &rusqlite::Row<'_>| {
        let (kind, is_closed): (String, bool) = (row.get(1)?, row.get(3)?);
        let answer: Option<[u8; 16]> = row.get(4)?;
        let state = match (is_closed, answer) {
            (false, _) => ActionState::Open,
            (true, None) => ActionState::Closed,
            (true, Some(event)) => ActionState::Answered {
                event: EventId(event),
                token: row.get::<_, Option<String>>(5)?.unwrap_or_default(),
                digest: row.get(6)?,
            },
        };
        let kind = ActionKind::parse(&kind).unwrap_or(ActionKind::Ask);
        let thread = row.get::<_, Option<[u8; 16]>>(7)?.map(ThreadId);
        Ok(Action { event: EventId(row.get(0)?), kind, call_id: row.get(2)?, state, thread })
    };
    let sql = format!("{COLUMNS} WHERE p.session_key = ?1 AND p.closed_at IS NULL ORDER BY p.asked_seq");
    let mut found: Vec<Action> =
        connection.prepare_cached(&sql)?.query_map([key], read)?.collect::<Result<_, _>>()?;
    let sql = format!("{COLUMNS} WHERE p.session_key = ?1 AND p.event_id = ?2 AND p.closed_at IS NOT NULL");
    let mut closed = connection.prepare_cached(&sql)?;
    for event in named {
        found.extend(closed.query_map(params![key, event.0], read)?.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

fn apply(
    connection: &Connection,
    head: &mut Head,
    admission: Admission,
    sender: &Sender,
) -> Result<Sent, DbError> {
    let key = head.key;
    let (mut answered, mut added) = (Vec::new(), Vec::new());
    if admission.closes_all {
        heads::close_actions(connection, key, head.now)?;
    }
    for event in &admission.closes {
        connection
            .prepare_cached("UPDATE pending SET closed_at = ?3 WHERE session_key = ?1 AND event_id = ?2")?
            .execute(params![key, event.0, head.now.0])?;
    }
    for taken in admission.taken {
        match taken {
            Taken::Replayed(event) => {
                let event = events::find(connection, key, event)?;
                answered.push(
                    event.ok_or_else(|| DbError::Corrupt("the event of an answer is missing".to_owned()))?,
                );
            }
            Taken::Stored { input, is_processed, entries, thread } => {
                close_action(connection, head, &input, &sender.token)?;
                head.keep(&input.effect);
                for (index, body) in entries.into_iter().enumerate() {
                    let row = head.leave((input.id, index), &sender.by, body)?;
                    leave(connection, key, &row)?;
                }
                let Input { id, kind, body, blob, .. } = input.for_thread(thread);
                let event = NewEvent {
                    id,
                    kind,
                    body,
                    is_processed,
                    is_previewed: false,
                    blob,
                    thread,
                    is_posted: thread.is_some(),
                };
                let stored = heads::add(connection, head, vec![event])?;
                answered.extend(stored.iter().cloned());
                added.extend(stored);
            }
        }
    }
    match admission.follows {
        None => {}
        Some(Follows::Running) => {
            head.become_status(Status::Running);
            added.extend(heads::add(connection, head, vec![running()])?);
        }
        Some(Follows::Idle(stop)) => {
            let event = NewEvent::new("session.status_idle", &stop.idle_event());
            added.extend(heads::add(connection, head, vec![event])?);
            head.stop = Some(stop);
        }
    }
    let sent = wake(connection, head, admission.wakes, sender.node, (answered, added))?;
    heads::save(connection, head)?;
    Ok(sent)
}

/// Has a node take the session up: the one that drives it, the one that has room, or any.
fn wake(
    connection: &Connection,
    head: &mut Head,
    wakes: bool,
    node: Option<NodeId>,
    (inputs, events): (Vec<Event>, Vec<Event>),
) -> Result<Sent, DbError> {
    let leased_by = head.lease;
    let claim = if wakes && head.wake(node) { Some(heads::claim(connection, head)?) } else { None };
    let is_due = wakes && leased_by.is_none() && claim.is_none();
    Ok(Sent { key: head.key, inputs, events, claim, leased_by, is_due })
}

fn close_action(connection: &Connection, head: &Head, input: &Input, token: &str) -> Result<(), DbError> {
    let (action, digest) = match &input.effect {
        Effect::Confirm { action, allow, .. } => {
            // A call that a worker runs stays open until its result is there.
            let confirmed = if *allow {
                connection
                    .prepare_cached(
                        "UPDATE pending SET kind = 'confirmed'
                         WHERE session_key = ?1 AND event_id = ?2 AND kind = 'gated'",
                    )?
                    .execute(params![head.key, action.0])?
            } else {
                0
            };
            if confirmed > 0 {
                return Ok(());
            }
            (action, None)
        }
        Effect::Result { action, digest, .. } => (action, Some(digest)),
        Effect::Message(_) | Effect::Outcome(_) | Effect::System(_) | Effect::Interrupt { .. } => {
            return Ok(());
        }
    };
    connection
        .prepare_cached(
            "UPDATE pending SET closed_at = ?3, answer = ?4, answered_by = ?5, digest = ?6
             WHERE session_key = ?1 AND event_id = ?2",
        )?
        .execute(params![head.key, action.0, head.now.0, input.id.0, token, digest])?;
    Ok(())
}

/// Leaves an entry in the inbox of a session.
fn leave(connection: &Connection, key: i64, row: &NewInboxRow) -> Result<(), DbError> {
    connection
        .prepare_cached("INSERT INTO inbox (session_key, seq, id, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![key, stored(row.seq), row.id, row.kind, row.body])?;
    Ok(())
}

/// Opens actions.
pub(super) fn open_actions(
    connection: &Connection,
    head: &Head,
    tenant: TenantId,
    actions: &[(NewAction, u64)],
) -> Result<(), DbError> {
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO pending (session_key, event_id, tenant_id, log_key, call_id, kind, asked_at, asked_seq)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let Time(now) = head.now;
    for (action, seq) in actions {
        let log = match action.thread {
            None => head.key,
            Some(thread) => threads::log_of(connection, head.key, thread)?.unwrap_or(head.key),
        };
        let NewAction { event, call_id, kind, .. } = action;
        insert.execute(params![head.key, event.0, tenant.0, log, call_id, kind, now, stored(*seq)])?;
    }
    Ok(())
}
