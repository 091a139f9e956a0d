//! Vaults and credentials.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use super::deliveries;
use crate::model::happening::Happening;
use crate::model::ids::{CredentialId, TenantId, VaultId};
use crate::model::refusal::Refusal;
use crate::model::time::Time;
use crate::model::vault::{Credential, CredentialBody, Vault, VaultBody};
use crate::store::error::DbError;
use crate::store::port::{
    CredentialChange, CredentialQuery, CredentialRow, DbFuture, Done, ListQuery, ListedPage, NewCredential,
    Once, VaultChange, VaultsDb,
};
use crate::store::sqlite::SqliteDb;
use crate::store::sqlite::columns::{json, optional_time, raw, time};
use crate::store::sqlite::lists::{List, page};
use crate::store::sqlite::once::once;

const VAULT: &str = "SELECT v.id, v.body, v.created_at, v.updated_at, v.archived_at FROM vaults v";
const CREDENTIAL: &str =
    "SELECT c.id, c.vault_id, c.body, c.created_at, c.updated_at, c.archived_at, c.sealed
    FROM credentials c";

fn read_vault(row: &Row<'_>) -> rusqlite::Result<Vault> {
    Ok(Vault {
        id: VaultId(raw(row, 0)?),
        body: json(row, 1)?,
        created_at: time(row, 2)?,
        updated_at: time(row, 3)?,
        archived_at: optional_time(row, 4)?,
    })
}

fn read_credential(row: &Row<'_>) -> rusqlite::Result<Credential> {
    Ok(Credential {
        id: CredentialId(raw(row, 0)?),
        vault: VaultId(raw(row, 1)?),
        body: json(row, 2)?,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
        archived_at: optional_time(row, 5)?,
    })
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<CredentialRow> {
    Ok(CredentialRow { credential: read_credential(row)?, sealed: row.get(6)? })
}

fn text(body: &impl Serialize) -> Result<String, DbError> {
    serde_json::to_string(body).map_err(|error| DbError::Corrupt(error.to_string()))
}

fn find_vault(connection: &Connection, tenant: TenantId, id: VaultId) -> Result<Vault, DbError> {
    let sql = format!("{VAULT} WHERE v.tenant_id = ?1 AND v.id = ?2 AND v.deleted_at IS NULL");
    let found = connection.prepare_cached(&sql)?.query_row(params![tenant.0, id.0], read_vault).optional()?;
    found.ok_or_else(|| Refusal::not_found("vault", id).into())
}

/// A vault that can be changed.
fn open_vault(connection: &Connection, tenant: TenantId, id: VaultId) -> Result<Vault, DbError> {
    let vault = find_vault(connection, tenant, id)?;
    if vault.archived_at.is_some() {
        return Err(Refusal::conflict(format!("The vault `{id}` is archived and cannot be changed.")).into());
    }
    Ok(vault)
}

fn create_vault(connection: &Connection, tenant: TenantId, body: VaultBody) -> Result<Vault, DbError> {
    let (id, now) = (VaultId::random(), Time::now());
    connection
        .prepare_cached(
            "INSERT INTO vaults (id, tenant_id, body, created_at, updated_at, name) VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
        )?
        .execute(params![id.0, tenant.0, text(&body)?, now.0, body.display_name])?;
    deliveries::notify(connection, tenant, &Happening::new("vault.created", id))?;
    Ok(Vault { id, body, created_at: now, updated_at: now, archived_at: None })
}

fn update_vault(
    connection: &Connection,
    tenant: TenantId,
    id: VaultId,
    change: VaultChange,
) -> Result<Vault, DbError> {
    let before = open_vault(connection, tenant, id)?;
    let body = change(&before)?;
    if body == before.body {
        return Ok(before);
    }
    let now = Time::now();
    connection
        .prepare_cached("UPDATE vaults SET body = ?2, name = ?3, updated_at = ?4 WHERE id = ?1")?
        .execute(params![id.0, text(&body)?, body.display_name, now.0])?;
    Ok(Vault { body, updated_at: now, ..before })
}

fn archive_vault(connection: &Connection, tenant: TenantId, id: VaultId) -> Result<Vault, DbError> {
    let vault = find_vault(connection, tenant, id)?;
    if vault.archived_at.is_some() {
        return Ok(vault);
    }
    let now = Time::now();
    connection
        .prepare_cached("UPDATE vaults SET archived_at = ?2, updated_at = ?2 WHERE id = ?1")?
        .execute(params![id.0, now.0])?;
    connection
        .prepare_cached(
            "UPDATE credentials SET archived_at = coalesce(archived_at, ?2), updated_at = ?2, sealed = x'' WHERE vault_id = ?1",
        )?
        .execute(params![id.0, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("vault.archived", id))?;
    Ok(Vault { archived_at: Some(now), updated_at: now, ..vault })
}

fn delete_vault(connection: &Connection, tenant: TenantId, id: VaultId) -> Result<(), DbError> {
    find_vault(connection, tenant, id)?;
    let now = Time::now();
    connection
        .prepare_cached("UPDATE vaults SET deleted_at = ?2, body = '{\"display_name\":\"\"}' WHERE id = ?1")?
        .execute(params![id.0, now.0])?;
    connection
        .prepare_cached("UPDATE credentials SET deleted_at = ?2, sealed = x'' WHERE vault_id = ?1")?
        .execute(params![id.0, now.0])?;
    deliveries::notify(connection, tenant, &Happening::new("vault.deleted", id))
}

fn named(alias: &str, name: Option<String>) -> Vec<(String, Vec<Value>)> {
    let mut conditions = vec![(format!("{alias}.deleted_at IS NULL"), Vec::new())];
    conditions.extend(name.map(|name| (format!("{alias}.name = ?"), vec![Value::Text(name)])));
    conditions
}

fn list_vaults(
    connection: &Connection,
    query: &ListQuery,
    name: Option<String>,
) -> Result<ListedPage<Vault>, DbError> {
    let list = List {
        select: VAULT,
        alias: "v",
        order: "id",
        find: "SELECT created_at, id FROM vaults WHERE tenant_id = ?1 AND id = ?2",
        conditions: named("v", name),
    };
    page(connection, list, query, read_vault)
}

fn find_credential(connection: &Connection, query: CredentialQuery) -> Result<CredentialRow, DbError> {
    find_vault(connection, query.tenant, query.vault)?;
    let sql = format!(
        "{CREDENTIAL} WHERE c.tenant_id = ?1 AND c.vault_id = ?2 AND c.id = ?3 AND c.deleted_at IS NULL"
    );
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![query.tenant.0, query.vault.0, query.id.0], read_row)
        .optional()?;
    found.ok_or_else(|| Refusal::not_found("credential", query.id).into())
}

fn create_credential(connection: &Connection, new: NewCredential) -> Result<Credential, DbError> {
    open_vault(connection, new.tenant, new.vault)?;
    let subject = new.body.auth.subject();
    let taken: Option<i64> = connection
        .prepare_cached(
            "SELECT 1 FROM credentials WHERE vault_id = ?1 AND subject = ?2 AND archived_at IS NULL AND deleted_at IS NULL",
        )?
        .query_row(params![new.vault.0, subject], |row| row.get(0))
        .optional()?;
    if taken.is_some() {
        let message = format!(
            "The vault `{}` has a credential for {subject} already. Update, archive or delete that one.",
            new.vault
        );
        return Err(Refusal::conflict(message).into());
    }
    let now = Time::now();
    connection
        .prepare_cached(
            "INSERT INTO credentials (id, vault_id, tenant_id, body, sealed, created_at, updated_at, name, subject)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8)",
        )?
        .execute(params![
            new.id.0,
            new.vault.0,
            new.tenant.0,
            text(&new.body)?,
            new.sealed,
            now.0,
            new.body.display_name.as_deref().unwrap_or_default(),
            subject,
        ])?;
    notify(connection, "vault_credential.created", new.tenant, new.vault, new.id)?;
    let NewCredential { id, vault, body, .. } = new;
    Ok(Credential { id, vault, body, created_at: now, updated_at: now, archived_at: None })
}

fn update_credential(
    connection: &Connection,
    query: CredentialQuery,
    change: CredentialChange,
) -> Result<Credential, DbError> {
    let before = find_credential(connection, query)?;
    if before.credential.archived_at.is_some() {
        let message = format!("The credential `{}` is archived and cannot be changed.", query.id);
        return Err(Refusal::conflict(message).into());
    }
    let (body, sealed) = change(&before)?;
    let now = Time::now();
    write(connection, query.id, &body, &sealed, now)?;
    Ok(Credential { body, updated_at: now, ..before.credential })
}

fn write(
    connection: &Connection,
    id: CredentialId,
    body: &CredentialBody,
    sealed: &[u8],
    now: Time,
) -> Result<(), DbError> {
    let name = body.display_name.as_deref().unwrap_or_default();
    connection
        .prepare_cached(
            "UPDATE credentials SET body = ?2, sealed = ?3, name = ?4, updated_at = ?5 WHERE id = ?1",
        )?
        .execute(params![id.0, text(body)?, sealed, name, now.0])?;
    Ok(())
}

fn archive_credential(connection: &Connection, query: CredentialQuery) -> Result<Credential, DbError> {
    let CredentialRow { credential, .. } = find_credential(connection, query)?;
    if credential.archived_at.is_some() {
        return Ok(credential);
    }
    let now = Time::now();
    connection
        .prepare_cached(
            "UPDATE credentials SET archived_at = ?2, updated_at = ?2, sealed = x'' WHERE id = ?1",
        )?
        .execute(params![query.id.0, now.0])?;
    notify(connection, "vault_credential.archived", query.tenant, query.vault, query.id)?;
    Ok(Credential { archived_at: Some(now), updated_at: now, ..credential })
}

fn delete_credential(connection: &Connection, query: CredentialQuery) -> Result<(), DbError> {
    find_credential(connection, query)?;
    connection
        .prepare_cached("UPDATE credentials SET deleted_at = ?2, sealed = x'' WHERE id = ?1")?
        .execute(params![query.id.0, Time::now().0])?;
    notify(connection, "vault_credential.deleted", query.tenant, query.vault, query.id)
}

fn notify(
    connection: &Connection,
    kind: &'static str,
    tenant: TenantId,
    vault: VaultId,
    id: CredentialId,
) -> Result<(), DbError> {
    deliveries::notify(connection, tenant, &Happening::new(kind, id).in_vault(vault))
}

fn list_credentials(
    connection: &Connection,
    vault: VaultId,
    query: &ListQuery,
    name: Option<String>,
) -> Result<ListedPage<Credential>, DbError> {
    find_vault(connection, query.tenant, vault)?;
    let mut conditions = named("c", name);
    conditions.push(("c.vault_id = ?".to_owned(), vec![Value::Blob(vault.0.to_vec())]));
    let list = List {
        select: CREDENTIAL,
        alias: "c",
        order: "id",
        find: "SELECT created_at, id FROM credentials WHERE tenant_id = ?1 AND id = ?2",
        conditions,
    };
    page(connection, list, query, read_credential)
}

fn usable(
    connection: &Connection,
    tenant: TenantId,
    vaults: &[VaultId],
) -> Result<Vec<CredentialRow>, DbError> {
    let sql = format!(
        "{CREDENTIAL} WHERE c.tenant_id = ?1 AND c.vault_id = ?2 AND c.archived_at IS NULL AND c.deleted_at IS NULL
         ORDER BY c.created_at, c.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = Vec::new();
    for vault in vaults {
        let rows = statement.query_map(params![tenant.0, vault.0], read_row)?;
        found.extend(rows.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

fn keep_renewed(
    connection: &Connection,
    before: &CredentialRow,
    body: &CredentialBody,
    sealed: &[u8],
) -> Result<bool, DbError> {
    let id = before.credential.id;
    let same: Option<i64> = connection
        .prepare_cached("SELECT 1 FROM credentials WHERE id = ?1 AND sealed = ?2 AND archived_at IS NULL AND deleted_at IS NULL")?
        .query_row(params![id.0, before.sealed], |row| row.get(0))
        .optional()?;
    if same.is_some() {
        write(connection, id, body, sealed, Time::now())?;
    }
    Ok(same.is_some())
}

impl VaultsDb for SqliteDb {
    fn create_vault(
        &self,
        tenant: TenantId,
        body: VaultBody,
        done: Once<Vault>,
    ) -> DbFuture<'_, Done<Vault>> {
        self.write(move |connection| once(connection, done, || create_vault(connection, tenant, body)))
    }

    fn vault(&self, tenant: TenantId, id: VaultId) -> DbFuture<'_, Vault> {
        self.read(move |connection| find_vault(connection, tenant, id))
    }

    fn update_vault(
        &self,
        tenant: TenantId,
        id: VaultId,
        change: VaultChange,
        done: Once<Vault>,
    ) -> DbFuture<'_, Done<Vault>> {
        self.write(move |connection| once(connection, done, || update_vault(connection, tenant, id, change)))
    }

    fn archive_vault(&self, tenant: TenantId, id: VaultId, done: Once<Vault>) -> DbFuture<'_, Done<Vault>> {
        self.write(move |connection| once(connection, done, || archive_vault(connection, tenant, id)))
    }

    fn delete_vault(&self, tenant: TenantId, id: VaultId, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |connection| once(connection, done, || delete_vault(connection, tenant, id)))
    }

    fn list_vaults(&self, query: ListQuery, name: Option<String>) -> DbFuture<'_, ListedPage<Vault>> {
        self.read(move |connection| list_vaults(connection, &query, name))
    }

    fn create_credential(
        &self,
        new: NewCredential,
        done: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>> {
        self.write(move |connection| once(connection, done, || create_credential(connection, new)))
    }

    fn credential(&self, query: CredentialQuery) -> DbFuture<'_, CredentialRow> {
        self.read(move |connection| find_credential(connection, query))
    }

    fn update_credential(
        &self,
        query: CredentialQuery,
        change: CredentialChange,
        done: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>> {
        self.write(move |connection| once(connection, done, || update_credential(connection, query, change)))
    }

    fn archive_credential(
        &self,
        query: CredentialQuery,
        done: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>> {
        self.write(move |connection| once(connection, done, || archive_credential(connection, query)))
    }

    fn delete_credential(&self, query: CredentialQuery, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |connection| once(connection, done, || delete_credential(connection, query)))
    }

    fn list_credentials(
        &self,
        vault: VaultId,
        query: ListQuery,
        name: Option<String>,
    ) -> DbFuture<'_, ListedPage<Credential>> {
        self.read(move |connection| list_credentials(connection, vault, &query, name))
    }

    fn usable_credentials(&self, tenant: TenantId, vaults: Vec<VaultId>) -> DbFuture<'_, Vec<CredentialRow>> {
        self.read(move |connection| usable(connection, tenant, &vaults))
    }

    fn keep_renewed(
        &self,
        before: CredentialRow,
        body: CredentialBody,
        sealed: Vec<u8>,
    ) -> DbFuture<'_, bool> {
        self.write(move |connection| keep_renewed(connection, &before, &body, &sealed))
    }
}
