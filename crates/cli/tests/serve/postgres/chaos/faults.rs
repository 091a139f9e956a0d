//! What goes wrong: nodes that are killed or frozen, and lines to the database that are cut, silent, deaf, slow or half closed.

use std::path::PathBuf;
use std::time::Duration;

use qoder_testkit::Script;
use rustix::process::Signal;
use serde_json::Value;

use super::super::proxy::{Line, Proxy};
use crate::serve::support::{Cluster, Server};

/// One in so many faults lasts until other nodes take over what the node has.
const LONG_EVERY: u64 = 500;
const LONG: Duration = Duration::from_secs(17);

/// Two nodes, each behind a line to the database, with one folder for workspaces.
pub struct Disturbed {
    cluster: Cluster,
    lines: Vec<Proxy>,
    workspaces: tempfile::TempDir,
}

/// Numbers that follow from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

impl Disturbed {
    pub fn start(script: Script) -> Self {
        let workspaces = tempfile::tempdir().unwrap();
        let mut cluster = Cluster::with(0, Some(script), &[]);
        let mut lines = Vec::new();
        for _ in 0..2 {
            let line = Proxy::start(cluster.postgres.socket());
            cluster.add_at(&line.url(), &["--workspaces", workspaces.path().to_str().unwrap()]);
            lines.push(line);
        }
        Self { cluster, lines, workspaces }
    }

    pub fn node(&self) -> &Server {
        &self.cluster.nodes[0]
    }

    pub fn addresses(&self) -> Vec<String> {
        self.cluster.nodes.iter().map(|node| node.address().to_owned()).collect()
    }

    pub fn events(&self, session: &str) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let after = events.last().map(|event| format!("&after_id={}", event["id"].as_str().unwrap()));
            let path = format!("/v1/sessions/{session}/events?limit=1000{}", after.unwrap_or_default());
            let page = self.node().get(&path).ok();
            events.extend(page["data"].as_array().unwrap().iter().cloned());
            if page["has_more"] == false {
                return events;
            }
        }
    }

    pub fn workspace(&self, session: &str) -> PathBuf {
        self.workspaces.path().join(session.trim_start_matches("sess_")).join("workspace")
    }

    pub fn query(&self, sql: &str) -> String {
        self.cluster.postgres.query(sql)
    }

    /// Makes so many faults, one after another, with a little time in between; everything works afterwards.
    pub fn disturb(&mut self, count: u64, seed: u64) {
        let mut numbers = Numbers(seed);
        for fault in 1..=count {
            let long = (fault % LONG_EVERY == 0).then_some(LONG);
            self.fault(&mut numbers, long);
            std::thread::sleep(Duration::from_millis(numbers.below(60)));
        }
    }

    fn fault(&mut self, numbers: &mut Numbers, long: Option<Duration>) {
        let which = usize::try_from(numbers.below(2)).unwrap();
        let lasts = long.unwrap_or(Duration::from_millis(numbers.below(150)));
        match numbers.below(if long.is_some() { 3 } else { 10 }) {
            0 => {
                self.cluster.nodes[which].signal(Signal::STOP);
                std::thread::sleep(lasts);
                self.cluster.nodes[which].signal(Signal::CONT);
            }
            1 => self.line(which, Line::Silent, lasts),
            2 => self.line(which, Line::Deaf, lasts),
            3 => {
                self.lines[which].set(Line::Slow);
                std::thread::sleep(lasts);
                self.lines[which].set(Line::Open);
            }
            4 => self.lines[which].half_close(numbers.below(2) == 0),
            5 => self.line(which, Line::Cut, lasts),
            6 => self.line(which, Line::Cut, Duration::ZERO),
            7 => {
                self.cluster.nodes.iter_mut().for_each(Server::kill);
                self.cluster.nodes.iter_mut().for_each(Server::start_at_the_same_address);
            }
            _ => {
                self.cluster.nodes[which].kill();
                self.cluster.nodes[which].start_at_the_same_address();
            }
        }
    }

    /// Has a line do this for a while; then its connections end, and it works again.
    fn line(&self, which: usize, line: Line, lasts: Duration) {
        self.lines[which].set(line);
        std::thread::sleep(lasts);
        self.lines[which].set(Line::Cut);
        self.lines[which].set(Line::Open);
    }
}
