//! Kill points: whatever a holder did when it died, the next one finds every entry that is not settled, and by its id
//! whether it is on record.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use qoder_store::inbox::{Inbox, leave};
use qoder_store::layout::SessionPaths;

use crate::inbox::{Place, entry, reply, taken_ids};

/// What a session has on record; survives its holder.
#[derive(Debug, Default)]
struct Record(Vec<String>);

impl Record {
    /// Puts an entry on record unless it is there.
    fn admit(&mut self, id: &str) {
        if !self.0.iter().any(|known| known == id) {
            self.0.push(id.to_owned());
        }
    }
}

#[derive(Debug, Clone)]
enum Act {
    Leave(u8),
    Take,
    Record,
    Settle,
    /// The holder dies; the files are as they are.
    Die,
    /// The holder dies after the reply is there and before the entry is removed.
    DieInSettle,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_u8..12).prop_map(Act::Leave),
        3 => Just(Act::Take),
        3 => Just(Act::Record),
        2 => Just(Act::Settle),
        1 => Just(Act::Die),
        1 => Just(Act::DieInSettle),
    ]
}

/// Files of the inbox by their names.
fn entries_of(inbox: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(inbox).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nothing_counts_twice(acts in prop::collection::vec(act(), 1..40)) {
        let place = Place::new();
        let mut record = Record::default();
        let (mut left, mut order) = (BTreeSet::new(), Vec::new());
        let mut inbox = Inbox::open(&place.paths);
        let (mut taken, mut recorded): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let die = |inbox: &mut Inbox, taken: &mut Vec<String>, recorded: &mut Vec<String>| {
            *inbox = Inbox::open(&place.paths);
            taken.clear();
            recorded.clear();
        };
        for act in acts.into_iter().chain([Act::Die, Act::Take, Act::Record, Act::Settle]) {
            match act {
                Act::Leave(number) => {
                    let id = format!("id-{number}");
                    place.leave(&id);
                    if left.insert(id.clone()) {
                        order.push(id);
                    }
                }
                Act::Take => taken.extend(taken_ids(&mut inbox)),
                Act::Record => {
                    taken.iter().for_each(|id| record.admit(id));
                    recorded.append(&mut taken);
                }
                Act::Settle => {
                    for id in recorded.drain(..) {
                        inbox.settle(&reply(&id)).unwrap();
                    }
                }
                Act::Die => die(&mut inbox, &mut taken, &mut recorded),
                Act::DieInSettle => {
                    let before = entries_of(&place.paths.inbox());
                    for id in recorded.drain(..) {
                        inbox.settle(&reply(&id)).unwrap();
                    }
                    for (path, content) in before.into_iter().filter(|(path, _)| !path.exists()) {
                        std::fs::write(path, content).unwrap();
                    }
                    die(&mut inbox, &mut taken, &mut recorded);
                }
            }
        }
        prop_assert_eq!(record.0, order, "each once, in the order of arrival");
        prop_assert_eq!(place.waiting(), Vec::<String>::new(), "all of them are settled");
    }
}

const PLACE: &str = "QODER_TEST_INBOX_PLACE";

/// Leaves entries without end. A process of its own, which is killed.
#[test]
fn leaves_entries_until_it_is_killed() {
    let Some(folder) = std::env::var_os(PLACE) else { return };
    let paths = SessionPaths::new(Path::new(&folder), "s");
    for number in 0..900 {
        let id = format!("id-{number}");
        leave(&paths, &entry(&id)).unwrap();
        println!("left {id}");
    }
}

#[test]
fn a_process_that_is_killed_while_it_leaves_entries_leaves_whole_ones() {
    for round in 0..6 {
        let place = Place::new();
        let folder = place.paths.log.parent().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["inbox::crashes::leaves_entries_until_it_is_killed", "--exact", "--nocapture"])
            .env(PLACE, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = Vec::new();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            told.extend(line.split_once("left ").map(|(_, id)| id.to_owned()));
            if told.len() > round * 7 {
                let _ = child.kill();
            }
        }
        child.wait().unwrap();
        let mut inbox = Inbox::open(&place.paths);
        let (mut ids, mut more) = (Vec::new(), taken_ids(&mut inbox));
        while !more.is_empty() {
            ids.append(&mut more);
            more = taken_ids(&mut inbox);
        }
        let expected: Vec<String> = (0..ids.len()).map(|number| format!("id-{number}")).collect();
        assert_eq!(ids, expected, "in order and whole");
        assert!(ids.len() >= told.len() && !told.is_empty(), "{} of {}", ids.len(), told.len());
    }
}
