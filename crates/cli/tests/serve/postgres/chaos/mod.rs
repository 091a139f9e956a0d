//! Kills, freezes and cuts at random, while clients of two nodes work: nothing that was accepted is lost, nothing counts or happens
//! twice, and what a client saw has no gap. `cargo xtask chaos 10000` runs it longer; the seed that it prints gives the same faults
//! again, though not at the same moments.

mod caller;
mod client;
mod faults;

use std::sync::atomic::{AtomicBool, Ordering};

use qoder_testkit::{Reply, Script, assistant_count};
use serde_json::{Value, json};

use self::caller::{Caller, GIVEN_UP};
use self::client::Client;
use self::faults::Disturbed;
use crate::serve::support::{custom, id, kind, toolset};

/// How many faults there are, and the number that all of them follow from.
const FAULTS: &str = "QODER_CHAOS_FAULTS";
const SEED: &str = "QODER_CHAOS_SEED";
/// Clients, each with a session of its own at a time.
const CLIENTS: usize = 6;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// A turn with a command that leaves a mark, a call of the client and a call that is asked about.
fn script() -> Script {
    Script::by(|request, _| {
        let count = assistant_count(request);
        match count % 3 {
            0 => Reply::tool("Bash", json!({ "command": format!("echo {count} >> effects.txt") })),
            1 => Reply::ToolCalls(vec![
                ("weather".to_owned(), json!({ "city": "Oslo" })),
                ("Write".to_owned(), json!({ "file_path": format!("{count}.txt"), "content": "x" })),
            ]),
            _ => Reply::text("done"),
        }
    })
}

#[test]
fn random_kills_freezes_and_cuts_lose_and_double_nothing() {
    let (faults, seed) = (number(FAULTS, 200), number(SEED, u64::from(std::process::id())));
    println!("{faults} faults, {SEED}={seed}");
    let mut disturbed = Disturbed::start(script());
    let tools = json!([toolset(&[("Write", "always_ask")]), custom("weather")]);
    let node = disturbed.node();
    let body = json!({ "agent": node.agent(&tools), "environment_id": node.environment() });
    let (addresses, token) = (disturbed.addresses(), node.token.clone());
    let stops = AtomicBool::new(false);
    let worked: Vec<Client> = std::thread::scope(|scope| {
        let (addresses, token, body, stops) = (&addresses, &token, &body, &stops);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = Client::new(Caller::new(addresses, token, number), body);
                    while !stops.load(Ordering::SeqCst) {
                        client.turn();
                    }
                    client
                })
            })
            .collect();
        // Clients stop also when a fault cannot be made.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| disturbed.disturb(faults, seed)));
        GIVEN_UP.store(made.is_err(), Ordering::SeqCst);
        stops.store(true, Ordering::SeqCst);
        let joined: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        made.unwrap();
        joined.into_iter().map(Result::unwrap).collect()
    });
    let turns: usize = worked.iter().map(|client| client.turns).sum();
    let given_up: usize = worked.iter().map(|client| client.given_up).sum();
    println!("{turns} turns, {given_up} of them were given up after too many attempts");
    assert!(turns > CLIENTS, "work was done in between");
    for session in worked.iter().flat_map(|client| &client.sessions) {
        check(&disturbed, &session.id, &session.seen, &session.accepted);
    }
    let rows = |sql: &str| disturbed.query(sql);
    assert_eq!(rows("SELECT count(*) FROM inbox"), "0", "every input was taken");
    assert_eq!(
        rows("SELECT count(*) FROM pending WHERE closed_at IS NULL"),
        "0",
        "every action was answered"
    );
    let forgotten = "SELECT count(*) FROM heads WHERE status IN ('running', 'rescheduling') AND wake_at IS NULL AND lease_node IS NULL";
    assert_eq!(rows(forgotten), "0", "no session with work is left alone");
}

fn check(disturbed: &Disturbed, session: &str, seen: &[Value], accepted: &[String]) {
    let stored = disturbed.events(session);
    let ids = |events: &[Value]| events.iter().map(id).collect::<Vec<_>>();
    let of = |wanted: &str| stored.iter().filter(|event| kind(event) == wanted).collect::<Vec<_>>();
    assert_eq!(
        ids(seen),
        ids(&stored[..seen.len()]),
        "{session}: a client saw a gap, a repeat or another order"
    );
    assert_eq!(of("user.message").iter().map(|event| id(event)).collect::<Vec<_>>(), accepted, "{session}");
    for (uses, results, key) in [
        ("agent.tool_use", "agent.tool_result", "tool_use_id"),
        ("agent.custom_tool_use", "user.custom_tool_result", "custom_tool_use_id"),
    ] {
        for result in of(results) {
            let same = of(results).iter().filter(|other| other[key] == result[key]).count();
            assert_eq!(same, 1, "{session}: one result a call");
            assert!(of(uses).iter().any(|call| call["id"] == result[key]), "{session}: a result of nothing");
        }
    }
    let confirmed: Vec<&Value> =
        of("user.tool_confirmation").iter().map(|event| &event["tool_use_id"]).collect();
    assert!(
        confirmed.iter().enumerate().all(|(at, call)| !confirmed[..at].contains(call)),
        "{session}: one answer"
    );
    let effects =
        std::fs::read_to_string(disturbed.workspace(session).join("effects.txt")).unwrap_or_default();
    let marks: Vec<&str> = effects.lines().collect();
    let twice: Vec<_> = marks.iter().enumerate().filter(|(at, mark)| marks[..*at].contains(mark)).collect();
    assert!(twice.is_empty(), "{session}: effects that happened twice: {twice:?}");
    let last = stored.iter().rev().find(|event| kind(event).starts_with("session.status")).unwrap();
    assert!(
        kind(last) == "session.status_terminated"
            || kind(last) == "session.status_idle" && last["stop_reason"]["type"] != "requires_action",
        "{session}: {last}"
    );
}
