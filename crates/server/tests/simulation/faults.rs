//! What goes wrong in a simulation.

use std::sync::Arc;
use std::time::Duration;

use super::line::Mode;
use super::oracle::Oracle;
use super::world::World;

const FAULTS: usize = 25;

/// Makes faults, one after another. After each the database is looked at.
pub async fn make(world: &Arc<World>, oracle: &Oracle) {
    for _ in 0..FAULTS {
        tokio::time::sleep(Duration::from_millis(5 + world.draw(500))).await;
        let machine = world.newest();
        match world.draw(8) {
            0 => {
                machine.line.set(Mode::Flaky);
                tokio::time::sleep(Duration::from_millis(world.draw(400))).await;
                machine.line.set(Mode::Open);
            }
            1 => {
                machine.line.set(Mode::Frozen);
                tokio::time::sleep(Duration::from_millis(world.draw(3_000))).await;
                machine.line.set(Mode::Open);
            }
            // Frozen until another has its sessions; then both are there for a while.
            2 | 3 => {
                machine.line.set(Mode::Frozen);
                world.boot().await;
                tokio::time::sleep(Duration::from_millis(world.draw(400))).await;
                machine.line.set(Mode::Open);
                tokio::time::sleep(Duration::from_millis(world.draw(400))).await;
                machine.line.set(Mode::Dead);
                // What it held at the end is the next one's.
                world.newest().line.set(Mode::Dead);
                world.boot().await;
            }
            4 => {
                machine.line.set(Mode::Lossy);
                tokio::time::sleep(Duration::from_millis(world.draw(300))).await;
                machine.line.set(Mode::Dead);
                world.boot().await;
            }
            5 => {
                machine.node.stop().await;
                machine.line.set(Mode::Dead);
                world.boot().await;
            }
            _ => {
                machine.line.set(Mode::Dead);
                tokio::time::sleep(Duration::from_millis(world.draw(200))).await;
                world.boot().await;
            }
        }
        oracle.check_now();
    }
}
