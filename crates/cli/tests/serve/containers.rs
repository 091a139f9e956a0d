//! `cloud` environments in containers: with podman where it runs, and with a stand-in that starts the same tool host.

use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Script};
use serde_json::{Value, json};

use super::support::{Containers, PATIENCE, Server, bash, id, kind, message, result_text, toolset};

const SECRET: &str = "a-secret-of-the-operator";

fn server(containers: &Containers, script: Script) -> Server {
    let config = containers.config().display().to_string();
    Server::with(Some(script), &["--config", &config], &[("OPERATOR_SECRET", SECRET)])
}

fn replying(containers: &Containers, replies: Vec<Reply>) -> Server {
    server(containers, Script::by_assistant_count(replies))
}

fn results(server: &Server, session: &str) -> Vec<String> {
    let events = server.events(session);
    events.iter().filter(|event| kind(event) == "agent.tool_result").map(result_text).collect()
}

/// A session with a variable, in an environment of this configuration.
fn session_in(server: &Server, config: &Value) -> String {
    let environment = id(&server.post("/v1/environments", &json!({ "name": "e", "config": config })).ok());
    let body = json!({ "agent": server.agent(&json!([toolset(&[])])), "environment_id": environment,
        "environment_variables": { "GREETING": "hello", "API_TOKEN": "value-of-a-token" } });
    id(&server.post("/v1/sessions", &body).ok())
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes of tool hosts that the stand-in started.
fn hosts(containers: &Containers) -> Vec<i32> {
    let own = containers.folder();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_host = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        line.ends_with(b"tool-host\0") && cwd == own
    };
    pids.filter(is_host).collect()
}

/// What every program that runs containers has to give.
fn a_session_works(containers: &Containers) {
    let server = replying(
        containers,
        vec![
            bash("echo \"$GREETING $API_TOKEN\" && pwd && echo more > made.txt && cat made.txt"),
            Reply::tool("Write", json!({ "file_path": "report.md", "content": "# Report\n" })),
            Reply::ToolCalls(vec![
                ("Read".to_owned(), json!({ "file_path": "made.txt" })),
                ("Glob".to_owned(), json!({ "pattern": "*" })),
                ("Grep".to_owned(), json!({ "pattern": "Rep" })),
            ]),
            Reply::tool(
                "Bash",
                json!({ "command": "read line; echo got $line; exit 3", "run_in_background": true }),
            ),
            Reply::tool("DeliverArtifacts", json!({ "paths": ["report.md"] })),
            Reply::text("done"),
        ],
    );
    let session = session_in(&server, &json!({ "type": "cloud" }));
    server.ask(&session, "go");
    let found = results(&server, &session);
    let workspace = server.workspace(&session).display().to_string();
    assert!(
        found[0].contains("hello [redacted]") && found[0].contains(&workspace) && found[0].contains("more"),
        "{found:?}"
    );
    // Calls that only read end in any order.
    let reads = found[2..5].concat();
    assert!(
        reads.contains("more") && reads.contains("made.txt") && reads.contains("Found 1 files\nreport.md"),
        "{found:?}"
    );
    assert!(found[5].contains("runs in the background as bash_"), "{found:?}");
    let file = found[5].split_whitespace().find(|word| word.contains("/outputs/")).unwrap();
    assert!(
        file.contains(server.workspace(&session).parent().unwrap().join("outputs").to_str().unwrap()),
        "{file}"
    );
    assert!(found[6].contains("Delivered: report.md"), "{found:?}");
    assert_eq!(std::fs::read_to_string(server.workspace(&session).join("report.md")).unwrap(), "# Report\n");
}

#[test]
fn a_session_works_in_a_stand_in() {
    a_session_works(&Containers::stand_in());
}

#[test]
fn a_session_works_in_a_container() {
    if let Some(containers) = Containers::real() {
        a_session_works(&containers);
    }
}

#[test]
fn nothing_outside_of_a_container_can_be_reached() {
    let Some(containers) = Containers::real() else { return };
    let script = Script::by(|request, _| {
        let said = request["messages"][0]["content"].clone();
        let text = said.as_str().or_else(|| said[0]["text"].as_str()).unwrap_or_default().to_owned();
        let call: Value = serde_json::from_str(&text).unwrap_or_default();
        match qoder_testkit::assistant_count(request) {
            0 => Reply::tool(call["tool"].as_str().unwrap(), call["input"].clone()),
            _ => Reply::text("done"),
        }
    });
    let server = server(&containers, script);
    let (agent, environment) = (server.agent(&json!([toolset(&[])])), server.environment());
    let probe = |tool: &str, input: Value| {
        let session =
            id(&server.post("/v1/sessions", &json!({ "agent": agent, "environment_id": environment })).ok());
        server.ask(&session, &json!({ "tool": tool, "input": input }).to_string());
        (results(&server, &session).concat(), session)
    };
    let (_, victim) = probe("Write", json!({ "file_path": "private.txt", "content": "the victim's words" }));
    let private = server.workspace(&victim).join("private.txt").display().to_string();
    let (data, pid, address) =
        (server.data().display().to_string(), server.pid(), server.address().to_owned());
    let port = address.rsplit(':').next().unwrap();
    let commands = [
        format!("cat {private} {data}/master.key; cd {data} && ls . workspaces"),
        format!("ln -s {private} link; cat link; ln {private} hard; cat hard"),
        "env; cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '".to_owned(),
        format!("cat /proc/1/root{private} /proc/self/root{private}; ls -l /proc/1/fd"),
        format!("kill -9 {pid}; kill -9 1; kill -9 -1; echo alive"),
        format!("(echo > /dev/tcp/127.0.0.1/{port}) && echo reached"),
        "touch /usr/planted /etc/planted /opt/planted; ls /usr/planted /etc/planted".to_owned(),
        "cat /proc/self/status".to_owned(),
    ];
    for command in &commands {
        let (text, _) = probe("Bash", json!({ "command": command }));
        assert!(!text.contains("the victim's words") && !text.contains(SECRET), "{command}: {text}");
        assert!(!text.contains("reached") && !text.contains("server.db"), "{command}: {text}");
        // Of the folders on the way to its own there is nothing but these.
        let other =
            server.workspace(&victim).parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(!text.lines().any(|line| line == other), "{command}: {text}");
        assert!(!text.contains("/etc/planted\n"), "{command}: {text}");
        if command.contains("status") {
            assert!(text.contains("CapEff:\t0000000000000000") && text.contains("NoNewPrivs:\t1"), "{text}");
        }
        assert_eq!(server.get("/health").status, 200, "{command}");
    }
    for (tool, input) in [
        ("Read", json!({ "file_path": private })),
        ("Read", json!({ "file_path": format!("{data}/master.key") })),
        ("Read", json!({ "file_path": "/proc/1/environ" })),
        ("Glob", json!({ "pattern": "**/*", "path": data })),
        ("Grep", json!({ "pattern": "victim", "path": data })),
        ("Write", json!({ "file_path": private, "content": "x" })),
    ] {
        let (text, _) = probe(tool, input.clone());
        assert!(text.contains("outside the environment"), "{tool} {input}: {text}");
    }
    assert_eq!(std::fs::read_to_string(&private).unwrap(), "the victim's words");
    wait_for("containers end when their sessions rest", || containers.names().is_empty());
}

/// The call says that its outcome is unknown, and the next one finds a new environment.
#[test]
fn a_host_that_dies_leaves_its_call_unknown_and_the_next_call_starts_another() {
    let containers = Containers::stand_in();
    let server = replying(
        &containers,
        vec![
            bash("echo begun; echo x > begun; sleep 600"),
            bash("cat begun; echo again"),
            Reply::text("done"),
        ],
    );
    let session = session_in(&server, &json!({ "type": "cloud" }));
    let mut stream = server.stream(&session, None);
    server.send(&session, &json!([message("go")])).ok();
    wait_for("the command runs", || server.workspace(&session).join("begun").exists());
    for host in hosts(&containers) {
        let host = rustix::process::Pid::from_raw(host).unwrap();
        rustix::process::kill_process(host, rustix::process::Signal::KILL).unwrap();
    }
    stream.until("session.status_idle");
    let found = results(&server, &session);
    assert!(found[0].contains("is unknown"), "{found:?}");
    assert!(found[1].contains("x") && found[1].contains("again"), "{found:?}");
}

#[test]
fn a_killed_server_leaves_no_host_and_the_next_start_removes_its_containers() {
    let containers = Containers::stand_in();
    let mut server = replying(
        &containers,
        vec![bash("echo x > begun; sleep 600"), bash("echo again"), Reply::text("done")],
    );
    let session = session_in(&server, &json!({ "type": "cloud" }));
    server.send(&session, &json!([message("go")])).ok();
    wait_for("the command runs", || server.workspace(&session).join("begun").exists());
    assert!(!hosts(&containers).is_empty());
    assert_eq!(containers.names().len(), 1);
    server.kill();
    wait_for("the host ends with the server", || hosts(&containers).is_empty());
    let left = containers.names();
    server.start_again();
    wait_for("what was left is removed", || !left.iter().any(|name| containers.names().contains(name)));
    wait_for("the turn continues", || server.status(&session) == "idle");
    let found = results(&server, &session);
    assert!(found[0].contains("unknown") && found[1].contains("again"), "{found:?}");
    wait_for("the host ends when the session rests", || hosts(&containers).is_empty());
    assert!(server.stop().success());
}

#[test]
fn an_image_is_made_once_from_packages_and_script() {
    let containers = Containers::stand_in();
    let server = replying(&containers, vec![bash("echo one"), Reply::text("done")]);
    let made = server.workspace("x").with_file_name("made-by-setup");
    let config = json!({ "type": "cloud", "setup_script": format!("echo set up >> {}", made.display()) });
    std::fs::create_dir_all(made.parent().unwrap()).unwrap();
    let first = session_in(&server, &config);
    server.ask(&first, "go");
    assert_eq!(std::fs::read_to_string(&made).unwrap(), "set up\n");
    let second = session_in(&server, &config);
    server.ask(&second, "go");
    assert_eq!(std::fs::read_to_string(&made).unwrap(), "set up\n", "it ran once");
    let log = containers.log();
    let of_session =
        log.lines().rfind(|line| line.starts_with("run ") && line.contains("--read-only")).unwrap();
    assert!(
        of_session.contains("qoder-environment:") && of_session.contains("--cap-drop=ALL"),
        "{of_session}"
    );
    assert!(!log.contains("value-of-a-token") && !log.contains(SECRET), "no value is an argument");
    let broken =
        session_in(&server, &json!({ "type": "cloud", "setup_script": "echo no such thing >&2; exit 5" }));
    server.ask(&broken, "go");
    let events = server.events(&broken);
    let error = events.iter().find(|event| kind(event) == "session.error").unwrap();
    let text = error["error"]["message"].as_str().unwrap();
    assert!(text.contains("exit code 5") && text.contains("no such thing"), "{text}");
    assert!(results(&server, &broken)[0].contains("one"), "the session runs without it");
    let apt = json!({ "type": "cloud", "packages": { "apt": ["jq"] } });
    assert!(session_in(&server, &apt).starts_with("sess_"), "a container can have packages of apt");
}

#[test]
fn a_program_that_is_missing_is_named() {
    let arguments = ["--container", "/nowhere/podman", "--container-image", "debian"];
    let server = Server::with(
        Some(Script::by_assistant_count(vec![bash("echo x"), Reply::text("done")])),
        &arguments,
        &[],
    );
    let session = session_in(&server, &json!({ "type": "cloud" }));
    server.ask(&session, "go");
    let found = results(&server, &session);
    assert!(found[0].contains("did not run") && found[0].contains("/nowhere/podman"), "{found:?}");
    let doctor = server.operate(&[&["doctor"], &arguments[..]].concat());
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("containers") && text.contains("/nowhere/podman"), "{text}");
    let containers = Containers::stand_in();
    let config = containers.config().display().to_string();
    let doctor = server.operate(&["doctor", "--config", &config]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("ok    containers") && text.contains("stand-in 1"), "{text}");
}
