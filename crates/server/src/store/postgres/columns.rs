//! From columns to values, and back.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::model::ids::RawId;
use crate::model::status::Status;
use crate::model::time::Time;
use crate::store::error::DbError;

/// 16 bytes as the database keeps them.
pub(super) fn uuid(id: RawId) -> Uuid {
    Uuid::from_bytes(id)
}

/// 16 bytes.
pub(super) fn raw(row: &Row, column: usize) -> Result<RawId, DbError> {
    Ok(row.try_get::<_, Uuid>(column)?.into_bytes())
}

/// 16 bytes, or nothing.
pub(super) fn optional_raw(row: &Row, column: usize) -> Result<Option<RawId>, DbError> {
    Ok(row.try_get::<_, Option<Uuid>>(column)?.map(Uuid::into_bytes))
}

/// A time.
pub(super) fn time(row: &Row, column: usize) -> Result<Time, DbError> {
    Ok(Time(row.try_get(column)?))
}

/// A time, or none.
pub(super) fn optional_time(row: &Row, column: usize) -> Result<Option<Time>, DbError> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(Time))
}

/// A number that is not negative.
pub(super) fn number(row: &Row, column: usize) -> Result<u64, DbError> {
    Ok(u64::try_from(row.try_get::<_, i64>(column)?).unwrap_or(0))
}

/// A number as the database keeps it.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A value that is kept as JSON; the column is selected as text.
pub(super) fn json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, DbError> {
    let text: &str = row.try_get(column)?;
    serde_json::from_str(text).map_err(|error| DbError::Corrupt(error.to_string()))
}

/// A value that is kept as JSON, or nothing.
pub(super) fn optional_json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<Option<T>, DbError> {
    let text: Option<&str> = row.try_get(column)?;
    let value = text.map(serde_json::from_str).transpose();
    value.map_err(|error| DbError::Corrupt(error.to_string()))
}

/// A value as JSON.
pub(super) fn text(value: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(value).map_err(|error| DbError::Corrupt(error.to_string()))
}

/// A status.
pub(super) fn status(row: &Row, column: usize) -> Result<Status, DbError> {
    let word: &str = row.try_get(column)?;
    Status::parse(word).ok_or_else(|| DbError::Corrupt(format!("`{word}` is not a status")))
}
