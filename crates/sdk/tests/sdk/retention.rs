//! Old sessions and a session in this process: nothing is deleted unless the settings ask for it; then as the program
//! does, and what was deleted is reported.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use qoder_agent_sdk::{QoderAgentOptions, Settings, list_sessions, query};
use serde_json::{Map, Value, json};

use crate::support::{Place, all, within};

const MONTHS: Duration = Duration::from_secs(90 * 24 * 60 * 60);

async fn run(options: QoderAgentOptions) {
    let mut messages = query("Go.", options).unwrap();
    all(&mut messages).await;
    messages.close().await;
}

fn options(place: &Place) -> QoderAgentOptions {
    place.playing(&json!([{ "text": "done", "repeat": true }]))
}

fn retention(keys: &Value) -> Settings {
    let general = json!({ "sessionRetention": keys });
    Settings::Inline(Map::from_iter([("general".to_owned(), general)]))
}

/// The log of a session that was last used months ago.
async fn old(place: &Place) -> PathBuf {
    run(options(place)).await;
    let [session] = list_sessions(&place.sessions()).unwrap().try_into().unwrap();
    let name = format!("{}.jsonl", session.session_id);
    let log = place.0.session_files().into_iter().find(|log| log.ends_with(&name)).unwrap();
    let file = std::fs::File::options().append(true).open(&log).unwrap();
    file.set_modified(SystemTime::now() - MONTHS).unwrap();
    log
}

#[tokio::test]
async fn nothing_is_deleted_when_no_setting_speaks_of_it() {
    let place = Place::new();
    let log = old(&place).await;
    run(options(&place)).await;
    assert!(log.exists());
    assert!(!place.0.config().join("last-prune").exists(), "no process has looked");
}

#[tokio::test]
async fn old_sessions_go_when_the_settings_say_so_and_it_is_told() {
    let place = Place::new();
    let log = old(&place).await;
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let hears = Arc::clone(&told);
    let settings = retention(&json!({ "maxAge": "60d" }));
    let asked =
        options(&place).settings(settings).stderr(move |line| hears.lock().unwrap().push(line.to_owned()));
    run(asked).await;
    let expected = "1 old sessions were deleted (general.sessionRetention)";
    within(async {
        while !told.lock().unwrap().iter().any(|line| line == expected) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(!log.exists());
    assert_eq!(list_sessions(&place.sessions()).unwrap().len(), 1, "the new one stays");
}

#[tokio::test]
async fn a_setting_that_says_no_is_heard() {
    let place = Place::new();
    let log = old(&place).await;
    let settings = retention(&json!({ "enabled": false, "maxAge": "60d" }));
    run(options(&place).settings(settings)).await;
    assert!(log.exists() && !place.0.config().join("last-prune").exists());
}
