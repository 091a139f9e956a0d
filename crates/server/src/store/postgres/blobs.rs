//! Blobs in the database, in pieces: every node reaches them, and a backup of the database has them.

use bytes::{Bytes, BytesMut};
use deadpool_postgres::{Object, Pool};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::columns::uuid;
use super::{DEADLINE, checkout, give_back, within};
use crate::model::ids::{TenantId, hex};
use crate::model::time::Time;
use crate::store::blobs::{BlobReader, BlobWriter, Blobs, is_plain};
use crate::store::error::DbError;

/// Bytes of a piece.
const PIECE: usize = 1024 * 1024;
const INSERT: &str = "INSERT INTO blobs VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";

/// Keeps blobs in the table `blobs`.
#[derive(Debug, Clone)]
pub struct PostgresBlobs(Pool);

impl PostgresBlobs {
    pub(super) fn new(pool: Pool) -> Self {
        Self(pool)
    }

    fn blob(&self, tenant: TenantId, name: &str) -> Named {
        Named { pool: self.0.clone(), tenant: uuid(tenant.0), name: name.to_owned() }
    }
}

/// One blob.
#[derive(Clone)]
struct Named {
    pool: Pool,
    tenant: Uuid,
    name: String,
}

impl Named {
    /// Runs a statement about the blob.
    async fn execute(&self, sql: &str) -> Result<(), DbError> {
        let connection = checkout(&self.pool).await?;
        let done = within(DEADLINE, async {
            connection.execute(&connection.prepare_cached(sql).await?, &[&self.tenant, &self.name]).await?;
            Ok(())
        })
        .await;
        give_back(connection, &done);
        done
    }

    /// Writes pieces, and with `is_last` makes the blob visible, in one transaction.
    async fn insert(&self, first: i32, pieces: &[&[u8]], is_last: bool) -> Result<(), DbError> {
        let mut connection = checkout(&self.pool).await?;
        let done = within(DEADLINE, self.insert_in(&mut connection, first, pieces, is_last)).await;
        give_back(connection, &done);
        done
    }

    async fn insert_in(
        &self,
        connection: &mut Object,
        first: i32,
        pieces: &[&[u8]],
        is_last: bool,
    ) -> Result<(), DbError> {
        let transaction = connection.transaction().await?;
        let insert = transaction.prepare_cached(INSERT).await?;
        for (piece, number) in pieces.iter().zip(first..) {
            transaction.execute(&insert, &[&self.tenant, &self.name, &number, piece]).await?;
        }
        if is_last {
            let sql = "DELETE FROM blob_uploads WHERE tenant_id = $1 AND name = $2";
            transaction.execute(&transaction.prepare_cached(sql).await?, &[&self.tenant, &self.name]).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// The content of a piece; `None` when it does not exist, or the blob is not finished.
    async fn piece(&self, number: i32) -> Result<Option<Vec<u8>>, DbError> {
        let connection = checkout(&self.pool).await?;
        let done = within(DEADLINE, async {
            let sql = "SELECT body FROM blobs b WHERE tenant_id = $1 AND name = $2 AND piece = $3
                AND NOT EXISTS (SELECT FROM blob_uploads u WHERE u.tenant_id = $1 AND u.name = $2)";
            let statement = connection.prepare_cached(sql).await?;
            let row = connection.query_opt(&statement, &[&self.tenant, &self.name, &number]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
        .await;
        give_back(connection, &done);
        done
    }

    async fn begin(&self) -> Result<(), DbError> {
        let connection = checkout(&self.pool).await?;
        let done = within(DEADLINE, async {
            let sql = "INSERT INTO blob_uploads SELECT $1, $2, $3
                WHERE NOT EXISTS (SELECT FROM blobs WHERE tenant_id = $1 AND name = $2)";
            let statement = connection.prepare_cached(sql).await?;
            let made = connection.execute(&statement, &[&self.tenant, &self.name, &Time::now().0]).await?;
            if made == 0 { Err(DbError::Corrupt(format!("the blob {} exists", self.name))) } else { Ok(()) }
        })
        .await;
        give_back(connection, &done);
        done
    }

    async fn remove(&self) -> Result<(), DbError> {
        self.execute("DELETE FROM blobs WHERE tenant_id = $1 AND name = $2").await?;
        self.execute("DELETE FROM blob_uploads WHERE tenant_id = $1 AND name = $2").await
    }

    async fn read(&self) -> Result<Option<Vec<u8>>, DbError> {
        let Some(mut content) = self.piece(0).await? else { return Ok(None) };
        let mut number = 1;
        while let Some(piece) = self.piece(number).await? {
            content.extend_from_slice(&piece);
            number += 1;
        }
        Ok(Some(content))
    }
}

/// A blob that is being written; the rows of one that is dropped are removed.
struct PostgresWriter {
    blob: Named,
    waiting: BytesMut,
    pieces: i32,
    is_finished: bool,
}

impl Drop for PostgresWriter {
    fn drop(&mut self) {
        // Without a runtime, the care of the database removes them a day later.
        if !self.is_finished
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let blob = self.blob.clone();
            runtime.spawn(async move { drop(blob.remove().await) });
        }
    }
}

impl BlobWriter for PostgresWriter {
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), DbError>> {
        async move {
            self.waiting.extend_from_slice(&piece);
            while self.waiting.len() >= PIECE {
                let full = self.waiting.split_to(PIECE);
                self.blob.insert(self.pieces, &[&full], false).await?;
                self.pieces += 1;
            }
            Ok(())
        }
        .boxed()
    }

    fn finish(mut self: Box<Self>) -> BoxFuture<'static, Result<(), DbError>> {
        async move {
            // An empty blob has one empty piece.
            let last = self.waiting.split();
            let pieces: &[&[u8]] = if last.is_empty() && self.pieces > 0 { &[] } else { &[&last] };
            self.blob.insert(self.pieces, pieces, true).await?;
            self.is_finished = true;
            Ok(())
        }
        .boxed()
    }
}

fn pieces(blob: Named) -> BlobReader {
    let next = |(blob, number): (Named, i32)| async move {
        match blob.piece(number).await {
            Ok(None) => None,
            Ok(Some(piece)) => Some((Ok(Bytes::from(piece)), (blob, number + 1))),
            Err(error) => Some((Err(error), (blob, i32::MAX))),
        }
    };
    futures::stream::unfold((blob, 0), next).boxed()
}

impl Blobs for PostgresBlobs {
    fn put(&self, tenant: TenantId, content: Vec<u8>) -> BoxFuture<'static, Result<String, DbError>> {
        let name = hex(&Sha256::digest(&content));
        let blob = self.blob(tenant, &name);
        async move {
            let pieces = if content.is_empty() { vec![&[][..]] } else { content.chunks(PIECE).collect() };
            blob.insert(0, &pieces, false).await?;
            Ok(name)
        }
        .boxed()
    }

    fn get(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<Vec<u8>>, DbError>> {
        let blob = self.blob(tenant, name);
        async move { blob.read().await }.boxed()
    }

    fn begin(
        &self,
        tenant: TenantId,
        name: &str,
    ) -> BoxFuture<'static, Result<Box<dyn BlobWriter>, DbError>> {
        let blob = self.blob(tenant, name);
        async move {
            if !is_plain(&blob.name) {
                return Err(DbError::Corrupt(format!("`{}` is not the name of a blob", blob.name)));
            }
            blob.begin().await?;
            let writer = PostgresWriter { blob, waiting: BytesMut::new(), pieces: 0, is_finished: false };
            Ok(Box::new(writer) as Box<dyn BlobWriter>)
        }
        .boxed()
    }

    fn open(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<Option<BlobReader>, DbError>> {
        let blob = self.blob(tenant, name);
        async move { Ok(blob.piece(0).await?.map(|_| pieces(blob))) }.boxed()
    }

    fn remove(&self, tenant: TenantId, name: &str) -> BoxFuture<'static, Result<(), DbError>> {
        let blob = self.blob(tenant, name);
        async move { blob.remove().await }.boxed()
    }
}
