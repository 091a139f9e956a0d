//! The stores of this crate pass the suite that every session store has to pass.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::cell::RefCell;
use std::time::Duration;

use qoder_store::jsonl::Durability;
use qoder_store::{JsonlSessions, MemorySessions, SessionStore};
use qoder_testkit::{Awaited, StoreConformance};

fn check(make: &dyn Fn() -> Box<dyn SessionStore>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let block_on = |awaited: Awaited| {
        let guarded = async { tokio::time::timeout(Duration::from_secs(60), awaited).await };
        runtime.block_on(guarded).expect("it does not come to an end");
    };
    StoreConformance { make, block_on: &block_on }.run();
}

#[test]
fn sessions_in_memory_are_conformant() {
    check(&|| Box::new(MemorySessions::default()));
}

fn check_files(durability: Durability) {
    let folders = RefCell::new(Vec::new());
    check(&|| {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("projects/p");
        folders.borrow_mut().push(folder);
        Box::new(JsonlSessions::new(project, durability))
    });
}

#[test]
fn sessions_in_files_are_conformant() {
    check_files(Durability::Process);
}

#[test]
fn sessions_in_files_that_survive_a_loss_of_power_are_conformant() {
    check_files(Durability::Power);
}
