//! Settings as layers: who wins, what is united, what a project may not set, and how a file that cannot be used is reported.

use qoder_testkit::{Reply, Sandbox};
use serde_json::{Value, json};

use crate::sessions::support::{finish, offline, run, run_with, server};

fn user_file(sandbox: &Sandbox, text: impl AsRef<[u8]>) -> String {
    sandbox.write(sandbox.config().join("settings.json"), text).display().to_string()
}

/// The effective value of a key in the trusted project.
fn effective(sandbox: &Sandbox, key: &str, more: &[&str]) -> Value {
    let rows = run(sandbox, &[&["config", key, "--json", "--trust"], more].concat()).exits(0).json();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    rows[0]["value"].clone()
}

#[test]
fn later_layers_win_and_lists_that_grant_are_united() {
    let sandbox = Sandbox::new();
    let layer = |name: &str| {
        json!({"model": {"name": name}, "permissions": {"deny": [format!("Bash({name})"), "WebFetch"]},
            "context": {"fileName": [name]}})
    };
    let expect = |more: &[&str], name: &str, denied: &[&str]| {
        assert_eq!(effective(&sandbox, "model.name", more), name);
        assert_eq!(effective(&sandbox, "permissions.deny", more), json!(denied));
        assert_eq!(effective(&sandbox, "context.fileName", more), json!([name]), "other lists are replaced");
    };
    user_file(&sandbox, layer("user").to_string());
    expect(&[], "user", &["Bash(user)", "WebFetch"]);
    sandbox.write(".qoder/settings.json", layer("project").to_string());
    expect(&[], "project", &["Bash(user)", "WebFetch", "Bash(project)"]);
    sandbox.write(".qoder/settings.local.json", layer("local").to_string());
    expect(&[], "local", &["Bash(user)", "WebFetch", "Bash(project)", "Bash(local)"]);
    let flag = layer("flag").to_string();
    let all = ["Bash(user)", "WebFetch", "Bash(project)", "Bash(local)", "Bash(flag)"];
    expect(&["--settings", &flag], "flag", &all);
    let file = sandbox.write("extra.json", &flag).display().to_string();
    expect(&["--settings", &file], "flag", &all);
    user_file(&sandbox, json!({"general": {"maxAttempts": 3}}).to_string());
    assert_eq!(effective(&sandbox, "general.maxAttempts", &[]), 3, "objects are merged field by field");
}

#[test]
fn layers_have_effect() {
    let sandbox = Sandbox::new();
    user_file(&sandbox, json!({"permissions": {"allow": ["Bash(expr:*)"]}}).to_string());
    sandbox.write(".qoder/settings.json", json!({"permissions": {"deny": ["Bash(expr no:*)"]}}).to_string());
    let prompt = |word: &str| format!("run expr {word}");
    let yes = run(&sandbox, &["-p", &prompt("yes"), "--trust"]).exits(0);
    assert!(yes.stdout.contains("yes\n```"), "{}", yes.stdout);
    let no = run(&sandbox, &["-p", &prompt("no"), "--trust"]).exits(1);
    assert!(no.stdout.contains("was not allowed"), "a deny rule wins: {}", no.stdout);
}

#[test]
fn comments_and_a_byte_order_mark_are_allowed() {
    let sandbox = Sandbox::new();
    user_file(&sandbox, "\u{feff}// top\n{\n  /* in */ \"language\": \"German\" // end\n}\n");
    assert_eq!(effective(&sandbox, "language", &[]), "German");
    user_file(&sandbox, "");
    run(&sandbox, &["config"]).exits(0);
    user_file(&sandbox, "// nothing yet\n");
    run(&sandbox, &["-p", "hello"]).exits(0);
}

#[test]
fn a_file_that_is_not_json_is_told_with_its_place() {
    let sandbox = Sandbox::new();
    let cases: [(&[u8], &str); 7] = [
        (b"{\n  \"model\": {\n    \"name\" \"x\"\n  }\n}", ":3:"),
        (b"{\"language\": \"x\",}", ":1:"),
        (b"{'language': 'x'}", ":1:"),
        (b"[1]", ":1:1: settings are one JSON object"),
        (b"{\n\"language\": \"\xff\"}", ":2:1: the text is not UTF-8"),
        (b"{\n  \"language\": \"a\",\n  \"language\": \"b\"\n}", ":3:3: the key `language` is a duplicate"),
        (b"{\"language\": ", ":1:"),
    ];
    for (text, place) in cases {
        let file = user_file(&sandbox, text);
        for arguments in [&["-p", "hello"][..], &["config"]] {
            let refused = run(&sandbox, arguments).exits(52);
            assert_eq!(refused.stdout, "");
            refused.says(&[&format!("error: {file}{place}"), "hint: "]);
        }
    }
    let flag = ["-p", "hello", "--setting-sources", "", "--settings", "{\"a\" 1}"];
    run(&sandbox, &flag).exits(52).says(&["error: --settings:1:"]);
    assert!(sandbox.session_files().is_empty());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let sandbox = Sandbox::new();
    let folder = sandbox.config().join("settings.json");
    std::fs::create_dir_all(&folder).unwrap();
    let refused = run(&sandbox, &["-p", "hello"]).exits(52);
    refused.says(&["error: cannot read the settings file", &folder.display().to_string(), "hint: "]);
    let missing = run(&sandbox, &["-p", "hello", "--setting-sources", "", "--settings", "/no/such.json"]);
    missing.exits(52).says(&["/no/such.json", "No such file"]);
}

#[test]
fn a_key_that_is_not_known_is_warned_about_with_its_neighbour() {
    let sandbox = Sandbox::new();
    let file =
        user_file(&sandbox, "{\n  \"general\": {\n    \"maxAttemps\": 3\n  },\n  \"zzzzzzzzzz\": 1\n}");
    let warned = run(&sandbox, &["-p", "hello"]).exits(0);
    warned.says(&[
        &format!(
            "warning: {file}:3: unknown setting `general.maxAttemps`; did you mean `general.maxAttempts`?"
        ),
        &format!("warning: {file}:5: unknown setting `zzzzzzzzzz`\n"),
    ]);
}

#[test]
fn values_that_cannot_be_used_stop_the_start() {
    let sandbox = Sandbox::new();
    let cases = [
        (
            json!({"general": {"defaultPermissionMode": "nonsense"}}),
            "general.defaultPermissionMode",
            "acceptEdits",
        ),
        (json!({"general": {"defaultPermissionMode": 3}}), "general.defaultPermissionMode", "plan"),
        (json!({"general": {"durability": "maybe"}}), "general.durability", "power"),
        (json!({"output": {"format": "xml"}}), "output.format", "stream-json"),
        (json!({"permissions": {"deny": ["Bash("]}}), "permissions.deny", "Bash("),
        (json!({"permissions": {"deny": "Bash"}}), "permissions.deny", "list"),
        (json!({"providers": {"x": {"protocol": 1}}}), "providers", "hint: "),
    ];
    for (settings, key, accepted) in cases {
        user_file(&sandbox, settings.to_string());
        run(&sandbox, &["-p", "hello"]).exits(52).says(&[key, accepted]);
    }
    assert!(sandbox.session_files().is_empty());
    user_file(&sandbox, json!({"permissions": {"allow": ["Bash("]}}).to_string());
    run(&sandbox, &["-p", "hello"]).exits(0).says(&["warning: ", "Bash(", "it is ignored"]);
}

#[test]
fn no_sources_means_no_files() {
    let sandbox = Sandbox::new();
    user_file(&sandbox, json!({"permissions": {"allow": ["Bash"]}, "language": "Latin"}).to_string());
    sandbox.write(".qoder/settings.json", json!({"permissions": {"allow": ["Bash"]}}).to_string());
    let none = ["-p", "run expr x", "--trust", "--setting-sources", ""];
    assert!(run(&sandbox, &none).exits(1).stdout.contains("was not allowed"));
    for source in ["user", "project", "local,project", " user , local"] {
        let one = ["-p", "run expr x", "--trust", "--setting-sources", source];
        assert!(run(&sandbox, &one).exits(0).stdout.contains("x\n```"), "{source}");
    }
    let local = ["-p", "run expr x", "--trust", "--setting-sources", "local"];
    assert!(run(&sandbox, &local).exits(1).stdout.contains("was not allowed"));
    user_file(&sandbox, "not json");
    run(&sandbox, &none).exits(1);
}

#[test]
fn a_project_may_not_set_what_would_make_it_trusted_or_send_keys_away() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("the right one")]);
    let other = crate::sessions::support::server(vec![Reply::text("the wrong one")]);
    let settings = json!({
        "providers": {"anthropic": {"protocol": "anthropic", "baseUrl": other.base_url()}},
        "permissions": {"trustDirectories": ["/"]}, "security": {"folderTrust": {"enabled": false}},
        "general": {"defaultPermissionMode": "bypassPermissions"}, "language": "Latin"});
    let file = sandbox.write(".qoder/settings.json", settings.to_string()).display().to_string();
    let asked = run_with(&sandbox, &server, &["-p", "hello", "--trust"]).exits(0);
    assert_eq!(asked.stdout, "the right one\n");
    assert!(other.requests().is_empty());
    assert!(
        crate::sessions::support::system_of(&server.requests()[0].json()).contains("Latin"),
        "the rest counts"
    );
    for key in ["providers", "permissions.trustDirectories", "security"] {
        assert!(
            asked
                .stderr
                .contains(&format!("warning: {file}: `{key}` cannot be set by a project; it is ignored")),
            "{key}: {}",
            asked.stderr
        );
    }
    asked.says(&["a project cannot choose that permission mode"]);
    let denied = run(&sandbox, &["-p", "run expr x", "--trust"]).exits(1);
    assert!(denied.stdout.contains("was not allowed"), "{}", denied.stdout);
}

#[test]
fn variables_are_expanded_in_values() {
    let sandbox = Sandbox::new();
    user_file(&sandbox, json!({"language": "${WORD} and ${NOT_SET} and $WORD"}).to_string());
    let mut command = offline(&sandbox, &["config", "language", "--json"]);
    command.env("WORD", "German");
    assert_eq!(finish(command).exits(0).json()[0]["value"], "German and ${NOT_SET} and $WORD");
}
