//! The files of ImageGen are judged as those of Write and its input picture as by Read: modes, rules, protected files,
//! places outside the workspace, hooks; and an agent may have the tool.

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::images::support::{PNG, Studio, calling, pixels};

fn cat() -> Value {
    json!({ "prompt": "a cat", "file_path": "art/cat.png" })
}

#[track_caller]
fn expect(input: &Value, arguments: &[&str], allowed: bool) {
    let studio = Studio::drawing(input.clone());
    studio.sandbox.write("secret/face.png", "x");
    let turn = studio.turn(arguments);
    let denials = turn.result()["permission_denials"].as_array().unwrap().len();
    assert_eq!(denials, usize::from(!allowed), "{arguments:?} {:?}", studio.shown());
    assert_eq!(studio.painted().len(), usize::from(allowed), "{arguments:?}");
}

#[test]
fn modes_hold_as_for_writing() {
    expect(&cat(), &[], false);
    expect(&cat(), &["--permission-mode", "acceptEdits"], true);
    expect(&cat(), &["--permission-mode", "bypassPermissions"], true);
    expect(&cat(), &["--permission-mode", "dontAsk"], false);
    expect(&cat(), &["--permission-mode", "plan", "--allowed-tools", "ImageGen"], false);
}

#[test]
fn rules_about_the_tool_and_about_files_hold() {
    for allow in ["ImageGen", "ImageGen(art/**)", "Edit(art/**)", "Write(art/cat.png)"] {
        expect(&cat(), &["--allowed-tools", allow], true);
    }
    for allow in ["ImageGen(other/**)", "Edit(src/**)", "Read"] {
        expect(&cat(), &["--allowed-tools", allow], false);
    }
    for deny in ["Edit(art/**)", "Write(art/cat.png)", "ImageGen(art/*.png)", "Read(art/**)"] {
        expect(&cat(), &["--permission-mode", "bypassPermissions", "--disallowed-tools", deny], false);
    }
}

#[test]
fn a_tool_that_is_denied_as_a_whole_is_not_offered() {
    for deny in ["ImageGen", "Edit"] {
        let studio = Studio::drawing(cat());
        let turn = studio.turn(&["--permission-mode", "bypassPermissions", "--disallowed-tools", deny]);
        assert!(!turn.offers("ImageGen"), "{deny}");
        assert!(studio.painted().is_empty());
    }
}

#[test]
fn every_file_of_several_is_judged() {
    let several = json!({ "prompt": "a cat", "file_path": "art/cat.png", "count": 3 });
    let mode = ["--permission-mode", "acceptEdits", "--disallowed-tools"];
    expect(&several, &[&mode[..], &["Edit(art/cat-3.png)"]].concat(), false);
    expect(&several, &[&mode[..], &["Edit(art/cat.png)"]].concat(), true);
}

#[test]
fn places_outside_and_protected_files_need_a_person() {
    for path in ["/tmp/qoder-images-outside/cat.png", "../cat.png", ".git/hooks/cat.png", ".qoder/cat.png"] {
        let input = json!({ "prompt": "a cat", "file_path": path });
        expect(&input, &["--permission-mode", "acceptEdits"], false);
        expect(&input, &["--allowed-tools", "ImageGen"], false);
    }
}

#[test]
fn the_input_picture_is_a_read() {
    let input = json!({ "prompt": "a hat", "file_path": "art/hat.png", "image_path": "secret/face.png" });
    let mode = ["--permission-mode", "acceptEdits"];
    expect(&input, &[&mode[..], &["--disallowed-tools", "Read(secret/**)"]].concat(), false);
    let outside = json!({ "prompt": "a hat", "file_path": "art/hat.png", "image_path": "/etc/hostname" });
    expect(&outside, &mode, false);
}

#[test]
fn hooks_see_the_call_and_its_files() {
    let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": "cat.png" }));
    let log = studio.path("hooks.log");
    let tell = |name: &str| {
        let command = format!("cat >> {}; echo >> {}", log.display(), log.display());
        json!([{ "matcher": name, "hooks": [{ "type": "command", "command": command }] }])
    };
    studio.settle(&json!({ "hooks": { "PreToolUse": tell("ImageGen"), "PostToolUse": tell("ImageGen"),
        "FileChanged": tell("cat.png") } }));
    studio.accepting();
    let text = std::fs::read_to_string(&log).unwrap();
    let events: Vec<Value> = text
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = events.iter().map(|event| event["hook_event_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["PreToolUse", "PostToolUse", "FileChanged"], "{text}");
    assert_eq!(events[1]["tool_response"]["images"][0]["media_type"], "image/png");
    assert_eq!(events[2]["event"], "add");
}

#[test]
fn an_agent_may_have_it_and_its_cost_is_the_sessions() {
    let script = Script::by(|request, _| {
        let is_child = request["messages"][0].to_string().contains("CHILD");
        match (is_child, qoder_testkit::assistant_count(request)) {
            (false, 0) => Reply::tool("Agent", json!({ "prompt": "CHILD: draw", "description": "draw" })),
            (true, 0) => Reply::tool("ImageGen", cat()),
            _ => Reply::text("done"),
        }
    });
    let studio = Studio::new(script.images(|call, _| pixels(call)));
    let turn = studio.turn(&["--permission-mode", "acceptEdits", "--allowed-tools", "Agent"]);
    assert!(studio.file("art/cat.png").unwrap().starts_with(PNG));
    assert_eq!(turn.result()["modelUsage"]["painter"]["outputTokens"], 100, "{:#}", turn.result());
}

#[test]
fn a_budget_counts_pictures() {
    let calls = vec![("ImageGen", cat()), ("ImageGen", json!({ "prompt": "x", "file_path": "b.png" }))];
    let studio = Studio::new(calling(calls).images(|call, _| pixels(call)));
    let turn = studio.turn(&["--permission-mode", "acceptEdits", "--max-budget-usd", "0.01"]);
    assert_eq!(turn.result()["subtype"], "error_max_budget_usd", "{:#}", turn.result());
    assert_eq!(studio.painted().len(), 1);
}
