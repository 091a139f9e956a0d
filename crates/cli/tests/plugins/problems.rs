//! What is wrong with a plugin is named with file and line; the rest of it, and every other plugin, is used.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::plugins::support::{names, plugin, text, turn};

#[test]
fn a_broken_part_is_named_with_file_and_line_and_the_rest_loads() {
    let sandbox = Sandbox::new();
    let folder = plugin(
        &sandbox,
        "broken",
        &[
            (
                ".qoder-plugin/plugin.json",
                "{\n  \"name\": \"broken\",\n  \"version\": \"2.0.0\",\n  \"colour\": 1\n}",
            ),
            (
                ".mcp.json",
                "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"true\"},\n    \"b\": {}\n  }\n}",
            ),
            ("agents/good.md", "---\nname: good\ndescription: d\n---\nDo it.\n"),
            ("agents/bad.md", "---\nname: bad\ndescription: d\neffort: heroic\n---\nDo it.\n"),
        ],
    );
    let ran = turn(&sandbox, &["--plugin-dir", text(&folder)]);
    let init = ran.init();
    assert_eq!(
        init["plugins"],
        json!([{ "name": "broken", "path": text(&folder), "source": "inline", "version": "2.0.0" }])
    );
    assert!(init["agents"].as_array().unwrap().contains(&json!("good")), "{init}");
    let errors = init["plugin_errors"].as_array().unwrap();
    let expected = [(".qoder-plugin/plugin.json", 4), (".mcp.json", 4), ("agents/bad.md", 4)];
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    for (file, line) in expected {
        let path = folder.join(file);
        let place = format!("{}:{line}: ", path.display());
        let error = errors.iter().find(|error| error["path"] == text(&path)).unwrap();
        assert!(error["message"].as_str().unwrap().starts_with(&place), "{error}");
        assert_eq!((&error["plugin"], &error["type"]), (&json!("broken"), &json!("load_error")));
        assert!(ran.stderr.contains(&format!("warning: {place}")), "{}", ran.stderr);
    }
}

#[test]
fn a_plugin_path_that_does_not_exist_is_reported_and_the_session_goes_on() {
    let sandbox = Sandbox::new();
    let good = plugin(&sandbox, "good", &[("agents/a.md", "---\nname: a\ndescription: d\n---\nDo it.\n")]);
    let absent = sandbox.home().join("absent");
    let file = sandbox.write("file", "x");
    let flags = ["--plugin-dir", text(&absent), "--plugin-dir", text(&file), "--plugin-dir", text(&good)];
    let ran = turn(&sandbox, &flags);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("{}: there is no such folder", absent.display())), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("{}: a plugin is a folder", file.display())), "{}", ran.stderr);
    let init = ran.init();
    assert_eq!(names(&init["plugins"]), ["good"]);
    assert_eq!(init["plugin_errors"][0]["plugin"], "absent");
}

#[test]
fn nothing_of_a_plugin_leads_out_of_it() {
    let sandbox = Sandbox::new();
    let outside = sandbox
        .write(sandbox.home().join("outside/agents/spy.md"), "---\nname: spy\ndescription: d\n---\nSpy.\n");
    let manifest = "{\"name\": \"p\",\n\"agents\": [\"../../outside/agents\",\n\"/etc\",\n\"linked\"]}";
    let folder = plugin(&sandbox, "p", &[(".qoder-plugin/plugin.json", manifest)]);
    std::os::unix::fs::symlink(outside.parent().unwrap(), folder.join("linked")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.join(".mcp.json")).unwrap();
    let ran = turn(&sandbox, &["--plugin-dir", text(&folder)]);
    let init = ran.init();
    assert!(!init["agents"].as_array().unwrap().contains(&json!("spy")), "{init}");
    let errors = init["plugin_errors"].to_string();
    for line in 2..=4 {
        assert!(errors.contains(&format!("plugin.json:{line}: ")), "{line}: {errors}");
    }
    assert!(errors.contains("leads out of the plugin through a link"), "{errors}");
    assert_eq!(init["plugin_errors"].as_array().unwrap().len(), 4, "{errors}");
}

#[test]
fn a_manifest_that_cannot_be_read_leaves_its_plugin_out_alone() {
    let sandbox = Sandbox::new();
    let agent = ("agents/a.md", "---\nname: a\ndescription: d\n---\nDo it.\n");
    let bad = plugin(&sandbox, "bad", &[(".qoder-plugin/plugin.json", "{\n\"name\": \"bad\",,\n}"), agent]);
    let spaced = plugin(&sandbox, "spaced", &[(".qoder-plugin/plugin.json", "{\"name\": \"a b\"}"), agent]);
    let good = plugin(&sandbox, "good", &[("agents/g.md", "---\nname: g\ndescription: d\n---\nDo it.\n")]);
    let flags = ["--plugin-dir", text(&bad), "--plugin-dir", text(&spaced), "--plugin-dir", text(&good)];
    let init = turn(&sandbox, &flags).init();
    assert_eq!(names(&init["plugins"]), ["good"]);
    assert!(!init["agents"].as_array().unwrap().contains(&json!("a")), "{init}");
    let errors = init["plugin_errors"].to_string();
    assert!(errors.contains("plugin.json:2: is not valid JSON"), "{errors}");
    assert!(errors.contains("cannot be the name of a plugin"), "{errors}");
}
