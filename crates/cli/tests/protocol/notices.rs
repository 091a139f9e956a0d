//! What the runtime warns of is on the message stream, after `init` and once; and a program that lists the files of its
//! working directory in `--setting-sources` vouches for it.

use qoder_testkit::{Ran, Sandbox};
use serde_json::{Value, json};

use crate::protocol::host::{Host, QODERCLI, say};

/// The notices of a turn, and the `init` before them.
fn turn(sandbox: &Sandbox, flags: &[&str]) -> (Value, Vec<Value>) {
    let mut host = Host::connect(sandbox, &json!([say("done")]), flags, json!({}));
    host.prompt("go");
    let init = host.until(|line| line["type"] == "system");
    assert_eq!(init["subtype"], "init", "readers expect it first");
    let mut notices = Vec::new();
    loop {
        let line = host.until(|_| true);
        if line["type"] == "result" {
            return (init, notices);
        }
        if line["subtype"] == "notice" {
            assert_eq!(line["session_id"], init["session_id"]);
            assert!(line["uuid"].is_string());
            notices.push(line);
        }
    }
}

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "MEMORY\n");
    sandbox.write(".qoder/rules/style.md", "RULE\n");
    sandbox.write(".qoder/settings.json", "{}");
    sandbox.write(".qoder/settings.local.json", "{}");
    sandbox.write(".qoder/agents/reviewer.md", "---\nname: reviewer\ndescription: Reviews.\n---\nReview.\n");
    sandbox.write(".qoder/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads.\n---\nRead.\n");
    sandbox.write(".qoder/commands/fix.md", "Fix it.\n");
    sandbox.write(".mcp.json", "{}");
    sandbox
}

const PROJECT: [&str; 7] = [
    ".mcp.json",
    ".qoder/agents/reviewer.md",
    ".qoder/commands/fix.md",
    ".qoder/rules/style.md",
    ".qoder/settings.json",
    ".qoder/skills/pdf/SKILL.md",
    "AGENTS.md",
];

/// The files that the only notice names, from the project.
fn left_out(sandbox: &Sandbox, flags: &[&str]) -> Vec<String> {
    let (init, notices) = turn(sandbox, flags);
    assert_eq!(init["agents"].to_string().contains("reviewer"), notices.is_empty(), "{init}");
    let Some(notice) = notices.first() else { return Vec::new() };
    assert_eq!(
        (notices.len(), &notice["kind"], &notice["level"]),
        (1, &json!("untrusted_folder"), &json!("warning"))
    );
    let root = format!("{}/", sandbox.project().display());
    let files = notice["files"].as_array().unwrap().iter();
    let files: Vec<String> = files.map(|path| path.as_str().unwrap().replacen(&root, "", 1)).collect();
    let text = notice["message"].as_str().unwrap();
    assert!(files.iter().all(|name| text.contains(name.as_str())), "{text}");
    files
}

#[test]
fn what_is_left_out_for_lack_of_trust_is_named() {
    let all = [&PROJECT[..5], &[".qoder/settings.local.json"], &PROJECT[5..]].concat();
    assert_eq!(left_out(&project(), &[]), all);
}

#[test]
fn a_host_that_lists_the_folder_s_files_vouches_for_it() {
    for sources in ["project", "user,project,local"] {
        assert!(left_out(&project(), &["--setting-sources", sources]).is_empty(), "{sources}");
    }
    let sandbox = project();
    let (_, notices) = turn(&sandbox, &["--setting-sources=local"]);
    assert!(notices.is_empty(), "{notices:?}");
    assert!(!sandbox.config().join("trusted-folders.json").exists(), "for that session alone");
    assert!(!left_out(&sandbox, &[]).is_empty());
}

#[test]
fn sources_that_the_sdk_implies_vouch_for_nothing() {
    let sandbox = project();
    let mut command = Host::command(&sandbox, &json!([say("done")]), &["--setting-sources=user,project"]);
    command.env("QODER_SDK_IMPLIED_SETTING_SOURCES", "1");
    let mut host = Host::spawn(command);
    host.initialize(json!({}));
    host.prompt("go");
    let notice = host.until(|line| line["subtype"] == "notice");
    assert_eq!(notice["kind"], "untrusted_folder");
}

#[test]
fn an_sdk_s_reader_learns_which_option_vouches() {
    for (entrypoint, option) in [("sdk-py", "`setting_sources`"), ("sdk-ts", "`settingSources`")] {
        let sandbox = project();
        let mut command = Host::command(&sandbox, &json!([say("done")]), &[]);
        command.env("CLAUDE_CODE_ENTRYPOINT", entrypoint);
        let mut host = Host::spawn(command);
        host.initialize(json!({}));
        host.prompt("go");
        let notice = host.until(|line| line["subtype"] == "notice");
        let message = notice["message"].as_str().unwrap();
        assert!(message.contains(option) && !message.contains("--"), "{message}");
    }
}

#[test]
fn the_home_directory_cannot_be_vouched_for() {
    let sandbox = project();
    let mut command = Host::command(&sandbox, &json!([say("done")]), &["--setting-sources=project"]);
    command.env("HOME", sandbox.project());
    let mut host = Host::spawn(command);
    host.initialize(json!({}));
    host.prompt("go");
    let notice = host.until(|line| line["subtype"] == "notice");
    assert!(notice["message"].as_str().unwrap().contains("cannot be trusted as a whole"), "{notice}");
}

#[test]
fn only_lack_of_trust_is_a_reason() {
    let sandbox = project();
    let init = |flags: &[&str]| turn(&sandbox, flags).1;
    assert!(init(&["--setting-sources=user"]).is_empty());
    assert!(init(&["--setting-sources="]).is_empty());
    let named = |flags: &[&str]| init(flags)[0]["files"].to_string();
    assert!(!named(&["--strict-mcp-config"]).contains(".mcp.json"));
    let bare = named(&["--system-prompt", ""]);
    assert!(!bare.contains("AGENTS.md") && !bare.contains("rules") && bare.contains("settings.json"));
    let empty = Sandbox::new();
    std::fs::create_dir_all(empty.project().join(".qoder/agents")).unwrap();
    assert!(turn(&empty, &[]).1.is_empty(), "an empty folder has nothing to leave out");
}

#[test]
fn the_user_s_own_files_are_not_missed_at_home() {
    let sandbox = Sandbox::new();
    sandbox.write(sandbox.home().join(".qoder/settings.json"), "{}");
    sandbox.write(sandbox.home().join(".qoder/agents/r.md"), "---\nname: r\ndescription: R.\n---\nR.\n");
    let home = sandbox.home().display().to_string();
    let mut command = sandbox.command(QODERCLI);
    command.env_remove("QODER_CONFIG_DIR").env("HOME", &home);
    command.args(["-p", "list files", "--output-format", "stream-json", "--cwd", &home]);
    let ran = Ran::from(command.output().unwrap());
    assert!(!ran.stdout.contains("\"notice\"") && !ran.stderr.contains("warning"), "{ran:?}");
}

#[test]
fn a_person_s_flag_does_not_vouch() {
    let sandbox = project();
    let flags = ["-p", "list files", "--output-format", "stream-json", "--setting-sources", "project"];
    let ran = Ran::from(sandbox.run(QODERCLI, &flags));
    assert!(ran.stdout.contains("untrusted_folder"), "{ran:?}");
    assert!(ran.stderr.contains("is not trusted"), "stderr has it as before: {ran:?}");
}

#[test]
fn rules_and_agents_with_unknown_tools_are_named() {
    let sandbox = Sandbox::new();
    let agents = json!({ "reviewer": { "description": "Reviews.", "prompt": "Review.", "tools": ["Grpe"] } });
    let flags = ["--allowedTools", "Raed", "--agents", &agents.to_string()];
    let (_, notices) = turn(&sandbox, &flags);
    let texts: Vec<&str> = notices.iter().map(|notice| notice["message"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("`Raed`") && texts[1].contains("`Grpe`"), "{texts:?}");
    assert!(notices.iter().all(|notice| notice["kind"] == "general" && notice.get("files").is_none()));
}
