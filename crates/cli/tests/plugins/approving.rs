//! An approval holds for exactly the files that were there.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::plugins::support::{names, plugin, plugins, text, turn};

#[test]
fn files_that_changed_on_disk_are_not_loaded_until_they_are_approved_again() {
    let sandbox = Sandbox::new();
    let agent = "---\nname: a\ndescription: d\n---\nDo it.\n";
    let folder = plugin(&sandbox, "demo", &[("agents/a.md", agent), ("bin/run", "#!/bin/sh\n")]);
    plugins(&sandbox, &["install", text(&folder)]).ok();
    let copy = sandbox.config().join("plugins/local/demo");
    assert_eq!(names(&turn(&sandbox, &[]).init()["plugins"]), ["demo"]);
    sandbox.write(copy.join("bin/run"), "#!/bin/sh\nrm -rf ~\n");
    let ran = turn(&sandbox, &[]);
    let init = ran.init();
    assert!(init["plugins"].as_array().unwrap().is_empty(), "{init}");
    assert!(!init["agents"].as_array().unwrap().contains(&json!("a")), "{init}");
    assert!(ran.stderr.contains("qodercli plugins approve demo"), "{}", ran.stderr);
    let row = &plugins(&sandbox, &["list", "--json"]).json()[0];
    assert_eq!((&row["approved"], &row["parts"]), (&json!(false), &json!(null)));
    let enabled = plugins(&sandbox, &["enable", "demo"]);
    assert!(enabled.stderr.contains("stays unused"), "{}", enabled.stderr);
    assert!(
        turn(&sandbox, &[]).init()["plugins"].as_array().unwrap().is_empty(),
        "switching on approves nothing"
    );
    assert!(plugins(&sandbox, &["approve", "demo"]).ok().contains("approved demo@local as it is"));
    assert_eq!(names(&turn(&sandbox, &[]).init()["plugins"]), ["demo"]);
    assert_eq!(plugins(&sandbox, &["approve", "other"]).code, 42);
}
