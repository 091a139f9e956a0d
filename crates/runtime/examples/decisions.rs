//! How many decisions a second the gate makes on one core, with 200 rules, over calls of which no two are equal; and
//! what reading a command costs for each byte as commands grow. Prints one JSON object.
//! `cargo run --release -p qoder-runtime --example decisions [CALLS]`

use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qoder_core::ports::Access;
use qoder_policy::shell::read;
use qoder_policy::{Confinement, Policy, Question, Rule, RuleSet, Workspace, decide};
use qoder_runtime::permission_check::LocalFiles;
use qoder_types::{Behavior, PermissionMode, RuleOrigin, RuleSource};
use serde_json::json;

/// How many rules are in force.
const RULES: usize = 200;
/// Rounds of calls; the one in the middle counts.
const ROUNDS: usize = 9;
/// How long each length of command is read again and again.
const SPAN: Duration = Duration::from_millis(200);

/// Rules as people write them: mostly allowances of commands, some for files and hosts, some denials.
fn rules() -> Result<RuleSet, String> {
    let mut set = RuleSet::default();
    let origin = RuleOrigin { source: RuleSource::ProjectSettings, file: None, line: None };
    for at in 0..RULES {
        let (behavior, text) = match at % 10 {
            0 => (Behavior::Allow, format!("Bash(npm run task{at}:*)")),
            1 => (Behavior::Allow, format!("Bash(cargo xtask step{at})")),
            2 => (Behavior::Allow, format!("Bash(make target{at} *)")),
            3 => (Behavior::Allow, format!("Edit(/generated{at}/**)")),
            4 => (Behavior::Allow, format!("Read(~/notes{at}/*.md)")),
            5 => (Behavior::Allow, format!("WebFetch(domain:docs{at}.example.com)")),
            6 => (Behavior::Ask, format!("Bash(deploy{at}:*)")),
            7 => (Behavior::Deny, format!("Bash(tool{at} * --force)")),
            8 => (Behavior::Deny, format!("Bash(danger{at} -rf:*)")),
            _ => (Behavior::Deny, format!("Edit(/locked{at}/**)")),
        };
        set.add(behavior, Rule::parse(&text, origin.clone()).map_err(|error| error.to_string())?);
    }
    Ok(set)
}

/// The plain call with this number: what most calls of a session are, one command or one file.
fn plain_call(at: usize) -> (&'static str, Access) {
    let command = |text: String| ("Bash", Access::Command(text));
    match at % 8 {
        0 => command(format!("npm run task{at}")),
        1 => command(format!("make target{at} all")),
        2 => command(format!("cargo build --package part{at}")),
        3 => command(format!("git log --oneline -{at}")),
        4 => ("Read", Access::Read(PathBuf::from(format!("src/file{at}.rs")))),
        5 => ("Edit", Access::Edit(PathBuf::from(format!("src/deep/file{at}.rs")))),
        6 => ("WebFetch", Access::Fetch(format!("https://docs{at}.example.com/page"))),
        _ => ("TodoWrite", Access::Internal),
    }
}

/// The call with this number: mostly lines of several commands with pipes, loops and substitutions, no two equal.
fn call(at: usize) -> (&'static str, Access) {
    let command = |text: String| ("Bash", Access::Command(text));
    match at % 16 {
        0 => command(format!("ls -la src/module{at}")),
        1 => command(format!("grep -rn \"fn name{at}\" src --include=*.rs | head -20")),
        2 => command(format!("cargo test --package part{at} 2>&1 | tail -5")),
        3 => command(format!("git diff --stat HEAD~{at} -- src")),
        4 => command(format!("cd sub && npm run task{} -- --seed {at}", at / 10 * 10)),
        5 => command(format!("for f in a{at} b{at}; do wc -l \"$f\"; done")),
        6 => command(format!("sed -n '{at},+20p' src/main.rs")),
        7 => command(format!("find . -name '*{at}.rs' -not -path './target/*'")),
        8 => command(format!("git add -A && git commit -m \"$(cat <<'EOF'\nchange {at}\nEOF\n)\"")),
        9 => command(format!("rm -rf build/out{at} && mkdir -p build/out{at}")),
        10 => command(format!("curl -fsS https://host{at}.example.com/x | jq '.items[].id'")),
        11 => command(format!("LC_ALL=C sort -u list{at}.txt > /dev/null 2>&1 || echo failed {at}")),
        12 => ("Read", Access::Read(PathBuf::from(format!("src/file{at}.rs")))),
        13 => ("Edit", Access::Edit(PathBuf::from(format!("src/deep/er/file{at}.rs")))),
        14 => ("Write", Access::Edit(PathBuf::from(format!("generated{}/x{at}.rs", at % RULES)))),
        _ => ("WebFetch", Access::Fetch(format!("https://docs{at}.example.com/page"))),
    }
}

/// Decisions a second: the median of several rounds.
fn decisions(calls: usize, call: fn(usize) -> (&'static str, Access)) -> Result<f64, String> {
    let cwd = std::env::current_dir().map_err(|error| error.to_string())?;
    let home = PathBuf::from("/home/maria");
    let config_dir = home.join(".qoder");
    let workspace = Workspace {
        cwd: cwd.clone(),
        project_root: cwd.clone(),
        home,
        roots: vec![cwd.clone()],
        config_dir,
        ..Workspace::default()
    };
    let policy = Policy::new(&rules()?, workspace);
    let mut rounds = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let calls: Vec<_> = (round * calls..(round + 1) * calls).map(call).collect();
        let begun = Instant::now();
        for (tool, access) in &calls {
            black_box(one(tool, access, &policy, &cwd)?);
        }
        rounds.push(calls.len() as f64 / begun.elapsed().as_secs_f64());
    }
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[ROUNDS / 2])
}

fn one(tool: &str, access: &Access, policy: &Policy, cwd: &Path) -> Result<Behavior, String> {
    let question = Question {
        tool,
        accesses: std::slice::from_ref(access),
        mode: PermissionMode::Default,
        trusted: true,
        mode_is_explicit: false,
        policy,
        cwd,
        confinement: Confinement::None,
        files: &LocalFiles,
    };
    Ok(decide(&question)?.decision.behavior)
}

/// A line of about so many bytes.
fn line(bytes: usize) -> String {
    let mut text = String::new();
    let mut at = 0;
    while text.len() < bytes {
        // Long words rather than many commands, of which there is a bound.
        let _ = write!(text, "echo \"part {at} of {}\" 'text' > /dev/null; ", "long".repeat(64));
        at += 1;
    }
    text
}

/// Nanoseconds for each byte of a command of so many KiB.
fn cost(kibibytes: usize) -> f64 {
    let text = line(kibibytes * 1024 - 320);
    let begun = Instant::now();
    let mut times = 0_u32;
    while begun.elapsed() < SPAN {
        black_box(read(black_box(&text)));
        times += 1;
    }
    begun.elapsed().as_nanos() as f64 / f64::from(times) / text.len() as f64
}

fn main() -> Result<(), String> {
    let calls = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let costs: Vec<_> = [1, 2, 4, 8, 16, 32, 64].into_iter().map(|size| (size, cost(size))).collect();
    let by_size: serde_json::Map<_, _> =
        costs.iter().map(|(size, cost)| (size.to_string(), json!((cost * 100.0).round() / 100.0))).collect();
    let lowest = costs.iter().map(|(_, cost)| *cost).fold(f64::INFINITY, f64::min);
    let highest = costs.iter().map(|(_, cost)| *cost).fold(0.0, f64::max);
    let told = json!({
        "decisionsPerSecond": decisions(calls, plain_call)?.round(),
        "linesPerSecond": decisions(calls, call)?.round(),
        "nanosecondsPerByte": (highest * 100.0).round() / 100.0,
        "highestToLowestCost": (highest / lowest * 100.0).round() / 100.0,
        "nanosecondsPerByteByKibibytes": by_size,
    });
    println!("{told}");
    Ok(())
}
