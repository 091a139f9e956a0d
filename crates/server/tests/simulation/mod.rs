//! Nodes, clients and a store with faults in virtual time. Everything but the faults is the real code: nodes with their seats and
//! the runtime, the hub, and the database, which checks itself at every commit. What goes wrong follows from a seed; a seed that
//! fails is given again in `QODER_SIMULATION_SEEDS=FIRST-LAST`.

mod client;
mod faults;
mod line;
mod oracle;
mod world;

use std::time::Duration;

use self::client::Client;
use self::oracle::Oracle;
use self::world::World;

/// Which seeds are run.
const SEEDS: &str = "QODER_SIMULATION_SEEDS";
/// Sessions, each with a client.
const CLIENTS: usize = 4;
/// The most virtual time that a run may need: more means that something was forgotten.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

fn seeds() -> std::ops::RangeInclusive<u64> {
    let Ok(text) = std::env::var(SEEDS) else { return 1..=6 };
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    first.parse().unwrap()..=last.parse().unwrap()
}

#[test]
fn whatever_goes_wrong_the_invariants_hold() {
    for seed in seeds() {
        println!("{SEEDS}={seed}");
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(seed));
    }
}

async fn run(seed: u64) {
    let world = World::make(seed).await;
    let oracle = Oracle::watch(&world);
    world.boot().await;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let world = world.clone();
            tokio::spawn(async move { Client::begin(world, number).await.work().await })
        })
        .collect();
    faults::make(&world, &oracle).await;
    world.heal().await;
    for client in clients {
        let known = tokio::time::timeout(PATIENCE, client).await;
        let known = known.unwrap_or_else(|_| panic!("seed {seed}: a turn never ends\n{}", oracle.state()));
        oracle.check_session(&known.unwrap());
    }
    oracle.check_end();
}
