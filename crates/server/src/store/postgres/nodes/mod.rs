//! Nodes: rows with an end that each node moves on, by the clock of the database.

mod hints;
mod listener;

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::columns::{number, raw, time, uuid};
use super::{NOW, PostgresDb};
use crate::model::ids::NodeId;
use crate::store::error::DbError;
use crate::store::port::{DbFuture, Driver, Hint, Hints, LeaseRow, NodeRow, NodesDb};

pub(super) use listener::try_listener;

/// How long a node counts as alive after a beat, in microseconds.
const LIFETIME: i64 = 15_000_000;

async fn register(transaction: &Transaction<'_>, node: &NodeRow) -> Result<(), DbError> {
    // The lock on its folder says that a process that had it before is gone.
    let delete = transaction.prepare_cached("DELETE FROM nodes WHERE home = $1").await?;
    transaction.execute(&delete, &[&uuid(node.home.0)]).await?;
    let sql = format!("INSERT INTO nodes VALUES ($1, $2, $3, $4, {NOW}, {NOW} + {LIFETIME}, $5)");
    let insert = transaction.prepare_cached(&sql).await?;
    let (id, home) = (uuid(node.id.0), uuid(node.home.0));
    transaction.execute(&insert, &[&id, &home, &node.address, &node.version, &node.is_draining]).await?;
    Ok(())
}

/// A node whose time is over stays gone, also when no one has noticed yet: it comes back under another id.
async fn beat(connection: &Object, id: NodeId) -> Result<bool, DbError> {
    let sql =
        format!("UPDATE nodes SET expires_at = {NOW} + {LIFETIME} WHERE id = $1 AND expires_at >= {NOW}");
    let statement = connection.prepare_cached(&sql).await?;
    Ok(connection.execute(&statement, &[&uuid(id.0)]).await? > 0)
}

async fn change(connection: &Object, sql: &str, id: NodeId) -> Result<(), DbError> {
    let statement = connection.prepare_cached(sql).await?;
    connection.execute(&statement, &[&uuid(id.0)]).await?;
    Ok(())
}

async fn list(connection: &Object) -> Result<Vec<NodeRow>, DbError> {
    let sql = "SELECT id, home, address, version, started_at, expires_at, draining FROM nodes ORDER BY started_at, id";
    let rows = connection.query(&connection.prepare_cached(sql).await?, &[]).await?;
    let read = |row: &Row| {
        Ok(NodeRow {
            id: NodeId(raw(row, 0)?),
            home: NodeId(raw(row, 1)?),
            address: row.try_get(2)?,
            version: row.try_get(3)?,
            started_at: time(row, 4)?,
            expires_at: time(row, 5)?,
            is_draining: row.try_get(6)?,
        })
    };
    rows.iter().map(read).collect()
}

async fn leases(connection: &Object, node: NodeId) -> Result<Vec<LeaseRow>, DbError> {
    let sql = "SELECT session_key, fence, inbox_seq FROM heads WHERE lease_node = $1";
    let statement = connection.prepare_cached(sql).await?;
    let rows = connection.query(&statement, &[&uuid(node.0)]).await?;
    let read =
        |row: &Row| Ok(LeaseRow { key: row.try_get(0)?, fence: row.try_get(1)?, inbox_seq: number(row, 2)? });
    rows.iter().map(read).collect()
}

async fn newest_events(connection: &Object, keys: Vec<i64>) -> Result<Vec<(i64, u64)>, DbError> {
    let sql = "SELECT h.session_key, h.event_seq FROM heads h
        JOIN sessions s ON s.key = h.session_key AND s.deleted_at IS NULL WHERE h.session_key = ANY($1)";
    let statement = connection.prepare_cached(sql).await?;
    let rows = connection.query(&statement, &[&keys]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, number(row, 1)?))).collect()
}

async fn drivers(connection: &Object, keys: Vec<i64>) -> Result<Vec<Driver>, DbError> {
    let sql = "SELECT h.session_key, n.id, n.address FROM heads h JOIN nodes n ON n.id = h.lease_node
        WHERE h.session_key = ANY($1)";
    let statement = connection.prepare_cached(sql).await?;
    let rows = connection.query(&statement, &[&keys]).await?;
    let read =
        |row: &Row| Ok(Driver { key: row.try_get(0)?, node: NodeId(raw(row, 1)?), address: row.try_get(2)? });
    rows.iter().map(read).collect()
}

impl NodesDb for PostgresDb {
    fn is_shared(&self) -> bool {
        true
    }

    fn register_node(&self, node: NodeRow) -> DbFuture<'_, ()> {
        self.write(move |transaction| Box::pin(async move { register(transaction, &node).await }))
    }

    fn beat(&self, id: NodeId) -> DbFuture<'_, bool> {
        self.read(move |connection| Box::pin(beat(connection, id)))
    }

    fn drain_node(&self, id: NodeId) -> DbFuture<'_, ()> {
        let sql = "UPDATE nodes SET draining = true WHERE id = $1";
        self.read(move |connection| Box::pin(change(connection, sql, id)))
    }

    fn remove_node(&self, id: NodeId) -> DbFuture<'_, ()> {
        self.read(move |connection| Box::pin(change(connection, "DELETE FROM nodes WHERE id = $1", id)))
    }

    fn list_nodes(&self) -> DbFuture<'_, Vec<NodeRow>> {
        self.read(|connection| Box::pin(list(connection)))
    }

    fn leases(&self, node: NodeId) -> DbFuture<'_, Vec<LeaseRow>> {
        self.read(move |connection| Box::pin(leases(connection, node)))
    }

    fn newest_events(&self, keys: Vec<i64>) -> DbFuture<'_, Vec<(i64, u64)>> {
        self.read(move |connection| Box::pin(newest_events(connection, keys)))
    }

    fn drivers(&self, keys: Vec<i64>) -> DbFuture<'_, Vec<Driver>> {
        self.read(move |connection| Box::pin(drivers(connection, keys)))
    }

    fn announce(&self, hints: Vec<Hint>) -> DbFuture<'_, ()> {
        self.read(move |connection| Box::pin(hints::announce(connection, hints)))
    }

    fn listen(&self, node: NodeId) -> DbFuture<'_, Option<Hints>> {
        Box::pin(async move { listener::listen(&self.listen_url, node).await.map(Some) })
    }
}
