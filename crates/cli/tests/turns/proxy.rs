//! Proxies of the environment: a request goes through one, unless NO_PROXY names the server or the proxy is elsewhere
//! and the server here.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

/// Runs one prompt against `base_url` and answers with what was printed.
fn ask(base_url: &str, variables: &[(&str, &str)]) -> String {
    String::from_utf8(run(base_url, variables).stdout).unwrap()
}

fn run(base_url: &str, variables: &[(&str, &str)]) -> std::process::Output {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_qodercli"));
    command.env("ANTHROPIC_BASE_URL", base_url).env("ANTHROPIC_API_KEY", "test-key").args(["-p", "hi"]);
    command.args(["--settings", r#"{"general":{"maxAttempts":1}}"#]).stdin(std::process::Stdio::null());
    for (name, value) in variables {
        command.env(name, value);
    }
    command.output().unwrap()
}

#[test]
fn a_request_goes_through_the_proxy() {
    let proxy = ScriptedServer::start(Script::list(vec![Reply::text("from the proxy")]));
    let answer = ask("http://model.invalid", &[("HTTP_PROXY", &proxy.base_url())]);
    assert_eq!(answer, "from the proxy\n");
    assert_eq!(proxy.requests()[0].path, "http://model.invalid/v1/messages");
}

#[test]
fn a_server_here_is_reached_through_a_proxy_here_unless_it_is_excepted() {
    let server = ScriptedServer::start(Script::list(vec![Reply::text("from the server")]));
    let proxy = ScriptedServer::start(Script::list(vec![Reply::text("from the proxy")]));
    let through = [("HTTP_PROXY", proxy.base_url())];
    let through: Vec<(&str, &str)> = through.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(ask(&server.base_url(), &through), "from the proxy\n");
    let mut excepted = through.clone();
    excepted.push(("NO_PROXY", "127.0.0.1"));
    assert_eq!(ask(&server.base_url(), &excepted), "from the server\n");
}

#[test]
fn a_server_here_is_not_asked_for_at_a_proxy_elsewhere() {
    let server = ScriptedServer::start(Script::list(vec![Reply::text("from the server")]));
    assert_eq!(ask(&server.base_url(), &[("HTTP_PROXY", "http://proxy.invalid:3128")]), "from the server\n");
}

#[test]
fn a_proxy_that_cannot_be_used_is_named() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (value, said) in [
        (format!("http://{closed}"), format!("through the proxy {closed} (HTTP_PROXY)")),
        ("::secret".to_owned(), "HTTP_PROXY is not the address of a proxy".to_owned()),
    ] {
        let run = run("http://model.invalid", &[("HTTP_PROXY", &value)]);
        let stderr = String::from_utf8(run.stderr).unwrap();
        assert!(stderr.contains(&said) && !stderr.contains("secret"), "{stderr}");
    }
}
