//! Blobs in the database, in pieces: every node reaches them, and a backup of the database has them.

use deadpool_postgres::Pool;
use futures::FutureExt;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::columns::uuid;
use super::{DEADLINE, checkout, give_back, within};
use crate::model::ids::{TenantId, hex};
use crate::store::blobs::Blobs;
use crate::store::error::DbError;

/// Bytes of a piece.
const PIECE: usize = 1024 * 1024;

/// Keeps blobs in the table `blobs`.
#[derive(Debug, Clone)]
pub struct PostgresBlobs(Pool);

impl PostgresBlobs {
    pub(super) fn new(pool: Pool) -> Self {
        Self(pool)
    }
}

async fn put(pool: Pool, tenant: TenantId, content: Vec<u8>) -> Result<String, DbError> {
    let name = hex(&Sha256::digest(&content));
    let mut connection = checkout(&pool).await?;
    let done = within(DEADLINE, async {
        let transaction = connection.transaction().await?;
        let sql = "INSERT INTO blobs VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        let insert = transaction.prepare_cached(sql).await?;
        let pieces = if content.is_empty() { vec![&[][..]] } else { content.chunks(PIECE).collect() };
        for (piece, number) in pieces.into_iter().zip(0_i32..) {
            transaction.execute(&insert, &[&uuid(tenant.0), &name, &number, &piece]).await?;
        }
        transaction.commit().await?;
        Ok(())
    })
    .await;
    give_back(connection, &done);
    done.map(|()| name)
}

async fn get(pool: Pool, tenant: TenantId, name: String) -> Result<Option<Vec<u8>>, DbError> {
    let connection = checkout(&pool).await?;
    let done = within(DEADLINE, async {
        let sql = "SELECT body FROM blobs WHERE tenant_id = $1 AND name = $2 ORDER BY piece";
        let rows =
            connection.query(&connection.prepare_cached(sql).await?, &[&uuid(tenant.0), &name]).await?;
        let mut content = Vec::new();
        for row in &rows {
            content.extend_from_slice(row.try_get(0)?);
        }
        Ok((!rows.is_empty()).then_some(content))
    })
    .await;
    give_back(connection, &done);
    done
}

impl Blobs for PostgresBlobs {
    fn put(&self, tenant: TenantId, content: Vec<u8>) -> BoxFuture<'static, Result<String, DbError>> {
        put(self.0.clone(), tenant, content).boxed()
    }

    fn get(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, DbError>> {
        get(self.0.clone(), tenant, name.to_owned()).boxed()
    }
}
