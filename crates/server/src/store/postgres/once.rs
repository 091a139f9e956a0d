//! Requests that count once: the answer is kept beside the effect, in one transaction. A twin that comes at the same time waits for
//! the first one and gets its answer.

use deadpool_postgres::Transaction;

use super::columns::time;
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{Done, KEPT_ANSWER, KeptAnswer, Once, OnceKey};

/// Does something once. The effect begins when it is awaited.
pub(super) async fn once<T>(
    transaction: &Transaction<'_>,
    once: Once<T>,
    effect: impl Future<Output = Result<T, DbError>>,
) -> Result<Done<T>, DbError> {
    let Some(key) = once.key else {
        let done = effect.await?;
        let answer = (once.render)(&done);
        return Ok(Done::Now(done, answer));
    };
    if let Some(answer) = reserve(transaction, &key).await? {
        return Ok(Done::Before(answer));
    }
    let done = effect.await?;
    let answer = (once.render)(&done);
    let sql = "UPDATE idempotency SET digest = $3, status = $4, response = $5, created_at = $6
        WHERE token_id = $1 AND key = $2";
    let (status, now) = (i32::from(answer.status), Time::now().0);
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(&statement, &[&key.token, &key.key, &key.digest, &status, &answer.body, &now])
        .await?;
    Ok(Done::Now(done, answer))
}

/// Takes the key for this transaction; answers with what was answered before.
async fn reserve(transaction: &Transaction<'_>, key: &OnceKey) -> Result<Option<KeptAnswer>, DbError> {
    let now = Time::now();
    let sql = "INSERT INTO idempotency VALUES ($1, $2, $3, 0, '', $4) ON CONFLICT DO NOTHING";
    let statement = transaction.prepare_cached(sql).await?;
    if transaction.execute(&statement, &[&key.token, &key.key, &key.digest, &now.0]).await? == 1 {
        return Ok(None);
    }
    let sql = "SELECT digest, status, response, created_at FROM idempotency WHERE token_id = $1 AND key = $2 FOR UPDATE";
    let statement = transaction.prepare_cached(sql).await?;
    let Some(row) = transaction.query_opt(&statement, &[&key.token, &key.key]).await? else {
        // It was removed because of its age between the two statements.
        return Err(DbError::Unavailable("an answer was removed; send the request again".to_owned()));
    };
    if time(&row, 3)?.after(KEPT_ANSWER) <= now {
        return Ok(None);
    }
    if row.try_get::<_, Vec<u8>>(0)? != key.digest {
        return Err(Refusal::conflict("Idempotency key reused with a different request body.").into());
    }
    let status = u16::try_from(row.try_get::<_, i32>(1)?).unwrap_or(500);
    Ok(Some(KeptAnswer { status, body: row.try_get(2)? }))
}
