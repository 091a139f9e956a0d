//! Applies migrations. Several nodes may start on an empty database at once: one row of `meta` is locked while the schema
//! changes, and everything is one transaction.

use deadpool_postgres::Object;
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;

use super::fault;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::migrations::POSTGRES;

const TABLES: &str = "CREATE TABLE IF NOT EXISTS meta (name text PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL,
        applied_at bigint NOT NULL);
    INSERT INTO meta VALUES ('migration_lock', '') ON CONFLICT DO NOTHING";
/// How often the first tables are tried: PostgreSQL refuses one of two that make the same table at once.
const TRIES: usize = 20;

/// The schema that a database has; 0 when it is empty.
pub(in crate::store::postgres) async fn version(client: &impl GenericClient) -> Result<u32, DbError> {
    let row = client.query_one("SELECT to_regclass('migrations') IS NOT NULL", &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row = client.query_one("SELECT coalesce(max(number), 0) FROM migrations", &[]).await?;
    Ok(u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or(0))
}

/// Brings a database up to date. One that is newer by a single step is left as it is: that step was made so that this
/// program still works on it.
pub(in crate::store::postgres) async fn migrate(connection: &mut Object) -> Result<(), DbError> {
    let known = POSTGRES.last().map_or(0, |migration| migration.number);
    let client: &mut tokio_postgres::Client = connection;
    if version(client).await? < known {
        make_tables(client).await?;
    }
    let transaction = client.transaction().await?;
    let found = version(&transaction).await?;
    if found < known {
        transaction.query("SELECT FROM meta WHERE name = 'migration_lock' FOR UPDATE", &[]).await?;
    }
    if found > known + 1 {
        return Err(DbError::Schema { found, known });
    }
    for migration in POSTGRES {
        let number = i32::try_from(migration.number).unwrap_or(i32::MAX);
        let applied =
            transaction.query_opt("SELECT checksum FROM migrations WHERE number = $1", &[&number]).await?;
        match applied.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()? {
            Some(checksum) if checksum == migration.checksum() => {}
            Some(_) => {
                let problem =
                    format!("migration {} was made by another version of this program", migration.number);
                return Err(DbError::Corrupt(problem));
            }
            None => {
                transaction.batch_execute(migration.sql).await?;
                let row = "INSERT INTO migrations VALUES ($1, $2, $3, $4)";
                let now = Time::now().0;
                transaction.execute(row, &[&number, &migration.name, &migration.checksum(), &now]).await?;
            }
        }
    }
    Ok(transaction.commit().await?)
}

async fn make_tables(client: &impl GenericClient) -> Result<(), DbError> {
    let clashes = [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT];
    let mut tries = 0;
    loop {
        tries += 1;
        match client.batch_execute(TABLES).await {
            Ok(()) => return Ok(()),
            Err(error) if tries < TRIES && error.code().is_some_and(|code| clashes.contains(code)) => {}
            Err(error) => return Err(fault(&error)),
        }
    }
}
