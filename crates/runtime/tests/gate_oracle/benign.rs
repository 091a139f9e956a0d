//! What people run all day is not lost to caution: every command of the list is decided as the list says, in `default`
//! mode in a trusted folder, and those with a rule run by that rule.

use super::rule_sets;
use super::tree::Tree;
use qoder_types::Behavior;

/// A decision and a command a line.
const COMMANDS: &str = include_str!("benign.txt");

#[test]
fn everyday_commands_are_decided_as_before() {
    let tree = Tree::without_links();
    let sets = rule_sets::all(&tree);
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in COMMANDS.lines().filter(|line| !line.is_empty()) {
        let (expected, command) = line.split_once(' ').expect("a decision and a command");
        let decision = sets[0].decision(command, &tree);
        let expected = if expected == "allow" { Behavior::Allow } else { Behavior::Ask };
        count += 1;
        if decision != expected {
            wrong.push(format!("{decision:?}: {command}"));
        }
    }
    println!("{} of {count} everyday commands are decided as before", count - wrong.len());
    assert!(count >= 300, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rules_people_write_still_cover_what_they_name() {
    let tree = Tree::without_links();
    let allowed =
        ["Bash(cargo test:*)", "Bash(npm run test:*)", "Bash(git commit:*)", "Bash(git add:*)", "Bash(make)"];
    let denied = ["Read(.env)", "Bash(rm:*)", "Bash(git push:*)"];
    for (deny, commands) in [(&[][..], RULED), (&denied[..], RULED)] {
        let set = rule_sets::with_rules(&tree, deny, &allowed);
        for command in commands {
            assert_eq!(
                set.decision(command, &tree),
                Behavior::Allow,
                "{command} with {} denials",
                deny.len()
            );
        }
    }
}

/// Covered by the rules, also while others deny.
const RULED: &[&str] = &[
    "cargo test",
    "cargo test -p core",
    "cargo test 2>&1",
    "cargo test --workspace -- --nocapture",
    "cargo test | tail -20",
    "cargo test && git status",
    "npm run test",
    "npm run test -- --watch",
    "git add src/main.rs",
    "git add src/main.rs && git commit -m 'fix the parser'",
    "git commit -m \"fix: a thing\"",
    "git commit -m 'remove rm from docs'",
    "make && ls",
    "cd src && cargo test",
    "timeout 60 cargo test",
    "ls && cargo test | head -5",
];
