//! Tokens and tenants.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::model::ids::TenantId;
use crate::model::time::Time;
use crate::store::error::DbError;
use crate::store::port::{MakeDataKey, NewToken, TenantRow, TokenRow};
use crate::store::sqlite::columns::{optional_time, raw, time};

const SELECT: &str =
    "SELECT k.id, t.id, t.name, t.data_key, k.user, k.hash, k.scopes, k.created_at, k.expires_at, k.used_at,
    k.revoked_at FROM tokens k JOIN tenants t ON t.id = k.tenant_id";

fn read(row: &Row<'_>) -> rusqlite::Result<TokenRow> {
    let scopes: String = row.get(6)?;
    Ok(TokenRow {
        id: row.get(0)?,
        tenant: TenantRow { id: TenantId(raw(row, 1)?), name: row.get(2)?, data_key: row.get(3)? },
        user: row.get(4)?,
        hash: row.get(5)?,
        scopes: scopes.split(' ').filter(|scope| !scope.is_empty()).map(str::to_owned).collect(),
        created_at: time(row, 7)?,
        expires_at: optional_time(row, 8)?,
        used_at: optional_time(row, 9)?,
        revoked_at: optional_time(row, 10)?,
    })
}

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<TokenRow>, DbError> {
    let sql = format!("{SELECT} WHERE k.id = ?1");
    Ok(connection.prepare_cached(&sql)?.query_row([id], read).optional()?)
}

pub(super) fn list(connection: &Connection) -> Result<Vec<TokenRow>, DbError> {
    let sql = format!("{SELECT} ORDER BY k.created_at, k.id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn create(
    connection: &Connection,
    token: &NewToken,
    make_key: MakeDataKey,
) -> Result<TokenRow, DbError> {
    let now = Time::now();
    let known: Option<[u8; 16]> = connection
        .prepare_cached("SELECT id FROM tenants WHERE name = ?1")?
        .query_row([&token.tenant], |row| row.get(0))
        .optional()?;
    let tenant = match known {
        Some(id) => TenantId(id),
        None => {
            let id = TenantId::random();
            connection
                .prepare_cached(
                    "INSERT INTO tenants (id, name, data_key, created_at) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![id.0, token.tenant, make_key(id), now.0])?;
            id
        }
    };
    connection
        .prepare_cached(
            "INSERT INTO tokens (id, tenant_id, user, hint, hash, scopes, created_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            token.id,
            tenant.0,
            token.user,
            format!("pt-{}", token.id),
            token.hash,
            token.scopes.join(" "),
            now.0,
            token.expires_at.map(|time| time.0),
        ])?;
    find(connection, &token.id)?.ok_or_else(|| DbError::Corrupt("a token vanished".to_owned()))
}

pub(super) fn revoke(connection: &Connection, id: &str) -> Result<bool, DbError> {
    let changed = connection
        .prepare_cached("UPDATE tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL")?
        .execute(params![id, Time::now().0])?;
    Ok(changed > 0)
}

pub(super) fn touch(connection: &Connection, used: &[(String, Time)]) -> Result<(), DbError> {
    let mut update = connection.prepare_cached("UPDATE tokens SET used_at = ?2 WHERE id = ?1")?;
    for (id, time) in used {
        update.execute(params![id, time.0])?;
    }
    Ok(())
}

pub(super) fn tenants(connection: &Connection) -> Result<Vec<TenantRow>, DbError> {
    let mut statement =
        connection.prepare_cached("SELECT id, name, data_key FROM tenants ORDER BY created_at")?;
    let rows = statement.query_map([], |row| {
        Ok(TenantRow { id: TenantId(raw(row, 0)?), name: row.get(1)?, data_key: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
