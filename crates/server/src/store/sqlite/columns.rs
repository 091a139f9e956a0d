//! From columns to values.

use rusqlite::{Row, types::Type};
use serde::de::DeserializeOwned;

use crate::model::ids::RawId;
use crate::model::status::Status;
use crate::model::time::Time;

/// 16 bytes.
pub(super) fn raw(row: &Row<'_>, column: usize) -> rusqlite::Result<RawId> {
    row.get::<_, RawId>(column)
}

/// 16 bytes, or nothing.
pub(super) fn optional_raw(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<RawId>> {
    row.get::<_, Option<RawId>>(column)
}

/// A time.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    row.get(column).map(Time)
}

/// A time, or none.
pub(super) fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    row.get::<_, Option<i64>>(column).map(|time| time.map(Time))
}

/// A number that is not negative.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| u64::try_from(number).unwrap_or(0))
}

/// A number as the database keeps it.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A value that is kept as JSON.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| wrong(column, error))
}

/// A value that is kept as JSON, or nothing.
pub(super) fn optional_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| wrong(column, error))
}

/// A status.
pub(super) fn status(row: &Row<'_>, column: usize) -> rusqlite::Result<Status> {
    let word: String = row.get(column)?;
    Status::parse(&word)
        .ok_or_else(|| wrong(column, std::io::Error::other(format!("`{word}` is not a status"))))
}

fn wrong(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
