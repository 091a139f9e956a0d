//! The examples of the pages about the server are true. The blocks marked `sh session` of a page are run in order, in one bash,
//! with an empty home and the program first on the path; a line `#=> text` expects that text in the output of its block.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use qoder_testkit::Sandbox;

use super::support::PATIENCE;

const PROGRAM: &str = env!("CARGO_BIN_EXE_qodercli");
/// Separates what the blocks print.
const MARK: &str = "== line ";

/// A block of a page.
struct Block {
    line: usize,
    script: String,
    expected: Vec<String>,
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn blocks(text: &str, info: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
        if kind == info {
            let expected = body.iter().filter_map(|line| line.strip_prefix("#=> ")).map(str::to_owned);
            found.push(Block { line: index + 1, script: body.join("\n"), expected: expected.collect() });
        }
    }
    found
}

/// Waits for bash. What still runs after a long time is ended, with everything that it started.
fn finish(mut child: Child) -> Option<ExitStatus> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let group = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    child.wait().unwrap();
    None
}

/// Runs blocks in one bash and answers with the output of each.
fn run(blocks: &[Block]) -> Vec<String> {
    let sandbox = Sandbox::new();
    // Also when a block fails, nothing of the page stays behind.
    let mut script = "set -euo pipefail\n\
        trap 'kill ${SERVER:-} 2> /dev/null && while kill -0 $SERVER 2> /dev/null; do sleep 0.02; done' EXIT\n"
        .to_owned();
    for block in blocks {
        script.push_str(&format!("echo '{MARK}{}'\n{}\n", block.line, block.script));
    }
    let folder = Path::new(PROGRAM).parent().unwrap();
    let (output, errors) = (sandbox.home().join("output"), sandbox.home().join("errors"));
    let file = |path: &PathBuf| Stdio::from(std::fs::File::create(path).unwrap());
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(sandbox.project()).env_clear();
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()));
    command.env("HOME", sandbox.home()).env("LANG", "C.UTF-8").process_group(0);
    command.stdin(Stdio::null()).stdout(file(&output)).stderr(file(&errors));
    let status = finish(command.spawn().unwrap());
    let output = std::fs::read_to_string(output).unwrap();
    let errors = std::fs::read_to_string(errors).unwrap();
    let log = std::fs::read_to_string(sandbox.project().join("serve.log")).unwrap_or_default();
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{output}\n{errors}\n{log}");
    output.split(MARK).skip(1).map(str::to_owned).collect()
}

fn check(name: &str, info: &str) {
    let blocks = blocks(&page(name), info);
    assert!(!blocks.is_empty(), "{name} has no examples");
    let outputs = run(&blocks);
    assert_eq!(outputs.len(), blocks.len(), "{name}");
    for (block, output) in blocks.iter().zip(outputs) {
        for text in &block.expected {
            assert!(output.contains(text.as_str()), "{name}:{}: expected {text} in\n{output}", block.line);
        }
    }
}

#[test]
fn the_demo_of_the_readme() {
    let blocks: Vec<Block> = blocks(&page("README.md"), "sh runnable")
        .into_iter()
        .filter(|block| block.script.contains("qodercli serve"))
        .collect();
    assert_eq!(blocks.len(), 1, "one demo");
    let output = run(&blocks).remove(0);
    assert!(!blocks[0].expected.is_empty());
    for text in &blocks[0].expected {
        assert!(output.contains(text.as_str()), "expected {text} in\n{output}");
    }
}

#[test]
fn first_steps() {
    check("docs/server.md", "sh session");
}

#[test]
fn routes() {
    check("docs/cloud-api.md", "sh session");
}

#[test]
fn operations() {
    check("docs/server-operations.md", "sh session");
}

#[test]
fn every_option_and_every_command_is_on_a_page() {
    let sandbox = Sandbox::new();
    let pages = page("docs/server.md") + &page("docs/server-operations.md");
    let help = sandbox.run(PROGRAM, &["serve", "--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let words: Vec<&str> = help.split_whitespace().collect();
    let options: Vec<&str> =
        words.iter().copied().filter(|word| word.starts_with("--") && word.len() > 2).collect();
    assert!(options.contains(&"--listen"), "{help}");
    for option in options.into_iter().filter(|option| *option != "--help" && *option != "--user") {
        let option = option.trim_end_matches(['.', ',', ':']);
        assert!(pages.contains(option), "{option} is on no page");
    }
    let variables: Vec<&str> =
        words.iter().copied().filter(|word| word.starts_with("QODER_SERVE_")).collect();
    assert!(!variables.is_empty(), "{help}");
    for variable in variables {
        let variable = variable.trim_end_matches(['=', ']']);
        assert!(pages.contains(variable), "{variable} is on no page");
    }
    for command in ["token", "doctor", "migrate", "backup", "nodes", "sessions", "keys"] {
        assert!(help.contains(command) && pages.contains(&format!("serve {command}")), "{command}");
    }
    let file = sandbox.write("serve.yaml", "nothing: 1");
    let refused = sandbox.run(PROGRAM, &["serve", "doctor", "--config", file.to_str().unwrap()]);
    let refused = String::from_utf8(refused.stderr).unwrap();
    let fields =
        refused.lines().next().and_then(|line| line.split_once("expected one of ")).expect(&refused).1;
    assert!(fields.contains("listen"), "{refused}");
    for field in fields.split(", ") {
        assert!(pages.contains(&format!("`{field}`")), "{field} is on no page");
    }
}
