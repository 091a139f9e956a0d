//! Memory files and rules in the system prompt: which are read, in which order, what imports may reach, and that the
//! prompt stays the same byte for byte from request to request and process to process.

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::sessions::support::{ID, run, run_with, server, system_of, system_prompt};

/// The system prompt of the trusted project.
fn prompt(sandbox: &Sandbox, arguments: &[&str]) -> String {
    system_prompt(sandbox, &[&["--trust"], arguments].concat())
}

#[track_caller]
fn assert_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{part}` is not in its place in {text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn files_are_read_from_the_user_and_the_top_down_to_the_working_directory() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("AGENTS.md"), "OF-THE-USER");
    sandbox.write(sandbox.project().parent().unwrap().join("AGENTS.md"), "ABOVE-THE-PROJECT");
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("AGENTS.md", "AT-THE-TOP");
    sandbox.write("AGENTS.local.md", "LOCAL-AT-THE-TOP");
    sandbox.write("a/AGENTS.md", "IN-A");
    sandbox.write("a/b/AGENTS.local.md", "LOCAL-IN-B");
    sandbox.write("a/b/c/AGENTS.md", "BELOW");
    sandbox.write("z/AGENTS.md", "BESIDE");
    let text = prompt(&sandbox, &["--cwd", "a/b"]);
    let top = format!("## {}\nAT-THE-TOP", sandbox.project().join("AGENTS.md").display());
    assert_order(&text, &["OF-THE-USER", &top, "LOCAL-AT-THE-TOP", "IN-A", "LOCAL-IN-B"]);
    for part in ["ABOVE-THE-PROJECT", "BELOW", "BESIDE"] {
        assert!(!text.contains(part), "{part}");
    }
    let untrusted = system_prompt(&sandbox, &[]);
    assert!(untrusted.contains("OF-THE-USER") && !untrusted.contains("AT-THE-TOP"));
}

#[test]
fn rules_apply_by_their_trigger() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.config().join("rules/mine.md"), "RULE-OF-THE-USER");
    sandbox.write(".qoder/rules/a-plain.md", "PLAIN-RULE");
    sandbox.write(".qoder/rules/b-always.md", "---\ntrigger: always_on\n---\nALWAYS-RULE");
    sandbox.write(".qoder/rules/deep/c-apply.md", "---\nalwaysApply: true\n---\nAPPLY-RULE");
    let decide = "---\ntrigger: model_decision\ndescription: about databases\n---\nDECIDED-RULE";
    sandbox.write(".qoder/rules/d-decide.md", decide);
    sandbox.write(".qoder/rules/e-glob.md", "---\ntrigger: glob\nglob: \"*.sql\"\n---\nGLOB-RULE");
    sandbox.write(".qoder/rules/f-manual.md", "---\ntrigger: manual\n---\nMANUAL-RULE");
    sandbox.write(".qoder/rules/g-broken.md", "---\ntrigger: [unclosed\n---\nBROKEN-HEAD-RULE");
    sandbox.write(".qoder/rules/h.txt", "NOT-A-RULE");
    let text = prompt(&sandbox, &[]);
    assert_order(&text, &["RULE-OF-THE-USER", "PLAIN-RULE", "ALWAYS-RULE"]);
    assert!(text.contains("APPLY-RULE") && text.contains("BROKEN-HEAD-RULE"), "{text}");
    let path = |name: &str| sandbox.project().join(".qoder/rules").join(name).display().to_string();
    let decided = path("d-decide.md");
    assert!(text.contains(&format!("A rule that may apply: about databases. Read {decided} when it does.")));
    // It comes with the first file that it is about.
    assert!(!text.contains("e-glob.md"), "{text}");
    for part in ["DECIDED-RULE", "GLOB-RULE", "MANUAL-RULE", "NOT-A-RULE", "trigger: always_on"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn imports_are_put_in_their_place() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "AGENTS.md",
        "BEFORE\n@docs/one.md\nAFTER\n```\n@docs/two.md\n```\nwrite to me@example.org\n@missing.md\n",
    );
    sandbox.write("docs/one.md", "ONE\n@two.md\n");
    sandbox.write("docs/two.md", "TWO\n@../AGENTS.md\n@one.md\nEND-OF-TWO\n");
    let text = prompt(&sandbox, &[]);
    assert_order(
        &text,
        &["BEFORE", "ONE", "TWO", "END-OF-TWO", "AFTER", "@docs/two.md", "me@example.org", "@missing.md"],
    );
    for once in ["BEFORE", "END-OF-TWO", "AFTER"] {
        assert_eq!(text.matches(once).count(), 1, "a cycle ends: {once}");
    }
}

#[test]
fn imports_end_at_a_depth() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "LEVEL-0\n@1.md\n");
    for level in 1..=8 {
        sandbox.write(format!("{level}.md"), format!("LEVEL-{level}\n@{}.md\n", level + 1));
    }
    let text = prompt(&sandbox, &[]);
    assert!(text.contains("LEVEL-5") && !text.contains("LEVEL-6"), "{text}");
}

#[test]
fn imports_do_not_leave_the_project() {
    let sandbox = Sandbox::new();
    let outside = sandbox.write(sandbox.home().join("outside.md"), "FROM-OUTSIDE");
    std::os::unix::fs::symlink(&outside, sandbox.project().join("link.md")).unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.project().join("AGENTS.local.md")).unwrap();
    let imports = format!("INSIDE\n@{}\n@../home/outside.md\n@link.md\n@~/outside.md\n", outside.display());
    sandbox.write("AGENTS.md", imports);
    std::fs::create_dir_all(sandbox.project().join(".qoder/rules")).unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.project().join(".qoder/rules/r.md")).unwrap();
    let text = prompt(&sandbox, &[]);
    assert!(text.contains("INSIDE") && !text.contains("FROM-OUTSIDE"), "{text}");
}

#[test]
fn a_folder_below_counts_once_read_but_a_nested_repository_does_not() {
    let sandbox = Sandbox::new();
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("below/AGENTS.md", "MEMORY-BELOW");
    sandbox.write("below/a.txt", "a\n");
    sandbox.write("other/.git", "gitdir: elsewhere\n");
    sandbox.write("other/AGENTS.md", "MEMORY-OF-ANOTHER-REPOSITORY");
    sandbox.write("other/deep/AGENTS.md", "MEMORY-DEEP-IN-ANOTHER-REPOSITORY");
    sandbox.write("other/deep/b.txt", "b\n");
    std::os::unix::fs::symlink("other/deep", sandbox.project().join("link")).unwrap();
    let read = |path: &str| Reply::tool("Read", json!({"file_path": path}));
    let server =
        server(vec![read("below/a.txt"), read("other/deep/b.txt"), read("link/b.txt"), Reply::text("done")]);
    run_with(&sandbox, &server, &["-p", "read", "--trust"]).exits(0);
    let last = server.requests().pop().unwrap().json()["messages"].to_string();
    assert!(last.contains("MEMORY-BELOW"), "{last}");
    assert!(!last.contains("ANOTHER-REPOSITORY"), "{last}");
}

#[test]
fn files_can_be_left_out_and_have_other_names() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "FIRST-NAME");
    sandbox.write("AGENTS.local.md", "LOCAL-NAME");
    sandbox.write("NOTES.md", "OTHER-NAME");
    sandbox.write("NOTES.local.md", "OTHER-LOCAL-NAME");
    let excluded = json!({"agentsMdExcludes": ["**/AGENTS.local.md"]}).to_string();
    let text = prompt(&sandbox, &["--settings", &excluded]);
    assert!(text.contains("FIRST-NAME") && !text.contains("LOCAL-NAME"));
    let named = json!({"context": {"fileName": "NOTES.md"}}).to_string();
    let text = prompt(&sandbox, &["--settings", &named]);
    assert!(text.contains("OTHER-NAME") && text.contains("OTHER-LOCAL-NAME") && !text.contains("FIRST-NAME"));
    let both = json!({"context": {"fileName": ["AGENTS.md", "NOTES.md"]}}).to_string();
    assert_order(&prompt(&sandbox, &["--settings", &both]), &["FIRST-NAME", "OTHER-NAME"]);
}

#[test]
fn a_huge_or_binary_file_does_no_harm() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", format!("START {}", "é".repeat(200_000)));
    sandbox.write("AGENTS.local.md", b"BINARY \xff\xfe\0 END");
    let text = prompt(&sandbox, &[]);
    assert!(text.contains("START") && text.contains("the rest of this file was left out"));
    assert!(text.len() < 100_000, "{}", text.len());
    assert!(text.contains("BINARY \u{fffd}\u{fffd}"));
}

#[test]
fn the_system_prompt_stays_the_same_byte_for_byte() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "be kind\n@more.md\n");
    sandbox.write("more.md", "and brief\n");
    sandbox.write("notes.txt", "x\n");
    let read = || Reply::tool("Read", json!({"file_path": "notes.txt"}));
    let server =
        server(vec![read(), read(), Reply::text("one"), read(), Reply::text("two"), Reply::text("three")]);
    run_with(&sandbox, &server, &["-p", "first", "--session-id", ID, "--trust"]).exits(0);
    run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--trust"]).exits(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for pair in requests.windows(2) {
        let (earlier, later) = (pair[0].json(), pair[1].json());
        assert_eq!(earlier["system"].to_string(), later["system"].to_string());
        assert_eq!(earlier["tools"].to_string(), later["tools"].to_string());
        let count = earlier["messages"].as_array().unwrap().len();
        let plain = |value: &serde_json::Value| {
            value.to_string().replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
        };
        for index in 0..count {
            assert_eq!(
                plain(&earlier["messages"][index]),
                plain(&later["messages"][index]),
                "message {index}"
            );
        }
    }
    sandbox.write("more.md", "and thorough\n");
    run_with(&sandbox, &server, &["-p", "third", "--resume", ID, "--trust"]).exits(0);
    let changed = system_of(&server.requests().last().unwrap().json());
    assert!(changed.contains("and thorough"), "a changed file counts from the next process on");
    let epochs = run(&sandbox, &["sessions", "show", ID, "--json"]).exits(0).json();
    assert_eq!(epochs["epoch"], 2);
}

#[test]
fn an_empty_system_prompt_is_empty() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "MEMORY");
    assert_eq!(prompt(&sandbox, &["--system-prompt", ""]), "");
    let own = prompt(&sandbox, &["--system-prompt", "ONLY-THIS", "--append-system-prompt", "AND-THIS"]);
    assert!(own.starts_with("ONLY-THIS") && own.contains("AND-THIS"), "{own}");
}
