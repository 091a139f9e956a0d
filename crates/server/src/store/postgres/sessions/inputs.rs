//! Inputs on their way into a session: the events that report them, the inbox entries that the session takes, the actions that
//! they answer and the status that follows are one transaction under the lock of the head.

use deadpool_postgres::Transaction;
use tokio_postgres::Row;
use uuid::Uuid;

use super::events;
use crate::model::admission::{self, Action, ActionKind, ActionState, Admission, Follows, Taken};
use crate::model::event::{Event, NewEvent};
use crate::model::ids::{EventId, ThreadId};
use crate::model::inputs::{Effect, Input};
use crate::model::status::Status;
use crate::store::error::DbError;
use crate::store::head::{Head, NewInboxRow, running};
use crate::store::port::{SendInputs, Sender, Sent};
use crate::store::postgres::columns::{optional_raw, raw, stored, uuid};
use crate::store::postgres::resources::work_items;
use crate::store::postgres::{heads, sessions};

/// The outcome of a request that sends nothing.
pub(in crate::store::postgres) fn nothing_sent(key: i64) -> Sent {
    Sent { key, inputs: Vec::new(), events: Vec::new(), claim: None, leased_by: None, is_due: false }
}

/// Takes inputs into a session.
pub(in crate::store::postgres) async fn send(
    transaction: &Transaction<'_>,
    send: SendInputs,
) -> Result<Sent, DbError> {
    let (key, _) = sessions::key(transaction, send.tenant, send.session).await?;
    let mut head = heads::lock(transaction, key).await?;
    // Looked at under the lock: a session that was archived or deleted meanwhile takes nothing.
    let state = sessions::state(transaction, send.tenant, send.session).await?;
    let actions = actions(transaction, key, &send.actions).await?;
    let view = admission::Head {
        status: head.status,
        is_archived: state.is_archived,
        is_leased: head.lease.is_some(),
        has_outcome: head.has_outcome(),
        is_self_hosted: state.is_self_hosted,
    };
    let admission = (send.admit)(view, &actions)?;
    if state.is_self_hosted && admission.needs_worker() {
        work_items::enqueue(transaction, key, false).await?;
    }
    apply(transaction, &mut head, admission, &send.sender).await
}

/// Stops the turn of a session.
pub(in crate::store::postgres) async fn cancel(
    transaction: &Transaction<'_>,
    request: SendInputs,
) -> Result<(Sent, bool), DbError> {
    let (key, _) = sessions::key(transaction, request.tenant, request.session).await?;
    let head = heads::lock(transaction, key).await?;
    let waits = !heads::open_actions(transaction, key).await?.is_empty();
    let runs = matches!(head.status, Status::Running | Status::Rescheduling);
    if !runs && !waits {
        return Ok((nothing_sent(key), false));
    }
    Ok((send(transaction, request).await?, true))
}

/// The actions of a session that are open, in the order of their events, and those that are named.
async fn actions(transaction: &Transaction<'_>, key: i64, named: &[EventId]) -> Result<Vec<Action>, DbError> {
    let sql =
        "SELECT p.event_id, p.kind, p.call_id, p.closed_at IS NOT NULL, p.answer, p.answered_by, p.digest, l.thread_id
        FROM pending p LEFT JOIN logs l ON l.log_key = p.log_key
        WHERE p.session_key = $1 AND (p.closed_at IS NULL OR p.event_id = ANY($2))
        ORDER BY p.closed_at IS NOT NULL, p.asked_seq";
    let named: Vec<Uuid> = named.iter().map(|event| uuid(event.0)).collect();
    let statement = transaction.prepare_cached(sql).await?;
    let rows = transaction.query(&statement, &[&key, &named]).await?;
    rows.iter().map(action).collect()
}

fn action(row: &Row) -> Result<Action, DbError> {
    let (kind, is_closed): (&str, bool) = (row.try_get(1)?, row.try_get(3)?);
    let state = match (is_closed, optional_raw(row, 4)?) {
        (false, _) => ActionState::Open,
        (true, None) => ActionState::Closed,
        (true, Some(event)) => ActionState::Answered {
            event: EventId(event),
            token: row.try_get::<_, Option<String>>(5)?.unwrap_or_default(),
            digest: row.try_get(6)?,
        },
    };
    let kind = ActionKind::parse(kind)
        .ok_or_else(|| DbError::Corrupt(format!("`{kind}` is not a kind of action")))?;
    let thread = optional_raw(row, 7)?.map(ThreadId);
    Ok(Action { event: EventId(raw(row, 0)?), kind, call_id: row.try_get(2)?, state, thread })
}

async fn apply(
    transaction: &Transaction<'_>,
    head: &mut Head,
    admission: Admission,
    sender: &Sender,
) -> Result<Sent, DbError> {
    let key = head.key;
    let (mut answered, mut added) = (Vec::new(), Vec::new());
    if admission.closes_all {
        heads::close_actions(transaction, key, head.now).await?;
    }
    if !admission.closes.is_empty() {
        let closed: Vec<Uuid> = admission.closes.iter().map(|event| uuid(event.0)).collect();
        let sql = "UPDATE pending SET closed_at = $3 WHERE session_key = $1 AND event_id = ANY($2)";
        let statement = transaction.prepare_cached(sql).await?;
        transaction.execute(&statement, &[&key, &closed, &head.now.0]).await?;
    }
    for taken in admission.taken {
        match taken {
            Taken::Replayed(event) => {
                let event = events::find(transaction, key, event).await?;
                answered.push(
                    event.ok_or_else(|| DbError::Corrupt("the event of an answer is missing".to_owned()))?,
                );
            }
            Taken::Stored { input, is_processed, entries, thread } => {
                close_action(transaction, head, &input, &sender.token).await?;
                head.keep(&input.effect);
                for (index, body) in entries.into_iter().enumerate() {
                    let row = head.leave((input.id, index), &sender.by, body)?;
                    leave(transaction, key, &row).await?;
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
                let stored = heads::add(transaction, head, vec![event]).await?;
                answered.extend(stored.iter().cloned());
                added.extend(stored);
            }
        }
    }
    match admission.follows {
        None => {}
        Some(Follows::Running) => {
            head.become_status(Status::Running);
            added.extend(heads::add(transaction, head, vec![running()]).await?);
        }
        Some(Follows::Idle(stop)) => {
            let event = NewEvent::new("session.status_idle", &stop.idle_event());
            added.extend(heads::add(transaction, head, vec![event]).await?);
            head.stop = Some(stop);
        }
    }
    let sent = wake(transaction, head, admission.wakes, sender, (answered, added)).await?;
    heads::save(transaction, head).await?;
    Ok(sent)
}

/// Has a node take the session up: the one that drives it, the one that has room, or any.
async fn wake(
    transaction: &Transaction<'_>,
    head: &mut Head,
    wakes: bool,
    sender: &Sender,
    (inputs, events): (Vec<Event>, Vec<Event>),
) -> Result<Sent, DbError> {
    let leased_by = head.lease;
    // A node that alone has the files of the session is asked first.
    let node = sender.node.filter(|node| head.home_at.is_none_or(|home| home == *node));
    let claim = if wakes && head.wake(node) { Some(heads::claim(transaction, head).await?) } else { None };
    let is_due = wakes && leased_by.is_none() && claim.is_none();
    Ok(Sent { key: head.key, inputs, events, claim, leased_by, is_due })
}

async fn close_action(
    transaction: &Transaction<'_>,
    head: &Head,
    input: &Input,
    token: &str,
) -> Result<(), DbError> {
    let (action, digest) = match &input.effect {
        Effect::Confirm { action, allow, .. } => {
            // A call that a worker runs stays open until its result is there.
            let sql = "UPDATE pending SET kind = 'confirmed'
                WHERE session_key = $1 AND event_id = $2 AND kind = 'gated' AND $3";
            let statement = transaction.prepare_cached(sql).await?;
            if transaction.execute(&statement, &[&head.key, &uuid(action.0), allow]).await? > 0 {
                return Ok(());
            }
            (action, None)
        }
        Effect::Result { action, digest, .. } => (action, Some(digest)),
        Effect::Message(_) | Effect::Outcome(_) | Effect::System(_) | Effect::Interrupt { .. } => {
            return Ok(());
        }
    };
    let sql = "UPDATE pending SET closed_at = $3, answer = $4, answered_by = $5, digest = $6
        WHERE session_key = $1 AND event_id = $2";
    let digest: Option<&[u8]> = digest.map(AsRef::as_ref);
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(&statement, &[&head.key, &uuid(action.0), &head.now.0, &uuid(input.id.0), &token, &digest])
        .await?;
    Ok(())
}

/// Leaves an entry in the inbox of a session.
async fn leave(transaction: &Transaction<'_>, key: i64, row: &NewInboxRow) -> Result<(), DbError> {
    let sql = "INSERT INTO inbox (session_key, seq, id, kind, body) VALUES ($1, $2, $3, $4, $5)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&key, &stored(row.seq), &row.id, &row.kind, &row.body]).await?;
    Ok(())
}
