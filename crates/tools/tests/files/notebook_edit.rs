//! NotebookEdit: one cell changes and everything else stays byte for byte.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::PermissionsExt;

use crate::common::{Bench, text};
use qoder_types::CallOutcome;
use serde_json::{Value, json};

const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {
    "tags": []
   },
   "source": [
    "# Title\n",
    "ü"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "work",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "2\n"
     ]
    }
   ],
   "source": "print(1 + 1)"
  }
 ],
 "metadata": {
  "z": 1.5,
  "a": null
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

async fn read_bench(content: &str) -> Bench {
    let bench = Bench::new();
    bench.write("n.ipynb", content);
    bench.succeed("Read", json!({ "file_path": "n.ipynb" })).await;
    bench
}

fn edit(cell: Option<&str>, mode: &str, source: &str) -> Value {
    json!({ "notebook_path": "n.ipynb", "new_source": source, "cell_id": cell, "edit_mode": mode })
}

fn now(bench: &Bench) -> String {
    String::from_utf8(bench.content("n.ipynb")).unwrap()
}

#[tokio::test]
async fn a_replaced_code_cell_loses_its_outputs_and_nothing_else_changes() {
    let bench = read_bench(NOTEBOOK).await;
    let outcome = bench.run("NotebookEdit", edit(Some("work"), "replace", "x = 1\nx")).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert_eq!(outcome.structured["success"], true);
    assert_eq!(outcome.structured["notebook_path"], bench.text_path("n.ipynb"));
    let outputs = NOTEBOOK.find("\"outputs\": [").unwrap();
    let source = NOTEBOOK.find("   \"source\": \"print").unwrap();
    let expected = format!("{}\"outputs\": [],\n{}", &NOTEBOOK[..outputs], &NOTEBOOK[source..])
        .replace("\"execution_count\": 7", "\"execution_count\": null")
        .replace("\"print(1 + 1)\"", "\"x = 1\\nx\"");
    assert_eq!(now(&bench), expected);
    // The edit is itself an observation: the next one needs no further read.
    bench.succeed("NotebookEdit", edit(Some("intro"), "replace", "## New\nline")).await;
    assert!(
        now(&bench).contains("   \"source\": [\n    \"## New\\n\",\n    \"line\"\n   ]"),
        "{}",
        now(&bench)
    );
}

#[tokio::test]
async fn cells_are_inserted_behind_the_named_one_or_at_the_start() {
    let bench = read_bench(NOTEBOOK).await;
    let mut input = edit(Some("intro"), "insert", "a = 1");
    assert!(bench.fail("NotebookEdit", input.clone()).await.contains("cell_type"));
    input["cell_type"] = json!("code");
    let outcome = bench.run("NotebookEdit", input).await;
    assert_eq!(outcome.structured["cell_number"], 2, "{}", text(&outcome));
    let mut input = edit(None, "insert", "");
    input["cell_type"] = json!("markdown");
    bench.succeed("NotebookEdit", input).await;
    let notebook: Value = serde_json::from_str(&now(&bench)).unwrap();
    let cells = notebook["cells"].as_array().unwrap();
    let kinds: Vec<&str> = cells.iter().map(|cell| cell["cell_type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["markdown", "markdown", "code", "code"]);
    assert_eq!(cells[2]["source"], json!(["a = 1"]));
    assert_eq!((&cells[2]["outputs"], &cells[2]["execution_count"]), (&json!([]), &Value::Null));
    let new_id = cells[2]["id"].as_str().unwrap();
    assert_eq!(new_id.len(), 8);
    assert!(cells[0]["id"].is_string() && cells[0].get("outputs").is_none());
}

#[tokio::test]
async fn a_cell_is_deleted_by_number_and_an_old_notebook_gets_no_ids() {
    let old = NOTEBOOK.replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
    let bench = read_bench(&old).await;
    let input = json!({ "notebook_path": "n.ipynb", "new_source": "", "cell_id": 1, "edit_mode": "delete" });
    bench.succeed("NotebookEdit", input).await;
    let mut input = edit(Some("cell-1"), "insert", "x");
    input["cell_type"] = json!("code");
    bench.succeed("NotebookEdit", input).await;
    let notebook: Value = serde_json::from_str(&now(&bench)).unwrap();
    assert_eq!(notebook["cells"].as_array().unwrap().len(), 2);
    assert_eq!(notebook["cells"][0]["id"], "work");
    assert!(notebook["cells"][1].get("id").is_none());
}

#[tokio::test]
async fn a_cell_can_become_another_kind() {
    let bench = read_bench(NOTEBOOK).await;
    let mut input = edit(Some("work"), "replace", "text");
    input["cell_type"] = json!("markdown");
    bench.succeed("NotebookEdit", input).await;
    let notebook: Value = serde_json::from_str(&now(&bench)).unwrap();
    let cell = notebook["cells"][1].as_object().unwrap();
    assert_eq!(cell["cell_type"], "markdown");
    assert!(!cell.contains_key("outputs") && !cell.contains_key("execution_count"));
}

#[tokio::test]
async fn cells_that_are_not_there_are_errors_and_change_nothing() {
    let bench = read_bench(NOTEBOOK).await;
    for cell in ["nothing", "cell-0", "cell-3", "0", "99999999999999999999", "-1", ""] {
        let text = bench.fail("NotebookEdit", edit(Some(cell), "replace", "x")).await;
        assert!(text.contains("no cell") && text.contains("2 cells"), "{cell}: {text}");
    }
    assert!(bench.fail("NotebookEdit", edit(None, "replace", "x")).await.contains("cell_id"));
    assert!(bench.fail("NotebookEdit", edit(None, "delete", "x")).await.contains("cell_id"));
    assert_eq!(now(&bench), NOTEBOOK);
}

#[tokio::test]
async fn it_must_have_been_read_and_be_unchanged() {
    let bench = Bench::new();
    bench.write("n.ipynb", NOTEBOOK);
    let input = edit(Some("intro"), "replace", "x");
    assert!(bench.fail("NotebookEdit", input.clone()).await.contains("has not been read"));
    bench.succeed("Read", json!({ "file_path": "n.ipynb" })).await;
    bench.write("n.ipynb", NOTEBOOK.replace("Title", "Other"));
    assert!(bench.fail("NotebookEdit", input).await.contains("has changed since"));
}

#[tokio::test]
async fn what_is_no_notebook_is_refused() {
    let bench = Bench::new();
    let at = |path: &str| json!({ "notebook_path": path, "new_source": "x", "cell_id": "1" });
    bench.write("plain.txt", "x");
    assert!(bench.fail("NotebookEdit", at("plain.txt")).await.contains("Use Edit"));
    assert!(bench.fail("NotebookEdit", at("none.ipynb")).await.contains("does not exist"));
    std::fs::create_dir(bench.path("d.ipynb")).unwrap();
    assert!(bench.fail("NotebookEdit", at("d.ipynb")).await.contains("directory"));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        bench.path("p.ipynb"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert!(bench.fail("NotebookEdit", at("p.ipynb")).await.contains("named pipe"));
    let bad = [("{ no json", "no valid notebook"), ("[]", "no cells"), ("{\"cells\": [5]}", "damaged")];
    for (number, (content, expected)) in bad.into_iter().enumerate() {
        let name = format!("bad{number}.ipynb");
        bench.succeed("Write", json!({ "file_path": name, "content": content })).await;
        let text = bench.fail("NotebookEdit", at(&name)).await;
        assert!(text.contains(expected), "{content}: {text}");
        assert_eq!(bench.content(&name), content.as_bytes());
    }
}

#[tokio::test]
async fn permissions_are_kept() {
    let bench = read_bench(NOTEBOOK).await;
    let path = bench.path("n.ipynb");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    bench.succeed("NotebookEdit", edit(Some("intro"), "delete", "")).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}
