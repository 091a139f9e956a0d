//! An agent that was cut off and cannot be resumed: its definition, its sidecar or its log is gone or damaged. The run
//! ends, the agent's end is on record as unknown, and nothing that it did is done again.

use std::path::PathBuf;

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use rustix::process::Signal;
use serde_json::json;

use crate::turns::agents::{agent, child_logs, child_requests, family, is_child};
use crate::turns::support::{
    Live, Wire, assert_calls_in_order, bodies, calls, command, records, results_in, stream, wait_until,
};

const SESSION: &str = "74000000-0000-4000-8000-000000000002";
const DEFINITION: &str = "---\nname: worker\ndescription: works\ntools: Bash\n---\nYou work.\n";

fn server() -> ScriptedServer {
    let hang = ("toolu_hang", "Bash", json!({ "command": "echo once >> effects; sleep 600" }));
    family(
        vec![calls(&[agent("toolu_agent", &json!({ "subagent_type": "worker" }))]), Reply::text("done")],
        vec![calls(&[hang]), Reply::text("went on")],
    )
}

fn effects(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.project().join("effects")).unwrap_or_default()
}

/// Kills the program while its agent works, does something to the files, and resumes the session.
fn resumed_after(damage: impl FnOnce(&Sandbox, PathBuf)) -> (Sandbox, ScriptedServer) {
    let (sandbox, server) = (Sandbox::new(), server());
    sandbox.write(sandbox.config().join("agents/worker.md"), DEFINITION);
    let mut command = command(&sandbox, &server, Wire::Messages);
    command.args(["-p", "go", "--output-format", "stream-json", "--session-id", SESSION]);
    command.args(["--allowed-tools", "Agent,Bash"]);
    let live = Live::start(command);
    wait_until("the agent works", || effects(&sandbox) == "once\n");
    live.signal(Signal::KILL);
    drop(live);
    let log = child_logs(&sandbox).pop().unwrap();
    damage(&sandbox, log);
    let asked = child_requests(&server).len();

    let finished = stream(&sandbox, &server, &["--resume", SESSION, "--allowed-tools", "Agent,Bash"]);
    assert_eq!(finished.success()["result"], "done");
    assert_eq!(effects(&sandbox), "once\n", "nothing ran twice");
    assert_eq!(child_requests(&server).len(), asked, "the agent is not asked again");
    let requests = bodies(&server);
    let told = results_in(requests.iter().rfind(|request| !is_child(request)).unwrap());
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].2 && told[0].1.starts_with("Outcome unknown"), "{told:?}");
    let (starts, ends) = (records(&sandbox, "task-start"), records(&sandbox, "task-end"));
    assert_eq!((starts.len(), ends.len()), (1, 1));
    assert_eq!((&ends[0]["task_id"], &ends[0]["status"]), (&starts[0]["task_id"], &json!("unknown")));
    assert_eq!(finished.system("task_notification").len(), 1, "the host hears of the end");
    assert_calls_in_order(&sandbox);
    (sandbox, server)
}

fn sidecar(log: &std::path::Path) -> PathBuf {
    log.with_extension("meta.json")
}

#[test]
fn an_agent_whose_definition_is_gone_ends_as_unknown() {
    resumed_after(|sandbox, _| {
        std::fs::remove_file(sandbox.config().join("agents/worker.md")).unwrap();
    });
}

#[test]
fn an_agent_whose_log_has_a_damaged_line_ends_as_unknown() {
    resumed_after(|_, log| {
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&log, text.replacen("\"type\":", "\"tipe\":", 1)).unwrap();
    });
}

#[test]
fn an_agent_whose_log_is_missing_or_empty_does_not_run_again() {
    resumed_after(|_, log| std::fs::remove_file(log).unwrap());
    resumed_after(|_, log| std::fs::write(log, "").unwrap());
}

#[test]
fn an_agent_whose_sidecar_is_lost_does_not_run_again() {
    resumed_after(|_, log| std::fs::remove_file(sidecar(&log)).unwrap());
}

#[test]
fn an_agent_whose_sidecar_is_empty_or_damaged_does_not_run_again() {
    resumed_after(|_, log| std::fs::write(sidecar(&log), "").unwrap());
    resumed_after(|_, log| std::fs::write(sidecar(&log), "{\"agentType\":").unwrap());
}

#[test]
fn an_agent_whose_whole_folder_is_lost_does_not_run_again() {
    resumed_after(|_, log| std::fs::remove_dir_all(log.parent().unwrap()).unwrap());
}
