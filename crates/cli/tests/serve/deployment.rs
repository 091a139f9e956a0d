//! The examples of deployments start the server: their arguments and variables exist, and their probes are answered.

use std::path::{Path, PathBuf};
use std::process::Command;

use qoder_testkit::PostgresServer;
use serde_json::Value;

use super::support::Server;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deployment")
}

fn text(name: &str) -> String {
    let path = folder().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents of a YAML file.
fn documents(name: &str) -> Vec<Value> {
    let text = text(name);
    text.split("\n---\n").map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

/// Starts the server with an example's arguments and variables, but on a port and folders of the test.
fn start(arguments: &[String], variables: &[(String, String)]) -> Server {
    let own = ["--listen", "--data-dir", "--workspaces"];
    let mut given: Vec<&str> = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if own.contains(&word) {
            words.next();
        } else {
            given.push(word);
        }
    }
    let is_own = |name: &str| matches!(name, "QODER_SERVE_DATA_DIR" | "QODER_SERVE_WORKSPACES");
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !is_own(name))
        .collect();
    assert!(given.contains(&"--behind-proxy"), "{given:?}: TLS is done in front");
    Server::with(None, &given, &variables)
}

fn answers(server: &Server, host: &str, path: &str) {
    let answer = server.bare("GET", path, &[("host", host)], b"");
    assert_eq!(answer.status, 200, "{path} as {host}: {answer:?}");
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_unit_of_systemd_starts_the_server() {
    let unit = text("systemd/qodercli-serve.service");
    let line =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/qodercli serve ")).unwrap();
    let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let variables: Vec<(String, String)> = text("systemd/serve.env")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let server = start(&arguments, &variables);
    answers(&server, "agents.example.com", "/ready");
    // Where systemd is installed, it has to understand every line.
    let here = tempfile::tempdir().unwrap();
    let copy = here.path().join("qodercli-serve.service");
    std::fs::write(&copy, unit.replace("/usr/local/bin/qodercli", env!("CARGO_BIN_EXE_qodercli"))).unwrap();
    if let Ok(verified) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output() {
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        let own: Vec<&str> = said.lines().filter(|line| line.contains("qodercli-serve")).collect();
        assert!(own.is_empty(), "{own:?}");
    }
}

#[test]
fn the_image_and_its_two_nodes_start_the_server() {
    let image = text("container/Containerfile");
    let line =
        |word: &str| image.lines().find_map(|line| line.strip_prefix(word).map(str::to_owned)).unwrap();
    assert_eq!(line("ENTRYPOINT "), r#"["qodercli", "serve"]"#);
    let server = start(&words(&serde_json::from_str(&line("CMD ")).unwrap()), &[]);
    let (_, check) = image.split_once("http://127.0.0.1:8400").unwrap();
    answers(&server, "127.0.0.1:8400", check.split('"').next().unwrap());
    let compose = &documents("container/compose.yaml")[0];
    let node = &compose["x-node"];
    let postgres = PostgresServer::start();
    let key = "7".repeat(64);
    let variables: Vec<(String, String)> = node["environment"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| match name.as_str() {
            "QODER_SERVE_DATABASE_URL" => (name.clone(), postgres.url()),
            "QODER_MASTER_KEY" => (name.clone(), key.clone()),
            "QODER_SERVE_PUBLIC_URL" => (name.clone(), "http://localhost:8400".to_owned()),
            _ if value.as_str().unwrap().starts_with("${") => (name.clone(), String::new()),
            _ => (name.clone(), value.as_str().unwrap().to_owned()),
        })
        .collect();
    let server = start(&words(&node["command"]), &variables);
    answers(&server, "localhost:8401", "/ready");
    for service in ["one", "two"] {
        let port = compose["services"][service]["ports"][0].as_str().unwrap();
        assert!(port.starts_with("127.0.0.1:") && port.ends_with(":8400"), "{port}");
    }
}

#[test]
fn the_manifests_start_the_server_and_its_probes_are_answered() {
    let listed = words(&documents("kubernetes/kustomization.yaml")[0]["resources"]);
    let all: Vec<Value> = listed.iter().flat_map(|file| documents(&format!("kubernetes/{file}"))).collect();
    let of =
        |kind: &str| all.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"));
    let pod = &of("Deployment")["spec"]["template"];
    let container = &pod["spec"]["containers"][0];
    let postgres = PostgresServer::start();
    let secret = of("Secret")["stringData"].as_object().unwrap().iter().map(|(name, value)| {
        let value = value.as_str().expect("a text: kubectl refuses numbers");
        let value = if name == "QODER_SERVE_DATABASE_URL" { postgres.url() } else { value.to_owned() };
        (name.clone(), value)
    });
    let plain = container["env"].as_array().unwrap().iter().map(|variable| {
        let part = |key: &str| variable[key].as_str().unwrap().to_owned();
        (part("name"), part("value"))
    });
    let variables: Vec<(String, String)> = secret.chain(plain).collect();
    let server = start(&words(&container["args"]), &variables);
    for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
        let get = &container[probe]["httpGet"];
        assert_eq!(get["port"], container["ports"][0]["name"]);
        let host = &get["httpHeaders"][0];
        assert_eq!(host["name"], "Host");
        answers(&server, host["value"].as_str().unwrap(), get["path"].as_str().unwrap());
    }
    for host in ["agents.example.com", "qodercli-serve:8400", "qodercli-serve.qodercli.svc:8400"] {
        answers(&server, host, "/ready");
    }
    server.bare("GET", "/ready", &[("host", "10.0.0.7:8400")], b"").error(403);
    let labels = &pod["metadata"]["labels"];
    assert_eq!(&of("Service")["spec"]["selector"], labels);
    assert_eq!(&of("PodDisruptionBudget")["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(&of("Deployment")["spec"]["selector"]["matchLabels"], labels);
    let claim = &pod["spec"]["volumes"][2]["persistentVolumeClaim"]["claimName"];
    assert_eq!(&of("PersistentVolumeClaim")["metadata"]["name"], claim);
}
