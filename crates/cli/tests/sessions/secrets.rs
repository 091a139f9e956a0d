//! Secrets: the values of configured keys and texts shaped like well-known tokens reach neither the log, nor stdout,
//! nor the commands that run; and no other user can read what is kept.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use crate::sessions::support::{ID, finish, log_text, offline, online, run, run_with, server};

const KEY: &str = "configured-key-value-123456";

fn token() -> String {
    format!("ghp_{}", "a1B2".repeat(9))
}

/// No file below `folder` holds `secret`.
fn assert_absent(folder: &Path, secret: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_absent(&path, secret);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains(secret), "{} holds it", path.display());
        }
    }
}

#[test]
fn secrets_in_prompts_files_and_output_are_taken_out_everywhere() {
    let sandbox = Sandbox::new();
    let token = token();
    sandbox.write("credentials.txt", format!("token={token}\nkey={KEY}\n"));
    let calls = Reply::ToolCalls(vec![
        ("Read".to_owned(), json!({"file_path": "credentials.txt"})),
        ("Bash".to_owned(), json!({"command": "cat credentials.txt; cat credentials.txt >&2"})),
        ("Grep".to_owned(), json!({"pattern": "token", "output_mode": "content"})),
    ]);
    let server = server(vec![calls, Reply::text(format!("the key is {KEY}"))]);
    let prompt = format!("use {KEY} and {token} and sk-ant-api03-{}", "x".repeat(40));
    let arguments =
        ["-p", &prompt, "--session-id", ID, "--output-format", "stream-json", "--verbose", "--yolo"];
    let mut command = online(&sandbox, &server, &arguments);
    command.env("ANTHROPIC_API_KEY", KEY);
    let run = finish(command).exits(0);
    assert_eq!(run.lines().last().unwrap()["result"], "the key is [redacted]");
    assert!(
        run.stdout.contains("token=[redacted]") && run.stdout.contains("key=[redacted]"),
        "{}",
        run.stdout
    );
    for secret in [KEY, &token, "sk-ant-api03"] {
        assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{secret}");
        assert_absent(&sandbox.config(), secret);
        for request in server.requests() {
            assert!(!String::from_utf8_lossy(&request.body).contains(secret), "the model does not read it");
        }
    }
    assert!(log_text(&sandbox, ID).contains("use [redacted] and [redacted] and [redacted]"));
    assert_eq!(server.requests()[0].header("x-api-key"), Some(KEY), "the endpoint gets its key");
}

#[test]
fn a_private_key_in_a_file_is_taken_out_whole() {
    let sandbox = Sandbox::new();
    let lines = "MIIEpAIBAAKCAQEA7lines\n".repeat(20);
    let text =
        format!("before\n-----BEGIN RSA PRIVATE KEY-----\n{lines}-----END RSA PRIVATE KEY-----\nafter\n");
    sandbox.write("id_rsa.txt", text);
    let arguments = ["-p", "show me id_rsa.txt", "--session-id", ID, "--output-format", "stream-json"];
    let run = run(&sandbox, &arguments).exits(0);
    assert!(run.stdout.contains("before") && run.stdout.contains("after"), "{}", run.stdout);
    assert!(!run.stdout.contains("MIIEpAIBAAK"), "{}", run.stdout);
    assert_absent(&sandbox.config(), "MIIEpAIBAAK");
}

#[test]
fn long_output_is_as_clean_as_short_output_wherever_it_is_shown() {
    let sandbox = Sandbox::new();
    let token = token();
    sandbox.write("credentials.txt", format!("{token}\n"));
    let command = "cat credentials.txt; seq 100000; cat credentials.txt";
    let run_it = Reply::tool("Bash", json!({"command": command}));
    // The model looks for it where the whole output is kept.
    let outputs = sandbox.config().join("projects");
    let look = Reply::tool("Grep", json!({"pattern": "ghp_", "path": outputs, "output_mode": "content"}));
    let server = server(vec![run_it, look, Reply::text("ok")]);
    let arguments = ["-p", "run it", "--session-id", ID, "--yolo", "--output-format", "stream-json"];
    let run = run_with(&sandbox, &server, &arguments).exits(0);
    assert!(run.stdout.contains("[redacted]"));
    for text in [&run.stdout, &log_text(&sandbox, ID)] {
        let around =
            text.find(&token).map(|at| String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(200)..at]));
        assert_eq!(around, None, "the token stands after this");
    }
    for request in server.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains(&token));
    }
}

#[test]
fn an_endpoint_that_repeats_the_key_in_its_errors_is_cleaned() {
    let sandbox = Sandbox::new();
    let body = json!({"type": "error", "error": {"type": "api_error", "message": format!("bad key {KEY}")}});
    let error = move |status| Reply::HttpError { status, headers: Vec::new(), body: body.to_string() };
    let script = Script::by(move |_, number| if number < 2 { error(500) } else { error(401) });
    let server = ScriptedServer::start(script);
    for format in ["stream-json", "json", "text"] {
        let mut command =
            online(&sandbox, &server, &["-p", "x", "--output-format", format, "--verbose", "--debug"]);
        command.env("ANTHROPIC_API_KEY", KEY);
        let run = finish(command).exits(41);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains("bad key ***"), "{told}");
        assert!(!told.contains(KEY), "{told}");
    }
    assert_absent(&sandbox.config(), KEY);
    let mut command = online(&sandbox, &server, &["--list-models"]);
    command.env("ANTHROPIC_API_KEY", KEY);
    let run = finish(command);
    assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY), "{run:?}");
}

#[test]
fn a_key_of_the_settings_is_as_secret_as_one_of_the_environment() {
    let sandbox = Sandbox::new();
    let settings = json!({"providers": {"mine": {"protocol": "anthropic", "baseUrl": "http://127.0.0.1:9",
        "apiKey": KEY, "headers": {"Authorization": "Bearer very-secret-header"}}}});
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
    let prompt = format!("show me {KEY} and Bearer very-secret-header");
    let run = run(&sandbox, &["-p", &prompt, "--model", "offline", "--session-id", ID]).exits(0);
    assert!(run.stdout.contains("[redacted]"), "{}", run.stdout);
    assert!(!run.stdout.contains(KEY) && !run.stdout.contains("very-secret-header"), "{}", run.stdout);
    let log = log_text(&sandbox, ID);
    assert!(!log.contains(KEY) && !log.contains("very-secret-header"));
}

#[test]
fn commands_do_not_inherit_keys() {
    let sandbox = Sandbox::new();
    let env = |command: &mut std::process::Command| {
        command.env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", "another-secret-value");
        command.env("MY_MODEL_KEY", "a-third-secret-value").env("COPY_OF_IT", KEY).env("HARMLESS", "stays");
        command.env("DEBUG", "1");
    };
    let arguments = [
        "-p",
        "call Bash with {\"command\":\"env\"}",
        "--model",
        "offline",
        "--yolo",
        "--settings",
        "{\"providers\": {\"mine\": {\"protocol\": \"openai\", \"baseUrl\": \"http://127.0.0.1:9\", \"apiKeyEnv\": \"MY_MODEL_KEY\"}}}",
    ];
    let mut command = offline(&sandbox, &arguments);
    env(&mut command);
    let run = finish(command).exits(0);
    assert!(run.stdout.contains("HARMLESS=stays") && run.stdout.contains("PATH="), "{}", run.stdout);
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "MY_MODEL_KEY", "COPY_OF_IT", "DEBUG="] {
        assert!(!run.stdout.contains(name), "{name}: {}", run.stdout);
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn assert_private(folder: &Path) {
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_private(&path);
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

#[test]
fn what_is_kept_is_for_its_owner_only() {
    let sandbox = Sandbox::new();
    let prompt = format!("{} and a long one", "y".repeat(5 << 20));
    let server = server(vec![Reply::tool("Bash", json!({"command": "seq 200000"})), Reply::text("ok")]);
    let mut command = online(&sandbox, &server, &["-p", "--session-id", ID, "--yolo"]);
    command.env("LC_ALL", "C");
    crate::sessions::support::feed(command, prompt.as_bytes()).exits(0);
    run(&sandbox, &["trust"]).exits(0);
    assert!(crate::sessions::support::side_of(&sandbox, ID).join("blobs").is_dir());
    assert_private(&sandbox.config());
    run_with(&sandbox, &server, &["-p", "x", "--resume", ID, "--fork-session"]).exits(0);
    assert_private(&sandbox.config());
}
