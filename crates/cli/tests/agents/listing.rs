//! `qodercli agents list`: as text for people, as JSON with every field for programs.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::agents::support::{file, listed, rows, run};

#[test]
fn agents_list_shows_name_source_purpose_and_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.write(sandbox.config().join("agents/r.md"), file("reviewer", "Reviews code.", ""));
    let text = run(&sandbox, &["agents", "list"]).ok();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("general-purpose  built-in  Works on one task"), "{text}");
    assert!(lines[1].starts_with("Explore          built-in  "), "{text}");
    assert!(lines[2].starts_with("Plan             built-in  "), "{text}");
    assert_eq!(lines[3], "reviewer         user      Reviews code.");
    assert_eq!(lines[4].trim(), path.to_str().unwrap());
}

#[test]
fn agents_list_as_json_has_every_field_and_no_secret() {
    let sandbox = Sandbox::new();
    let head = "tools: Read, Agent(Explore)\ndisallowedTools: [Bash]\nmodel: lite\neffort: 2000\n\
        permissionMode: plan\nmaxTurns: 6\ntimeoutMins: 1.5\ntemperature: 0.5\nskills: [review]\n\
        mcpServers:\n  - kb\n  - own: {command: run, env: {TOKEN: hush-hush}}\n\
        hooks: {Stop: [{hooks: [{type: command, command: 'true'}]}]}\n\
        background: true\nisolation: worktree\ninitialPrompt: begin\ncolor: red\nkind: local";
    sandbox.write(sandbox.config().join("agents/r.md"), file("r", "d", head));
    let all = listed(&sandbox, &[]);
    assert!(!all.to_string().contains("hush-hush"), "{all:#}");
    let mut row = rows(&all, "r")[0].clone();
    assert!(row.as_object_mut().unwrap().remove("path").is_some());
    assert_eq!(
        row,
        json!({ "name": "r", "description": "d", "source": "user", "active": true,
            "tools": ["Read", "Agent(Explore)"], "disallowedTools": ["Bash"], "model": "lite", "effort": 2000,
            "permissionMode": "plan", "maxTurns": 6, "timeoutMins": 1.5, "temperature": 0.5, "skills": ["review"],
            "mcpServers": ["kb", "own"], "hooks": ["Stop"], "background": true, "isolation": "worktree",
            "initialPrompt": "begin", "color": "red" })
    );
}

#[test]
fn agents_that_the_flag_cannot_take_are_refused_with_the_field() {
    let sandbox = Sandbox::new();
    let base = |more: &str| format!(r#"{{"r": {{"description": "d", "prompt": "p"{more}}}}}"#);
    for (flag, told) in [
        (base(r#", "hooks": {}"#), "agents.r.hooks: there is no such key here; accepted are description"),
        (base(r#", "isolation": "worktree""#), "agents.r.isolation: there is no such key"),
        (base(r#", "tools": "Read""#), "agents.r.tools: is \"Read\"; accepted is a list of names"),
        (base(r#", "effort": "heroic""#), "agents.r.effort: is \"heroic\""),
        (r#"{"r": {"description": "d"}}"#.to_owned(), "agents.r.prompt: `prompt` is missing"),
        (r#"{"r": "p"}"#.to_owned(), "agents.r: it has to be an object"),
        (r#"{"a/b": {}}"#.to_owned(), "agents.a/b: the name has the character '/'"),
        ("[]".to_owned(), "no JSON object"),
        ("{".to_owned(), "no JSON object"),
    ] {
        for arguments in [&["-p", "go", "--agents", &flag][..], &["agents", "list", "--agents", &flag]] {
            let ran = run(&sandbox, arguments);
            assert!(ran.code == 42 && ran.stderr.contains("--agents: "), "{ran:?}");
            assert!(ran.stderr.contains(told), "{told}: {ran:?}");
        }
    }
}

#[test]
fn what_has_no_effect_in_an_agent_of_the_flag_is_told_at_the_start() {
    let sandbox = Sandbox::new();
    let flag = json!({ "r": { "description": "d", "prompt": "p", "tools": ["Raed"] } }).to_string();
    let ran = run(&sandbox, &["-p", "go", "--agents", &flag, "--model", "offline"]);
    assert!(ran.stderr.contains("warning: agents.r: `Raed` of `tools` is no known tool"), "{ran:?}");
    assert_eq!(ran.code, 0);
}
