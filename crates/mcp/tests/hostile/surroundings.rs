//! What a child process sees, and that it is gone when it shall be, with everything that it started.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use qoder_mcp::remote::clean_environment;
use qoder_types::server::Transport;
use serde_json::{Value, json};

use crate::hostile::scripted;
use crate::hostile::support::{Tested, context, until};

/// A process that has ended and was not collected yet is gone, too.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| !fields.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn only_the_cleaned_environment_and_its_own_variables() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut server = scripted("plain");
    if let Transport::Stdio { env, cwd, .. } = &mut server.config.transport {
        env.insert("ADDED".to_owned(), "yes".to_owned());
        *cwd = Some(folder.clone());
    }
    let ours = BTreeMap::from([("SECRET", "s"), ("KEPT", "k")]);
    let ours =
        ours.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>();
    let mut context = context(Arc::default());
    context.environment = Arc::new(clean_environment(&ours, &["SECRET".to_owned()]));
    let tested = Tested::new(&server, &context);
    tested.connect().await.unwrap();
    let said: Value = serde_json::from_str(&tested.said("environment", json!({})).await).unwrap();
    assert_eq!(said["cwd"], folder.to_str().unwrap());
    let variables = said["variables"].as_object().unwrap();
    assert_eq!((&variables["ADDED"], &variables["KEPT"]), (&json!("yes"), &json!("k")));
    assert!(!variables.contains_key("SECRET") && !variables.contains_key("QODER_TEST_MCP"), "{variables:?}");
}

#[tokio::test]
async fn closing_ends_the_whole_tree() {
    let tested = Tested::plain(&scripted("plain"));
    tested.connect().await.unwrap();
    let pid = tested.said("child", json!({})).await;
    assert!(is_alive(&pid));
    tested.close().await;
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn a_process_that_does_not_want_to_end_is_ended() {
    let tested = Tested::plain(&scripted("stubborn"));
    tested.connect().await.unwrap();
    let pid = tested.said("child", json!({})).await;
    tested.close().await;
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn letting_go_of_a_peer_ends_its_process() {
    let tested = Tested::plain(&scripted("plain"));
    tested.connect().await.unwrap();
    let pid = tested.said("child", json!({})).await;
    drop(tested);
    until(|| !is_alive(&pid)).await;
}

/// Set in the process that holds a server and waits to be killed.
const HOLDER: &str = "QODER_TEST_HOLDER";

#[tokio::test]
async fn nothing_is_left_when_we_are_killed() {
    if std::env::var_os(HOLDER).is_some() {
        let tested = Tested::plain(&scripted("stubborn"));
        tested.connect().await.unwrap();
        println!("\nholding {}", tested.said("child", json!({})).await);
        return std::future::pending().await;
    }
    let own = std::env::current_exe().unwrap();
    let mut holder = Command::new(own)
        .args(["--exact", "hostile::surroundings::nothing_is_left_when_we_are_killed", "--nocapture"])
        .env(HOLDER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let pid = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("holding ").map(str::to_owned));
    let pid = pid.expect("the holder says what it holds");
    assert!(is_alive(&pid));
    holder.kill().unwrap();
    holder.wait().unwrap();
    until(|| !is_alive(&pid)).await;
}
