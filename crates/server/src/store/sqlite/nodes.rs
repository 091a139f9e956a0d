//! The one node of a database in a file. What other nodes would be told has no one to hear it.

use rusqlite::params;

use super::SqliteDb;
use super::columns::{number, raw, time};
use crate::model::ids::NodeId;
use crate::store::port::{DbFuture, Driver, Hint, Hints, LeaseRow, NodeRow, NodesDb};

impl NodesDb for SqliteDb {
    fn is_shared(&self) -> bool {
        false
    }

    fn register_node(&self, node: NodeRow) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            // One process has the database's folder: what others left is of the past.
            connection.prepare_cached("DELETE FROM nodes")?.execute([])?;
            connection.prepare_cached("INSERT INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
                params![
                    node.id.0,
                    node.address,
                    node.version,
                    node.started_at.0,
                    node.expires_at.0,
                    node.is_draining,
                ],
            )?;
            Ok(())
        })
    }

    fn beat(&self, id: NodeId) -> DbFuture<'_, bool> {
        self.read(move |connection| {
            let mut select = connection.prepare_cached("SELECT 1 FROM nodes WHERE id = ?1")?;
            Ok(select.exists([id.0])?)
        })
    }

    fn drain_node(&self, id: NodeId) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            connection.prepare_cached("UPDATE nodes SET draining = 1 WHERE id = ?1")?.execute([id.0])?;
            Ok(())
        })
    }

    fn remove_node(&self, id: NodeId) -> DbFuture<'_, ()> {
        self.write(move |connection| {
            connection.prepare_cached("DELETE FROM nodes WHERE id = ?1")?.execute([id.0])?;
            Ok(())
        })
    }

    fn list_nodes(&self) -> DbFuture<'_, Vec<NodeRow>> {
        self.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT id, address, version, started_at, expires_at, draining FROM nodes")?;
            let rows = statement.query_map([], |row| {
                let id = NodeId(raw(row, 0)?);
                Ok(NodeRow {
                    id,
                    home: id,
                    address: row.get(1)?,
                    version: row.get(2)?,
                    started_at: time(row, 3)?,
                    expires_at: time(row, 4)?,
                    is_draining: row.get(5)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn leases(&self, node: NodeId) -> DbFuture<'_, Vec<LeaseRow>> {
        self.read(move |connection| {
            let mut statement = connection
                .prepare_cached("SELECT session_key, fence, inbox_seq FROM heads WHERE lease_node = ?1")?;
            let rows = statement.query_map([node.0], |row| {
                Ok(LeaseRow { key: row.get(0)?, fence: row.get(1)?, inbox_seq: number(row, 2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    fn newest_events(&self, keys: Vec<i64>) -> DbFuture<'_, Vec<(i64, u64)>> {
        self.read(move |connection| {
            let mut select = connection.prepare_cached(
                "SELECT h.event_seq FROM heads h JOIN sessions s ON s.key = h.session_key AND s.deleted_at IS NULL
                 WHERE h.session_key = ?1",
            )?;
            let mut newest = Vec::with_capacity(keys.len());
            for key in keys {
                let mut rows = select.query([key])?;
                if let Some(row) = rows.next()? {
                    newest.push((key, number(row, 0)?));
                }
            }
            Ok(newest)
        })
    }

    fn drivers(&self, _: Vec<i64>) -> DbFuture<'_, Vec<Driver>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn announce(&self, _: Vec<Hint>) -> DbFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn listen(&self, _: NodeId) -> DbFuture<'_, Option<Hints>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}
