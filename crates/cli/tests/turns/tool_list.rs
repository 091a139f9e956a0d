//! Which tools the model is offered: all of them in a fixed order, fewer by `--tools` and by denying one as a whole. The
//! tools that need no permission work in a plain session.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::turns::parked::model;
use crate::turns::support::{bodies, calls, results_in, stream};

const ALL: [&str; 21] = [
    "Bash",
    "Read",
    "Edit",
    "Write",
    "Glob",
    "Grep",
    "WebFetch",
    "WebSearch",
    "Agent",
    "AskUserQuestion",
    "NotebookEdit",
    "TaskOutput",
    "TaskStop",
    "ExitPlanMode",
    "EnterWorktree",
    "ExitWorktree",
    "Config",
    "TodoWrite",
    "ListMcpResources",
    "ReadMcpResource",
    "Mcp",
];

/// The tools that the host reads of, which are those that the model is offered.
fn offered(arguments: &[&str]) -> Vec<String> {
    let server = model(vec![Reply::text("done")]);
    let finished = stream(&Sandbox::new(), &server, &[&["go"], arguments].concat());
    finished.success();
    let names = |value: Value, field: Option<&str>| -> Vec<String> {
        let name = |tool: &Value| field.map_or(tool, |field| &tool[field]).as_str().unwrap().to_owned();
        value.as_array().map_or(&[][..], Vec::as_slice).iter().map(name).collect()
    };
    let told = names(finished.system("init")[0]["tools"].clone(), None);
    assert_eq!(told, names(bodies(&server)[0]["tools"].clone(), Some("name")));
    told
}

#[test]
fn all_of_them_in_order() {
    assert_eq!(offered(&[]), ALL);
}

#[test]
fn fewer_when_chosen() {
    assert_eq!(offered(&["--tools", "Config,Agent,Read"]), ["Read", "Agent", "Config"]);
    assert_eq!(offered(&["--tools", ""]), Vec::<String>::new());
}

#[test]
fn one_that_is_denied_as_a_whole_is_not_offered() {
    let hidden = "Agent,WebFetch,WebSearch,EnterWorktree,Config,Mcp";
    let left = offered(&["--disallowed-tools", hidden]);
    let expected: Vec<&str> =
        ALL.into_iter().filter(|name| !hidden.split(',').any(|hidden| hidden == *name)).collect();
    assert_eq!(left, expected);
    assert!(offered(&["--disallowed-tools", "Agent(general-purpose)"]).contains(&"Agent".to_owned()));
}

#[test]
fn a_list_of_things_to_do_needs_no_permission() {
    let todos =
        json!({ "todos": [{ "content": "write", "status": "in_progress", "activeForm": "writing" }] });
    for mode in ["default", "plan", "dontAsk"] {
        let server = model(vec![calls(&[("toolu_1", "TodoWrite", todos.clone())]), Reply::text("done")]);
        let finished = stream(&Sandbox::new(), &server, &["go", "--permission-mode", mode]);
        assert_eq!(finished.success()["permission_denials"], json!([]), "{mode}");
        assert!(!results_in(&bodies(&server)[1])[0].2, "{mode}");
    }
}

#[test]
fn a_notebook_is_edited_like_a_file() {
    let notebook = json!({ "cells": [{ "cell_type": "code", "id": "one", "source": ["1 + 1"], "metadata": {},
        "outputs": [], "execution_count": null }], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    let edit = json!({ "notebook_path": "book.ipynb", "cell_id": "one", "new_source": "2 + 2" });
    for (arguments, edited) in [
        (&[][..], false),
        (&["--permission-mode", "acceptEdits"][..], true),
        (&["--permission-mode", "acceptEdits", "--disallowed-tools", "Edit(book.ipynb)"][..], false),
        (&["--allowed-tools", "Edit(book.ipynb)"][..], true),
    ] {
        let sandbox = Sandbox::new();
        let file = sandbox.write("book.ipynb", notebook.to_string());
        let server = model(vec![
            calls(&[("toolu_read", "Read", json!({ "file_path": "book.ipynb" }))]),
            calls(&[("toolu_edit", "NotebookEdit", edit.clone())]),
            Reply::text("done"),
        ]);
        stream(&sandbox, &server, &[&["go"], arguments].concat()).success();
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.contains("2 + 2"), edited, "{arguments:?}: {:?}", results_in(&bodies(&server)[2]));
    }
}

#[test]
fn the_host_is_told_which_agents_there_are() {
    let built_in = json!(["general-purpose", "Explore", "Plan"]);
    for (arguments, agents) in
        [(&["go"][..], built_in), (&["go", "--disallowed-tools", "Agent"][..], json!([]))]
    {
        let server = model(vec![Reply::text("done")]);
        let finished = stream(&Sandbox::new(), &server, arguments);
        finished.success();
        assert_eq!(finished.system("init")[0]["agents"], agents);
    }
}
