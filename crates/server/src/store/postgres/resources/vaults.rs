//! Vaults and credentials.

use deadpool_postgres::{GenericClient, Object, Transaction};
use tokio_postgres::Row;

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
use crate::store::postgres::PostgresDb;
use crate::store::postgres::columns::{json, optional_time, raw, text, time, uuid};
use crate::store::postgres::lists::{Conditions, List, page};
use crate::store::postgres::once::once;

const VAULT: &str = "SELECT v.id, v.body::text, v.created_at, v.updated_at, v.archived_at FROM vaults v";
const CREDENTIAL: &str =
    "SELECT c.id, c.vault_id, c.body::text, c.created_at, c.updated_at, c.archived_at, c.sealed
    FROM credentials c";

fn read_vault(row: &Row) -> Result<Vault, DbError> {
    Ok(Vault {
        id: VaultId(raw(row, 0)?),
        body: json(row, 1)?,
        created_at: time(row, 2)?,
        updated_at: time(row, 3)?,
        archived_at: optional_time(row, 4)?,
    })
}

fn read_credential(row: &Row) -> Result<Credential, DbError> {
    Ok(Credential {
        id: CredentialId(raw(row, 0)?),
        vault: VaultId(raw(row, 1)?),
        body: json(row, 2)?,
        created_at: time(row, 3)?,
        updated_at: time(row, 4)?,
        archived_at: optional_time(row, 5)?,
    })
}

fn read_row(row: &Row) -> Result<CredentialRow, DbError> {
    Ok(CredentialRow { credential: read_credential(row)?, sealed: row.try_get(6)? })
}

async fn select_vault(
    client: &impl GenericClient,
    tenant: TenantId,
    id: VaultId,
    lock: &str,
) -> Result<Vault, DbError> {
    let sql = format!("{VAULT} WHERE v.tenant_id = $1 AND v.id = $2 AND v.deleted_at IS NULL {lock}");
    let statement = client.prepare_cached(&sql).await?;
    let row = client.query_opt(&statement, &[&uuid(tenant.0), &uuid(id.0)]).await?;
    read_vault(&row.ok_or_else(|| Refusal::not_found("vault", id))?)
}

async fn find_vault(client: &impl GenericClient, tenant: TenantId, id: VaultId) -> Result<Vault, DbError> {
    select_vault(client, tenant, id, "").await
}

/// A vault that no other transaction changes until this one ends; nor what is in it.
async fn lock_vault(transaction: &Transaction<'_>, tenant: TenantId, id: VaultId) -> Result<Vault, DbError> {
    select_vault(transaction, tenant, id, "FOR NO KEY UPDATE").await
}

/// A vault that can be changed.
async fn open_vault(transaction: &Transaction<'_>, tenant: TenantId, id: VaultId) -> Result<Vault, DbError> {
    let vault = lock_vault(transaction, tenant, id).await?;
    if vault.archived_at.is_some() {
        return Err(Refusal::conflict(format!("The vault `{id}` is archived and cannot be changed.")).into());
    }
    Ok(vault)
}

async fn create_vault(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    body: VaultBody,
) -> Result<Vault, DbError> {
    let (id, now) = (VaultId::random(), Time::now());
    let sql = "INSERT INTO vaults (id, tenant_id, body, created_at, updated_at, name)
        VALUES ($1, $2, $3::text::json, $4, $4, $5)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction
        .execute(&statement, &[&uuid(id.0), &uuid(tenant.0), &text(&body)?, &now.0, &body.display_name])
        .await?;
    deliveries::notify(transaction, tenant, &Happening::new("vault.created", id)).await?;
    Ok(Vault { id, body, created_at: now, updated_at: now, archived_at: None })
}

async fn update_vault(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: VaultId,
    change: VaultChange,
) -> Result<Vault, DbError> {
    let before = open_vault(transaction, tenant, id).await?;
    let body = change(&before)?;
    if body == before.body {
        return Ok(before);
    }
    let now = Time::now();
    let sql = "UPDATE vaults SET body = $2::text::json, name = $3, updated_at = $4 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &text(&body)?, &body.display_name, &now.0]).await?;
    Ok(Vault { body, updated_at: now, ..before })
}

/// Runs statements about one thing at one time.
async fn each(
    transaction: &Transaction<'_>,
    statements: &[&str],
    id: uuid::Uuid,
    now: Time,
) -> Result<(), DbError> {
    for sql in statements {
        transaction.execute(&transaction.prepare_cached(sql).await?, &[&id, &now.0]).await?;
    }
    Ok(())
}

async fn archive_vault(
    transaction: &Transaction<'_>,
    tenant: TenantId,
    id: VaultId,
) -> Result<Vault, DbError> {
    let vault = lock_vault(transaction, tenant, id).await?;
    if vault.archived_at.is_some() {
        return Ok(vault);
    }
    let now = Time::now();
    let statements = [
        "UPDATE vaults SET archived_at = $2, updated_at = $2 WHERE id = $1",
        "UPDATE credentials SET archived_at = coalesce(archived_at, $2), updated_at = $2, sealed = '' WHERE vault_id = $1",
    ];
    each(transaction, &statements, uuid(id.0), now).await?;
    deliveries::notify(transaction, tenant, &Happening::new("vault.archived", id)).await?;
    Ok(Vault { archived_at: Some(now), updated_at: now, ..vault })
}

async fn delete_vault(transaction: &Transaction<'_>, tenant: TenantId, id: VaultId) -> Result<(), DbError> {
    lock_vault(transaction, tenant, id).await?;
    let statements = [
        r#"UPDATE vaults SET deleted_at = $2, body = '{"display_name":""}' WHERE id = $1"#,
        "UPDATE credentials SET deleted_at = $2, sealed = '' WHERE vault_id = $1",
    ];
    each(transaction, &statements, uuid(id.0), Time::now()).await?;
    deliveries::notify(transaction, tenant, &Happening::new("vault.deleted", id)).await
}

fn named(alias: &str, name: Option<String>) -> Conditions {
    let mut conditions = Conditions::default();
    conditions.plain(format!("{alias}.deleted_at IS NULL"));
    if let Some(name) = name {
        conditions.with(&format!("{alias}.name = ?"), vec![Box::new(name)]);
    }
    conditions
}

async fn list_vaults(
    connection: &Object,
    query: &ListQuery,
    name: Option<String>,
) -> Result<ListedPage<Vault>, DbError> {
    let list = List { select: VAULT, alias: "v", order: "id", table: "vaults", conditions: named("v", name) };
    page(connection, list, query, read_vault).await
}

async fn find_credential(
    client: &impl GenericClient,
    query: CredentialQuery,
) -> Result<CredentialRow, DbError> {
    find_vault(client, query.tenant, query.vault).await?;
    let sql = format!(
        "{CREDENTIAL} WHERE c.tenant_id = $1 AND c.vault_id = $2 AND c.id = $3 AND c.deleted_at IS NULL"
    );
    let statement = client.prepare_cached(&sql).await?;
    let row = client
        .query_opt(&statement, &[&uuid(query.tenant.0), &uuid(query.vault.0), &uuid(query.id.0)])
        .await?;
    read_row(&row.ok_or_else(|| Refusal::not_found("credential", query.id))?)
}

/// A credential that no other transaction changes until this one ends.
async fn lock_credential(
    transaction: &Transaction<'_>,
    query: CredentialQuery,
) -> Result<CredentialRow, DbError> {
    lock_vault(transaction, query.tenant, query.vault).await?;
    find_credential(transaction, query).await
}

async fn create_credential(transaction: &Transaction<'_>, new: NewCredential) -> Result<Credential, DbError> {
    open_vault(transaction, new.tenant, new.vault).await?;
    let subject = new.body.auth.subject();
    let sql = "SELECT FROM credentials
        WHERE vault_id = $1 AND subject = $2 AND archived_at IS NULL AND deleted_at IS NULL";
    let statement = transaction.prepare_cached(sql).await?;
    if transaction.query_opt(&statement, &[&uuid(new.vault.0), &subject]).await?.is_some() {
        let message = format!(
            "The vault `{}` has a credential for {subject} already. Update, archive or delete that one.",
            new.vault
        );
        return Err(Refusal::conflict(message).into());
    }
    let now = Time::now();
    let sql = "INSERT INTO credentials (id, vault_id, tenant_id, body, sealed, created_at, updated_at, name, subject)
        VALUES ($1, $2, $3, $4::text::json, $5, $6, $6, $7, $8)";
    let statement = transaction.prepare_cached(sql).await?;
    let name = new.body.display_name.as_deref().unwrap_or_default();
    transaction
        .execute(
            &statement,
            &[
                &uuid(new.id.0),
                &uuid(new.vault.0),
                &uuid(new.tenant.0),
                &text(&new.body)?,
                &new.sealed,
                &now.0,
                &name,
                &subject,
            ],
        )
        .await?;
    let NewCredential { tenant, id, vault, body, .. } = new;
    let happening = Happening::new("vault_credential.created", id).in_vault(vault);
    deliveries::notify(transaction, tenant, &happening).await?;
    Ok(Credential { id, vault, body, created_at: now, updated_at: now, archived_at: None })
}

async fn update_credential(
    transaction: &Transaction<'_>,
    query: CredentialQuery,
    change: CredentialChange,
) -> Result<Credential, DbError> {
    let before = lock_credential(transaction, query).await?;
    if before.credential.archived_at.is_some() {
        let message = format!("The credential `{}` is archived and cannot be changed.", query.id);
        return Err(Refusal::conflict(message).into());
    }
    let (body, sealed) = change(&before)?;
    let now = Time::now();
    write(transaction, query.id, &body, &sealed, now).await?;
    Ok(Credential { body, updated_at: now, ..before.credential })
}

async fn write(
    transaction: &Transaction<'_>,
    id: CredentialId,
    body: &CredentialBody,
    sealed: &[u8],
    now: Time,
) -> Result<(), DbError> {
    let name = body.display_name.as_deref().unwrap_or_default();
    let sql =
        "UPDATE credentials SET body = $2::text::json, sealed = $3, name = $4, updated_at = $5 WHERE id = $1";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&uuid(id.0), &text(body)?, &sealed, &name, &now.0]).await?;
    Ok(())
}

async fn archive_credential(
    transaction: &Transaction<'_>,
    query: CredentialQuery,
) -> Result<Credential, DbError> {
    let CredentialRow { credential, .. } = lock_credential(transaction, query).await?;
    if credential.archived_at.is_some() {
        return Ok(credential);
    }
    let now = Time::now();
    let sql = "UPDATE credentials SET archived_at = $2, updated_at = $2, sealed = '' WHERE id = $1";
    each(transaction, &[sql], uuid(query.id.0), now).await?;
    let happening = Happening::new("vault_credential.archived", query.id).in_vault(query.vault);
    deliveries::notify(transaction, query.tenant, &happening).await?;
    Ok(Credential { archived_at: Some(now), updated_at: now, ..credential })
}

async fn delete_credential(transaction: &Transaction<'_>, query: CredentialQuery) -> Result<(), DbError> {
    lock_credential(transaction, query).await?;
    let sql = "UPDATE credentials SET deleted_at = $2, sealed = '' WHERE id = $1";
    each(transaction, &[sql], uuid(query.id.0), Time::now()).await?;
    let happening = Happening::new("vault_credential.deleted", query.id).in_vault(query.vault);
    deliveries::notify(transaction, query.tenant, &happening).await
}

async fn list_credentials(
    connection: &Object,
    vault: VaultId,
    query: &ListQuery,
    name: Option<String>,
) -> Result<ListedPage<Credential>, DbError> {
    find_vault(connection, query.tenant, vault).await?;
    let mut conditions = named("c", name);
    conditions.with("c.vault_id = ?", vec![Box::new(uuid(vault.0))]);
    let list = List { select: CREDENTIAL, alias: "c", order: "id", table: "credentials", conditions };
    page(connection, list, query, read_credential).await
}

async fn usable(
    connection: &Object,
    tenant: TenantId,
    vaults: &[VaultId],
) -> Result<Vec<CredentialRow>, DbError> {
    let sql = format!(
        "{CREDENTIAL} WHERE c.tenant_id = $1 AND c.vault_id = ANY($2) AND c.archived_at IS NULL AND c.deleted_at IS NULL
         ORDER BY array_position($2, c.vault_id), c.created_at, c.id"
    );
    let statement = connection.prepare_cached(&sql).await?;
    let wanted: Vec<uuid::Uuid> = vaults.iter().map(|vault| uuid(vault.0)).collect();
    let rows = connection.query(&statement, &[&uuid(tenant.0), &wanted]).await?;
    rows.iter().map(read_row).collect()
}

async fn keep_renewed(
    transaction: &Transaction<'_>,
    before: &CredentialRow,
    body: &CredentialBody,
    sealed: &[u8],
) -> Result<bool, DbError> {
    let id = before.credential.id;
    let sql =
        "SELECT FROM credentials WHERE id = $1 AND sealed = $2 AND archived_at IS NULL AND deleted_at IS NULL
        FOR UPDATE";
    let statement = transaction.prepare_cached(sql).await?;
    let is_same = transaction.query_opt(&statement, &[&uuid(id.0), &before.sealed]).await?.is_some();
    if is_same {
        write(transaction, id, body, sealed, Time::now()).await?;
    }
    Ok(is_same)
}

impl VaultsDb for PostgresDb {
    fn create_vault(
        &self,
        tenant: TenantId,
        body: VaultBody,
        done: Once<Vault>,
    ) -> DbFuture<'_, Done<Vault>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, create_vault(transaction, tenant, body)))
        })
    }

    fn vault(&self, tenant: TenantId, id: VaultId) -> DbFuture<'_, Vault> {
        self.read(move |connection| Box::pin(find_vault(connection, tenant, id)))
    }

    fn update_vault(
        &self,
        tenant: TenantId,
        id: VaultId,
        change: VaultChange,
        done: Once<Vault>,
    ) -> DbFuture<'_, Done<Vault>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, update_vault(transaction, tenant, id, change)))
        })
    }

    fn archive_vault(&self, tenant: TenantId, id: VaultId, done: Once<Vault>) -> DbFuture<'_, Done<Vault>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, archive_vault(transaction, tenant, id)))
        })
    }

    fn delete_vault(&self, tenant: TenantId, id: VaultId, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, delete_vault(transaction, tenant, id)))
        })
    }

    fn list_vaults(&self, query: ListQuery, name: Option<String>) -> DbFuture<'_, ListedPage<Vault>> {
        self.read(move |connection| Box::pin(async move { list_vaults(connection, &query, name).await }))
    }

    fn create_credential(
        &self,
        new: NewCredential,
        done: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>> {
        self.write(move |transaction| Box::pin(once(transaction, done, create_credential(transaction, new))))
    }

    fn credential(&self, query: CredentialQuery) -> DbFuture<'_, CredentialRow> {
        self.read(move |connection| Box::pin(find_credential(connection, query)))
    }

    fn update_credential(
        &self,
        query: CredentialQuery,
        change: CredentialChange,
        done: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, update_credential(transaction, query, change)))
        })
    }

    fn archive_credential(
        &self,
        query: CredentialQuery,
        done: Once<Credential>,
    ) -> DbFuture<'_, Done<Credential>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, archive_credential(transaction, query)))
        })
    }

    fn delete_credential(&self, query: CredentialQuery, done: Once<()>) -> DbFuture<'_, Done<()>> {
        self.write(move |transaction| {
            Box::pin(once(transaction, done, delete_credential(transaction, query)))
        })
    }

    fn list_credentials(
        &self,
        vault: VaultId,
        query: ListQuery,
        name: Option<String>,
    ) -> DbFuture<'_, ListedPage<Credential>> {
        self.read(move |connection| {
            Box::pin(async move { list_credentials(connection, vault, &query, name).await })
        })
    }

    fn usable_credentials(&self, tenant: TenantId, vaults: Vec<VaultId>) -> DbFuture<'_, Vec<CredentialRow>> {
        self.read(move |connection| Box::pin(async move { usable(connection, tenant, &vaults).await }))
    }

    fn keep_renewed(
        &self,
        before: CredentialRow,
        body: CredentialBody,
        sealed: Vec<u8>,
    ) -> DbFuture<'_, bool> {
        self.write(move |transaction| {
            Box::pin(async move { keep_renewed(transaction, &before, &body, &sealed).await })
        })
    }
}
