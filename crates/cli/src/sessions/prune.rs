//! `qodercli sessions prune`, and the same after a run: sessions that are older than the settings say are deleted.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use qoder_config::home;
use qoder_config::settings::load_personal;
use qoder_runtime::sessions::retention::{self, OldSession, Pruned, Retention};
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::screen::{print_json_line, print_line, print_note, print_row};

/// Deletes what is too old, or says what would go.
pub fn run(environment: &BTreeMap<String, String>, dry_run: bool, as_json: bool) -> Result<Exit, Fault> {
    let root = home::config_root(environment);
    // A project has no say in what is kept of others.
    let settings = load_personal(&root, None, environment)
        .map_err(|error| Fault::from(qoder_runtime::setup::SetupError::from(error)))?;
    let retention = retention::configured(&settings);
    let pruned = retention.prune(&root, SystemTime::now(), dry_run);
    if as_json {
        print_json_line(data(&retention, &pruned, dry_run).to_string())?;
    } else {
        print_pruned(&retention, &pruned, dry_run)?;
    }
    Ok(if pruned.failed.is_empty() { Exit::Success } else { Exit::Session })
}

fn print_pruned(retention: &Retention, pruned: &Pruned, dry_run: bool) -> Result<(), Fault> {
    if !retention.enabled {
        print_note("nothing is deleted: general.sessionRetention.enabled is false");
    }
    let would = if dry_run { "would delete" } else { "deleted" };
    for session in &pruned.sessions {
        print_row(&format!("{would} {}  last used {}", session.id, day(session)))?;
    }
    for id in &pruned.in_use {
        print_row(&format!("kept {id}  a process uses it"))?;
    }
    for (id, problem) in &pruned.failed {
        print_note(&format!("cannot delete {id}: {problem}"));
    }
    print_line(&format!("{would} {} sessions", pruned.sessions.len()))
}

fn day(session: &OldSession) -> String {
    let time = jiff::Timestamp::try_from(session.modified).unwrap_or_default();
    time.strftime("%Y-%m-%d").to_string()
}

fn data(retention: &Retention, pruned: &Pruned, dry_run: bool) -> Value {
    let row = |session: &OldSession| {
        let modified = session.modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        json!({
            "sessionId": session.id, "lastModified": u64::try_from(modified).unwrap_or(0), "fileSize": session.size,
        })
    };
    let failed: Vec<Value> =
        pruned.failed.iter().map(|(id, problem)| json!({ "sessionId": id, "problem": problem })).collect();
    json!({
        "dryRun": dry_run, "enabled": retention.enabled, "maxAgeSeconds": retention.max_age.as_secs(),
        "minRetentionSeconds": retention.min_retention.as_secs(),
        "sessions": pruned.sessions.iter().map(row).collect::<Vec<_>>(), "inUse": pruned.in_use, "failed": failed,
    })
}
