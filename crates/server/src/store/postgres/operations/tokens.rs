//! Tokens and tenants.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

use crate::model::ids::TenantId;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{MakeDataKey, NewToken, TenantRow, TokenRow};
use crate::store::postgres::columns::{optional_time, raw, time, uuid};

const SELECT: &str =
    "SELECT k.id, t.id, t.name, t.data_key, k.user_name, k.hash, k.scopes, k.created_at, k.expires_at, k.used_at,
    k.revoked_at FROM tokens k JOIN tenants t ON t.id = k.tenant_id";

fn read(row: &Row) -> Result<TokenRow, DbError> {
    let scopes: &str = row.try_get(6)?;
    Ok(TokenRow {
        id: row.try_get(0)?,
        tenant: TenantRow { id: TenantId(raw(row, 1)?), name: row.try_get(2)?, data_key: row.try_get(3)? },
        user: row.try_get(4)?,
        hash: row.try_get(5)?,
        scopes: scopes.split(' ').filter(|scope| !scope.is_empty()).map(str::to_owned).collect(),
        created_at: time(row, 7)?,
        expires_at: optional_time(row, 8)?,
        used_at: optional_time(row, 9)?,
        revoked_at: optional_time(row, 10)?,
    })
}

pub(super) async fn find(client: &impl GenericClient, id: &str) -> Result<Option<TokenRow>, DbError> {
    let sql = format!("{SELECT} WHERE k.id = $1");
    let statement = client.prepare_cached(&sql).await?;
    client.query_opt(&statement, &[&id]).await?.as_ref().map(read).transpose()
}

pub(super) async fn list(connection: &Object) -> Result<Vec<TokenRow>, DbError> {
    let sql = format!("{SELECT} ORDER BY k.created_at, k.id");
    let rows = connection.query(&connection.prepare_cached(&sql).await?, &[]).await?;
    rows.iter().map(read).collect()
}

pub(super) async fn create(
    transaction: &Transaction<'_>,
    token: &NewToken,
    make_key: MakeDataKey,
) -> Result<TokenRow, DbError> {
    let now = Time::now();
    let id = TenantId::random();
    // Of two that create the same tenant at once, the second waits here and finds the first one's.
    let sql =
        "INSERT INTO tenants (id, name, data_key, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &token.tenant, &make_key(id), &now.0]).await?;
    let statement = transaction.prepare_cached("SELECT id FROM tenants WHERE name = $1").await?;
    let tenant = raw(&transaction.query_one(&statement, &[&token.tenant]).await?, 0)?;
    let sql = "INSERT INTO tokens (id, tenant_id, user_name, hint, hash, scopes, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(
            &statement,
            &[
                &token.id,
                &uuid(tenant),
                &token.user,
                &format!("pt-{}", token.id),
                &token.hash,
                &token.scopes.join(" "),
                &now.0,
                &token.expires_at.map(|time| time.0),
            ],
        )
        .await?;
    let created = find(transaction, &token.id).await?;
    created.ok_or_else(|| DbError::Corrupt("a token vanished".to_owned()))
}

pub(super) async fn revoke(transaction: &Transaction<'_>, id: &str) -> Result<bool, DbError> {
    let sql = "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.execute(&statement, &[&id, &Time::now().0]).await? > 0)
}

/// In the order of their names, so that two nodes never wait for each other.
pub(super) async fn touch(
    transaction: &Transaction<'_>,
    mut used: Vec<(String, Time)>,
) -> Result<(), DbError> {
    used.sort_unstable();
    let statement = transaction.prepare_cached("UPDATE tokens SET used_at = $2 WHERE id = $1").await?;
    for (id, time) in used {
        transaction.execute(&statement, &[&id, &time.0]).await?;
    }
    Ok(())
}

pub(super) async fn tenants(connection: &Object) -> Result<Vec<TenantRow>, DbError> {
    let sql = "SELECT id, name, data_key FROM tenants ORDER BY created_at, id";
    let rows = connection.query(&connection.prepare_cached(sql).await?, &[]).await?;
    let read = |row: &Row| {
        Ok(TenantRow { id: TenantId(raw(row, 0)?), name: row.try_get(1)?, data_key: row.try_get(2)? })
    };
    rows.iter().map(read).collect()
}
