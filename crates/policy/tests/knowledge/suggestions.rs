//! Which prefix may be offered as a lasting rule, and which programs can run any code.

use qoder_policy::shell::knowledge::{runs_arbitrary_code, suggestable_prefix};

use crate::knowledge::line::words;

#[test]
fn tasks_of_a_project_may_be_offered_as_a_prefix() {
    for (line, length) in [
        ("npm run test", 3),
        ("npm run test -- --watch", 3),
        ("pnpm run build:all", 3),
        ("yarn run lint", 3),
        ("npm test", 2),
        ("cargo test -p x", 2),
        ("cargo check", 2),
        ("git add src", 2),
        ("git commit -m x", 2),
    ] {
        assert_eq!(suggestable_prefix(&words(line)), Some(length), "{line}");
    }
}

#[test]
fn everything_else_is_offered_exactly_or_not_at_all() {
    for line in [
        "",
        "ls",
        "npm",
        "npm run",
        "npm run $X",
        "npm run --silent",
        "npm run ../x",
        "npm install x",
        "npx tsc",
        "node a.js",
        "python3 a.py",
        "bash -c ls",
        "sudo npm run test",
        "env npm run test",
        "cargo run",
        "cargo +nightly test",
        "cargo install x",
        "git push",
        "git push origin",
        "git checkout x",
        "git -C x add y",
        "./npm run test",
        "rm -rf x",
        "curl x.y",
        "make test",
        "docker run x",
        "$X run test",
        "npm $X test",
        "xargs npm run test",
        "go run x",
    ] {
        assert_eq!(suggestable_prefix(&words(line)), None, "{line}");
    }
}

#[test]
fn programs_that_run_code_of_others_are_known() {
    for name in [
        "bash",
        "sh",
        "zsh",
        "fish",
        "python",
        "python3",
        "python3.12",
        "node",
        "perl",
        "ruby",
        "php",
        "lua5.4",
        "deno",
        "bun",
        "npx",
        "bunx",
        "uvx",
        "pipx",
        "env",
        "sudo",
        "xargs",
        "timeout",
        "nohup",
        "eval",
        "exec",
        "command",
        "find",
        "awk",
        "/usr/bin/python3",
        "busybox",
        "docker",
        "ssh",
        "make",
        "npm",
        "cargo",
        "java",
        "source",
        ".",
    ] {
        assert!(runs_arbitrary_code(name), "{name}");
    }
    for name in ["ls", "cat", "grep", "rg", "rm", "cp", "mkdir", "echo", "jq", "sort", "3", ""] {
        assert!(!runs_arbitrary_code(name), "{name}");
    }
}
