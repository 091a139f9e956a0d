//! What a server costs that does nothing but take a request and commit one row: the floor for ours. Bare axum in front of
//! SQLite, with the same promises about the disk.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use rusqlite::Connection;

use super::super::Bench;
use super::super::measure::median;
use super::client::Client;

type Database = Arc<Mutex<Connection>>;

/// What the floor measured.
pub(super) struct Floor {
    /// Rows committed a second, by as many clients as create sessions.
    pub(super) rows: f64,
    /// One request and one row.
    pub(super) request: Duration,
}

async fn insert(State(database): State<Database>, body: String) -> Result<String, String> {
    let written = tokio::task::spawn_blocking(move || {
        let database = database.lock().unwrap_or_else(PoisonError::into_inner);
        database.execute("INSERT INTO rows (body) VALUES (?1)", [body])
    });
    match written.await {
        Ok(Ok(_)) => Ok("{}".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn open(bench: &Bench) -> Result<Connection> {
    let path = bench.work.join("floor.db");
    for end in ["", "-wal", "-shm"] {
        // What an earlier run left need not be there.
        let _ = std::fs::remove_file(format!("{}{end}", path.display()));
    }
    let database = Connection::open(path)?;
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE rows (key INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;",
    )?;
    Ok(database)
}

/// Serves for as long as it is measured.
pub(super) fn run(bench: &Bench, each: usize) -> Result<Floor> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?.to_string();
    let routes = Router::new().route("/v1/rows", post(insert)).with_state(Arc::new(Mutex::new(open(bench)?)));
    let serving = runtime.spawn(async move { axum::serve(listener, routes).await });

    let body = serde_json::json!({ "body": "x".repeat(300) });
    let client = || Client::connect(&address, "none");
    let rows = super::made_per_second(&client, each, |client| client.post("rows", &body).map(drop))?;
    let mut one = client()?;
    let mut took = Vec::new();
    for _ in 0..bench.many() {
        let begun = Instant::now();
        one.post("rows", &body)?;
        took.push(begun.elapsed());
    }
    serving.abort();
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(Floor { rows, request: median(took.into_iter()).context("nothing was measured")? })
}
