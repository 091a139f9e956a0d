//! Telemetry as an operator meets it: off by default, and a collector that is dead, silent or refuses harms no session.

use std::net::TcpListener;
use std::process::Command;

use qoder_testkit::{Collector, CollectorManner, Sandbox};

use crate::sessions::support::{ID, Run, finish, log_text, offline};

fn observed(sandbox: &Sandbox, address: &str, more: &[(&str, &str)]) -> Run {
    let mut command: Command = offline(sandbox, &["-p", "hello", "--session-id", ID]);
    command.env("QODER_ENABLE_TELEMETRY", "1").env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
    command.envs(more.iter().copied());
    finish(command)
}

#[test]
fn it_is_off_by_default_and_opens_no_connection() {
    let sandbox = Sandbox::new();
    let collector = Collector::start(CollectorManner::Accepts);
    let mut command = offline(&sandbox, &["-p", "hello"]);
    command.env("QODER_ENABLE_TELEMETRY", "0").env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base_url());
    let plain = finish(command).exits(0);
    assert_eq!(collector.connections(), 0);
    let disabled = observed(&sandbox, &collector.base_url(), &[("OTEL_SDK_DISABLED", "true")]).exits(0);
    assert_eq!((collector.connections(), disabled.stdout), (0, plain.stdout));
}

#[test]
fn a_collector_in_the_environment_is_enough() {
    let sandbox = Sandbox::new();
    let collector = Collector::start(CollectorManner::Accepts);
    let mut command = offline(&sandbox, &["-p", "hello"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base_url());
    finish(command).exits(0);
    assert!(collector.connections() > 0);
}

#[test]
fn a_project_cannot_switch_it_on() {
    let sandbox = Sandbox::new();
    let collector = Collector::start(CollectorManner::Accepts);
    let settings = format!(
        r#"{{"env": {{"QODER_ENABLE_TELEMETRY": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "{0}"}}, "telemetry": {{"endpoint": "{0}"}}}}"#,
        collector.base_url()
    );
    sandbox.write(".qoder/settings.json", settings);
    finish(offline(&sandbox, &["-p", "hello", "--trust"])).exits(0);
    assert_eq!(collector.connections(), 0);
}

#[test]
fn a_dead_collector_harms_no_session_and_is_told_once() {
    let sandbox = Sandbox::new();
    let free = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let run = observed(&sandbox, &format!("http://{free}"), &[]).exits(0);
    assert!(!run.stdout.is_empty());
    assert_eq!(
        run.stderr.matches("warning: telemetry: the collector cannot be reached").count(),
        1,
        "{}",
        run.stderr
    );
    assert!(log_text(&sandbox, ID).contains("\"turn-end\""));
}

#[test]
fn a_collector_that_refuses_is_told_once() {
    let sandbox = Sandbox::new();
    let collector = Collector::start(CollectorManner::Refuses(503));
    let run = observed(&sandbox, &collector.base_url(), &[]).exits(0);
    assert_eq!(run.stderr.matches("the collector answered 503").count(), 1, "{}", run.stderr);
}

#[test]
fn a_silent_collector_does_not_hold_the_end_up() {
    let sandbox = Sandbox::new();
    let collector = Collector::start(CollectorManner::Silent);
    let run = observed(&sandbox, &collector.base_url(), &[]).exits(0);
    run.says(&["warning: telemetry: the collector did not answer within 2 s"]);
    assert!(collector.connections() > 0);
}

#[test]
fn what_cannot_be_used_is_told_and_the_session_goes_on_without() {
    let sandbox = Sandbox::new();
    let run = observed(&sandbox, "http://localhost:1", &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).exits(0);
    run.says(&["warning: telemetry is off: OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`"]);
}

#[test]
fn commands_do_not_see_the_keys_of_the_collector() {
    let sandbox = Sandbox::new();
    let collector = Collector::start(CollectorManner::Accepts);
    let playbook = serde_json::json!([
        {"when": {"turn": 1}, "toolCalls": [{"name": "Bash", "input": {"command": "env; echo end-of-env"}}]},
        {"text": "done"},
    ]);
    let model = format!("scripted:{}", sandbox.write("playbook.json", playbook.to_string()).display());
    let mut command =
        offline(&sandbox, &["-p", "go", "--session-id", ID, "--model", &model, "--allowed-tools", "Bash"]);
    command.env("QODER_ENABLE_TELEMETRY", "1").env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.base_url());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=key-of-the-collector");
    finish(command).exits(0);
    let log = log_text(&sandbox, ID);
    assert!(log.contains("end-of-env") && !log.contains("key-of-the-collector"), "{log}");
    assert!(collector.headers("x-key").iter().any(|value| value == "key-of-the-collector"));
}

#[test]
fn sampling_leaves_traces_out_and_metrics_in() {
    let sandbox = Sandbox::new();
    let collector = Collector::start(CollectorManner::Accepts);
    observed(&sandbox, &collector.base_url(), &[("OTEL_TRACES_SAMPLER", "always_off")]).exits(0);
    assert!(collector.spans().is_empty());
    assert!(collector.metrics().iter().any(|point| point.name == "qoder.turns"));
}
