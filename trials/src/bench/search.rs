//! Grep and Glob in a tree of 50,000 files against the programs people use for it. Our figure is taken at the
//! endpoint and so includes a whole round of the loop; a peer's figure is its wall time. A peer that is not
//! installed is named.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use super::measure::median;
use super::table::{Row, time};
use super::{Bench, measure};

const FOLDERS: usize = 500;
const FILES: usize = 100;

/// Programs to compare with, each with the names it may have and its arguments; they run in the tree.
type Peers<'a> = &'a [(&'a [&'a str], &'a [&'a str])];

/// Both tools.
pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let tree = make_tree(&bench.work)?;
    let grep = json!({ "pattern": "needle_[0-9]+", "output_mode": "files_with_matches" });
    let grep_peers: Peers<'_> = &[
        (&["rg"], &["--files-with-matches", "needle_[0-9]+", "."]),
        (&["grep"], &["-rlE", "needle_[0-9]+", "."]),
    ];
    let glob = json!({ "pattern": "**/*77.txt" });
    let glob_peers: Peers<'_> = &[
        // Debian has another program of the first name.
        (&["fd", "fdfind"], &["--glob", "*77.txt"]),
        (&["find"], &[".", "-name", "*77.txt"]),
    ];
    let mut rows = compare(bench, &tree, "Grep", &grep, grep_peers)?;
    rows.extend(compare(bench, &tree, "Glob", &glob, glob_peers)?);
    Ok(rows)
}

fn compare(bench: &Bench, tree: &Path, tool: &str, input: &Value, peers: Peers<'_>) -> Result<Vec<Row>> {
    let ours = ours(bench, tree, tool, input)?;
    let what = format!("{tool} in 50,000 files");
    let mut rows = Vec::new();
    for (names, arguments) in peers {
        let Some(peer) = names.iter().find(|name| installed(name)) else {
            rows.push(Row::note(what.clone(), format!("{} is not installed", names.join(" or "))));
            continue;
        };
        let cost = measure::repeat(bench.few(), || {
            let mut command = Command::new(peer);
            command.args(*arguments).current_dir(tree);
            command
        })?;
        let row = Row::new(what.clone(), time(ours), "at most 1.1 × rg or fd");
        let name = format!("{peer} ({})", time(cost.wall));
        rows.push(row.against(ours.as_secs_f64(), cost.wall.as_secs_f64(), &name));
    }
    Ok(rows)
}

fn installed(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// The median time of one call, the first one left out because it warms the caches.
fn ours(bench: &Bench, tree: &Path, tool: &str, input: &Value) -> Result<Duration> {
    let rounds = bench.few() + 1;
    let (name, arguments) = (tool.to_owned(), input.clone());
    let script = Script::by(move |_, number| {
        if number < rounds { Reply::tool(name.clone(), arguments.clone()) } else { Reply::text("done") }
    });
    let server = ScriptedServer::start(script);
    let sandbox = Sandbox::new();
    let mut command = sandbox.command_with(&bench.binary, &server);
    command.current_dir(tree).args(["-p", "go", "--allowed-tools", super::turns::ALLOWED]);
    measure::run(&mut command)?;
    let requests = server.requests();
    let last = requests.last().context("no request was made")?.json();
    let found = last["messages"].to_string();
    anyhow::ensure!(
        found.contains(".txt"),
        "{tool} found nothing: {}",
        found.chars().take(400).collect::<String>()
    );
    let between = requests.windows(2).map(|pair| pair[1].at.saturating_duration_since(pair[0].answered));
    median(between.skip(1)).context("too few requests")
}

/// Makes the tree once; a later run finds it complete.
fn make_tree(work: &Path) -> Result<PathBuf> {
    let tree = work.join("tree");
    let complete = work.join("tree-complete");
    if complete.exists() {
        return Ok(tree);
    }
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    // A repository of its own: ignore rules of the folders above must not hide it.
    std::fs::create_dir_all(tree.join(".git"))?;
    for folder in 0..FOLDERS {
        let path = tree.join(format!("group{}", folder % 10)).join(format!("folder{folder}"));
        std::fs::create_dir_all(&path)?;
        for file in 0..FILES {
            let mut text = super::turns::text_of(400, folder * FILES + file);
            if (folder * FILES + file).is_multiple_of(997) {
                text.push_str(&format!("needle_{file}\n"));
            }
            std::fs::write(path.join(format!("file{file}.txt")), text)?;
        }
    }
    std::fs::write(complete, "")?;
    Ok(tree)
}
