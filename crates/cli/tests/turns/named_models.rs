//! A model that was named is never answered by the offline model. That one answers for no name, `auto` and `offline`, and it is
//! said that it does.

use qoder_testkit::Sandbox;
use serde_json::json;

use crate::turns::support::{Finished, run};

const BINARY: &str = env!("CARGO_BIN_EXE_qodercli");

fn asked(arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(BINARY);
    command.args(["-p", "hello", "--output-format", "stream-json"]).args(arguments);
    command.envs(environment.iter().copied());
    run(command)
}

#[test]
fn a_named_model_without_a_provider_is_an_error() {
    for name in ["claude-sonnet-4-5", "gpt-5", "lite", "ultimate", "some-model"] {
        let arguments = [
            (vec!["--model", name], vec![]),
            (vec![], vec![("QODER_MODEL", name)]),
            (vec!["--model", "offline", "--fallback-model", name], vec![]),
            (vec![], vec![("ANTHROPIC_MODEL", name)]),
            (vec![], vec![("OPENAI_MODEL", name)]),
        ];
        for (arguments, environment) in arguments {
            let finished = asked(&arguments, &environment);
            assert_eq!(finished.code, 52, "{name} {arguments:?}: {}", finished.stdout);
            let error = format!("model `{name}`: no provider is configured");
            assert!(finished.stderr.contains(&error), "{}", finished.stderr);
            assert!(finished.stderr.contains("ANTHROPIC_API_KEY"), "{}", finished.stderr);
        }
    }
}

#[test]
fn the_offline_model_says_that_it_answers() {
    let ways: [&[&str]; 3] = [&[], &["--model", "auto"], &["--model", "offline"]];
    for arguments in ways {
        let finished = asked(arguments, &[]);
        finished.success();
        assert_eq!(finished.system("init")[0]["offline"], json!(true));
        let told = finished.stderr.lines().filter(|line| line.contains("offline model")).count();
        assert_eq!(told, 1, "{}", finished.stderr);
    }
}

#[test]
fn another_model_says_nothing_of_it() {
    let server =
        qoder_testkit::ScriptedServer::start(qoder_testkit::Script::list(vec![qoder_testkit::Reply::text(
            "hi",
        )]));
    let sandbox = Sandbox::new();
    let finished = crate::turns::support::stream(&sandbox, &server, &["hello"]);
    finished.success();
    assert_eq!(finished.system("init")[0].get("offline"), None);
    assert!(!finished.stderr.contains("offline"), "{}", finished.stderr);
}
