//! Requests that count once: the answer is kept beside the effect, in one transaction.

use rusqlite::{Connection, OptionalExtension, params};

use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{Done, KEPT_ANSWER, KeptAnswer, Once};

/// Does something once.
pub(super) fn once<T>(
    connection: &Connection,
    once: Once<T>,
    effect: impl FnOnce() -> Result<T, DbError>,
) -> Result<Done<T>, DbError> {
    let Some(key) = once.key else {
        let done = effect()?;
        let answer = (once.render)(&done);
        return Ok(Done::Now(done, answer));
    };
    let now = Time::now();
    let kept = connection
        .prepare_cached(
            "SELECT digest, status, response, created_at FROM idempotency WHERE token_id = ?1 AND key = ?2",
        )?
        .query_row(params![key.token, key.key], |row| {
            let answer = KeptAnswer { status: row.get(1)?, body: row.get(2)? };
            Ok((row.get::<_, Vec<u8>>(0)?, answer, Time(row.get(3)?)))
        })
        .optional()?;
    match kept {
        Some((digest, answer, at)) if at.after(KEPT_ANSWER) > now => {
            if digest != key.digest {
                return Err(Refusal::conflict("Idempotency key reused with a different request body.").into());
            }
            return Ok(Done::Before(answer));
        }
        Some(_) | None => {}
    }
    let done = effect()?;
    let answer = (once.render)(&done);
    let row = params![key.token, key.key, key.digest, answer.status, answer.body, now.0];
    connection
        .prepare_cached("INSERT OR REPLACE INTO idempotency VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute(row)?;
    Ok(Done::Now(done, answer))
}
