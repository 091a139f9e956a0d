//! What an operator wants to know about a server before nodes depend on it.

use std::time::Duration;

use deadpool_postgres::Object;

use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::postgres::nodes::try_listener;
use crate::store::postgres::{NOW, PostgresDb, checkout, within};

/// How long each question may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a server is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The version as a number, such as 150004.
    pub version: u32,
    /// Milliseconds by which its clock is ahead of ours; negative when it is behind.
    pub clock_ahead: i64,
    /// `synchronous_commit`.
    pub synchronous_commit: String,
    /// `synchronous_standby_names`.
    pub standbys: String,
    /// `server_encoding`.
    pub encoding: String,
    /// `max_connections`.
    pub most_connections: u32,
    /// True when a pooler gives statements of one connection to several backends.
    pub is_pooled: bool,
    /// Whether notifications arrive, or why not.
    pub listener: Result<bool, String>,
}

impl PostgresDb {
    /// Looks at the server.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub async fn inspect(&self) -> Result<Inspection, DbError> {
        let listener = try_listener(&self.listen_url).await.map_err(|error| error.to_string());
        let connection = checkout(&self.pool).await?;
        within(PATIENCE, inspect(&connection, listener)).await
    }
}

async fn inspect(connection: &Object, listener: Result<bool, String>) -> Result<Inspection, DbError> {
    let sql = format!(
        "SELECT current_setting('server_version_num'), current_setting('synchronous_commit'),
            current_setting('synchronous_standby_names'), current_setting('server_encoding'),
            current_setting('max_connections'), {NOW}"
    );
    let asked = Time::now();
    let row = connection.query_one(&sql, &[]).await?;
    // The answer was made between the question and now.
    let middle = (asked.0 + Time::now().0) / 2;
    let number =
        |column: usize| -> Result<u32, DbError> { Ok(row.try_get::<_, &str>(column)?.parse().unwrap_or(0)) };
    let mut backends = Vec::new();
    for _ in 0..8 {
        let backend = connection.query_one("SELECT pg_backend_pid()", &[]).await?;
        backends.push(backend.try_get::<_, i32>(0)?);
    }
    backends.dedup();
    Ok(Inspection {
        version: number(0)?,
        synchronous_commit: row.try_get(1)?,
        standbys: row.try_get(2)?,
        encoding: row.try_get(3)?,
        most_connections: number(4)?,
        clock_ahead: (row.try_get::<_, i64>(5)? - middle) / 1000,
        is_pooled: backends.len() > 1,
        listener,
    })
}
