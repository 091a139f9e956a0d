//! What `serve doctor` tries of a PostgreSQL server.

use super::doctor::Checked;
use crate::store::postgres::{Inspection, PostgresDb};

/// The oldest version that is supported.
const OLDEST: u32 = 150_000;
/// Milliseconds by which clocks may differ before times of events look wrong to people.
const CLOCKS_APART: i64 = 1_000;
/// Connections of a node.
const CONNECTIONS: u32 = 17;

/// Tries what nodes need of a server.
pub(super) async fn check(postgres: &PostgresDb) -> Vec<Checked> {
    match postgres.inspect().await {
        Ok(found) => rows(&found),
        Err(error) => vec![Checked::bad("PostgreSQL", error.to_string(), error.hint())],
    }
}

fn rows(found: &Inspection) -> Vec<Checked> {
    vec![
        version(found),
        encoding(found),
        clock(found),
        pooler(found),
        listener(found),
        durability(found),
        room(found),
    ]
}

fn version(found: &Inspection) -> Checked {
    let text = format!("version {}.{}", found.version / 10_000, found.version % 10_000);
    if found.version >= OLDEST {
        return Checked::good("PostgreSQL", text);
    }
    Checked::bad("PostgreSQL", text, "use version 15 or newer")
}

fn encoding(found: &Inspection) -> Checked {
    if found.encoding == "UTF8" {
        return Checked::good("encoding", "UTF8");
    }
    Checked::bad("encoding", &found.encoding, "create the database with the encoding UTF8")
}

/// Leases use the clock of the database alone; ours is in what people read.
fn clock(found: &Inspection) -> Checked {
    let text = format!("{} ms ahead of this machine", found.clock_ahead);
    if found.clock_ahead.abs() <= CLOCKS_APART {
        return Checked::good("clock", text);
    }
    Checked::bad("clock", text, "synchronise the clocks; leases are safe, but times that clients see differ")
}

fn pooler(found: &Inspection) -> Checked {
    let text = if found.is_pooled {
        "in transaction mode; it must support prepared statements"
    } else {
        "none, or one that keeps a connection for each client"
    };
    Checked::good("pooler", text)
}

fn listener(found: &Inspection) -> Checked {
    match &found.listener {
        Ok(true) => Checked::good("listener", "notifications arrive"),
        Ok(false) => Checked::bad(
            "listener",
            "notifications do not arrive; nodes poll instead",
            "give the address of the server itself with `--listen-url`",
        ),
        Err(problem) => Checked::bad("listener", problem, "check `--listen-url`; nodes poll until it works"),
    }
}

fn durability(found: &Inspection) -> Checked {
    let text = match (found.synchronous_commit.as_str(), found.standbys.is_empty()) {
        ("off", _) => {
            let problem = "set `synchronous_commit` to on; a crash of the server loses what it confirmed";
            return Checked::bad("durability", "synchronous_commit is off", problem);
        }
        (mode, true) => {
            format!("synchronous_commit is {mode}, no synchronous standby: a failover may lose commits")
        }
        (mode, false) => format!("synchronous_commit is {mode}, standbys {}", found.standbys),
    };
    Checked::good("durability", text)
}

fn room(found: &Inspection) -> Checked {
    let text = format!("{} in all, {CONNECTIONS} a node", found.most_connections);
    if found.most_connections >= 2 * CONNECTIONS {
        return Checked::good("connections", text);
    }
    Checked::bad("connections", text, "raise `max_connections`, or use a pooler")
}
