//! The gate against real bash: scripts from a grammar, with mutations of everything that once got through, are decided
//! under several sets of rules, and those that are allowed without a question really run, in a jail without network and
//! with nothing writable but their own tree. What counts is what happened: a program that ran, a file outside that was
//! read, a file that changed, a secret that was printed.
//!
//! `QODER_ORACLE_SCRIPTS` says how many scripts (2,000 without it), `QODER_ORACLE_SEED` where the random numbers start.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a failed unwrap fails the test")]

mod benign;
mod grammar;
mod jail;
mod rule_sets;
mod tree;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use grammar::Generator;
use jail::Jail;
use rule_sets::RuleSet;
use tree::Tree;

/// What once got through, one script a line.
const SEEDS: &str = include_str!("seeds.txt");

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The scripts: every seed as it is, then seeds with mutations and scripts from the grammar.
fn scripts(count: usize, seed: u64) -> Vec<String> {
    let seeds: Vec<&str> = SEEDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut generator = Generator::new(seed);
    let mut scripts: Vec<String> = seeds.iter().map(|seed| seed.replace("\\n", "\n")).collect();
    while scripts.len() < count {
        scripts.push(generator.script(&seeds));
    }
    scripts
}

/// Decides a script under every set and runs it once for each set that allows it; says what went wrong.
fn judge(script: &str, sets: &[RuleSet], tree: &Tree, ran: &AtomicUsize) -> Vec<String> {
    let mut unsafe_effects = Vec::new();
    for set in sets {
        if !set.allows(script, tree) {
            continue;
        }
        ran.fetch_add(1, Ordering::Relaxed);
        // A process that an earlier script left behind may be what was seen: it is not there the next time.
        if effects_of(script, set, tree).is_empty() {
            continue;
        }
        let effects = (0..3).map(|_| effects_of(script, set, tree)).find(|effects| !effects.is_empty());
        for effect in effects.into_iter().flatten() {
            unsafe_effects.push(format!("{}: {effect}: {script:?}", set.name));
        }
    }
    unsafe_effects
}

/// Runs a script and says what happened that must not.
fn effects_of(script: &str, set: &RuleSet, tree: &Tree) -> Vec<String> {
    tree.reset();
    let before = tree.snapshot();
    let output = Jail::run(script, tree);
    let effects = set.forbidden(&before, &tree.snapshot(), &output);
    // The next decision looks at the tree, too.
    tree.reset();
    effects
}

#[test]
fn what_is_allowed_without_a_question_does_no_harm() {
    let count = usize::try_from(setting("QODER_ORACLE_SCRIPTS", 2_000)).unwrap();
    let seed = setting("QODER_ORACLE_SEED", 14);
    let scripts = scripts(count, seed);
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let tree = Tree::new();
                let sets = rule_sets::all(&tree);
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let effects = judge(script, &sets, &tree, &ran);
                    found.lock().unwrap().extend(effects);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    let ran = ran.into_inner();
    println!("{} scripts, {ran} runs without a question, {} unsafe", scripts.len(), found.len());
    // A gate that allows nothing would pass, and prove nothing.
    assert!(ran * 10 > scripts.len(), "only {ran} of {} scripts ran", scripts.len());
    assert!(found.is_empty(), "seed {seed}:\n{}", found.join("\n"));
}

#[test]
fn the_jail_sees_what_happens_in_it() {
    let tree = Tree::new();
    let sets = rule_sets::all(&tree);
    for (script, effect) in [
        ("canary", "a program ran"),
        ("cat ../outside/secret.txt", "was read"),
        ("ls ../outside", "was read"),
        ("echo x > ../outside/new", "changed"),
        ("echo x > a.txt", "changed"),
        ("rm a.txt", "changed"),
        ("echo $SECRET_TOKEN", "was printed"),
    ] {
        let effects = effects_of(script, &sets[0], &tree);
        assert!(effects.iter().any(|seen| seen.contains(effect)), "{script}: {effects:?}");
    }
    let effects = effects_of("cat a.txt; ls -R . > /dev/null; touch /oracle-escape", &sets[0], &tree);
    assert_eq!(effects, [""; 0]);
    assert!(!std::path::Path::new("/oracle-escape").exists(), "the jail lets scripts write outside");
}
