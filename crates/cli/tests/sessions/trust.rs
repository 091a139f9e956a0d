//! Folder trust: nothing in a folder is used until a person vouches for it, by every way there is to vouch, and a folder
//! cannot vouch for itself.

use std::process::Command;

use qoder_testkit::{Reply, Sandbox};
use serde_json::json;

use crate::sessions::support::{finish, offline, online, run, server, system_of, system_prompt};

/// A project with settings, memory and a rule.
fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "MEMORY-OF-THE-PROJECT\n");
    sandbox.write(".qoder/rules/style.md", "RULE-OF-THE-PROJECT\n");
    let settings =
        json!({"language": "LANGUAGE-OF-THE-PROJECT", "permissions": {"allow": ["Bash(expr allowed)"]}});
    sandbox.write(".qoder/settings.json", settings.to_string());
    sandbox.write(
        ".qoder/settings.local.json",
        json!({"permissions": {"allow": ["Bash(expr local)"]}}).to_string(),
    );
    sandbox
}

fn user_settings(sandbox: &Sandbox, settings: &serde_json::Value) {
    sandbox.write(sandbox.config().join("settings.json"), settings.to_string());
}

/// The project's files are used, or none of them is.
#[track_caller]
fn assert_used(sandbox: &Sandbox, used: bool, arguments: &[&str], change: impl Fn(&mut Command)) {
    let server = server(vec![Reply::text("ok")]);
    let mut command = online(sandbox, &server, &[&["-p", "hello"], arguments].concat());
    change(&mut command);
    finish(command).exits(0);
    let system = system_of(&server.requests()[0].json());
    for text in ["MEMORY-OF-THE-PROJECT", "RULE-OF-THE-PROJECT", "LANGUAGE-OF-THE-PROJECT"] {
        assert_eq!(system.contains(text), used, "{text}");
    }
    for word in ["allowed", "local"] {
        let prompt = format!("run expr {word}");
        let mut command = offline(sandbox, &[&["-p", &prompt], arguments].concat());
        change(&mut command);
        let ran = finish(command).exits(i32::from(!used));
        assert_eq!(ran.stdout.contains(&format!("{word}\n```")), used, "{}", ran.stdout);
    }
}

#[test]
fn an_untrusted_folder_is_not_interpreted() {
    assert_used(&project(), false, &[], |_| {});
}

#[test]
fn a_flag_or_a_variable_trusts_for_one_run() {
    let sandbox = project();
    assert_used(&sandbox, true, &["--trust"], |_| {});
    for value in ["1", "true"] {
        assert_used(&sandbox, true, &[], |command| {
            command.env("QODER_TRUST", value);
        });
    }
    assert_used(&sandbox, false, &[], |command| {
        command.env("QODER_TRUST", "0");
    });
    assert_used(&sandbox, false, &[], |_| {});
    assert!(!sandbox.config().join("trusted-folders.json").exists());
}

#[test]
fn the_trust_command_trusts_from_now_on() {
    let sandbox = project();
    let trusted = run(&sandbox, &["trust"]).exits(0);
    assert_eq!(trusted.stdout, format!("trusted: {}\n", sandbox.project().display()));
    assert_used(&sandbox, true, &[], |_| {});
    run(&sandbox, &["trust"]).exits(0);
    let list = std::fs::read_to_string(sandbox.config().join("trusted-folders.json")).unwrap();
    assert_eq!(list.matches(&sandbox.project().display().to_string()).count(), 1);

    let other = project();
    let link = other.home().join("link");
    std::os::unix::fs::symlink(other.project(), &link).unwrap();
    run(&other, &["trust", &link.display().to_string()]).exits(0);
    assert_used(&other, true, &[], |_| {});
    run(&other, &["trust", "/no/such/folder"]).exits(42).says(&["/no/such/folder"]);
}

#[test]
fn the_user_s_settings_trust_folders_or_all() {
    let sandbox = project();
    let folder = sandbox.project().display().to_string();
    user_settings(&sandbox, &json!({"permissions": {"trustDirectories": ["/somewhere/else", folder]}}));
    assert_used(&sandbox, true, &[], |_| {});
    user_settings(&sandbox, &json!({"permissions": {"trustDirectories": ["/somewhere/else"]}}));
    assert_used(&sandbox, false, &[], |_| {});
    user_settings(&sandbox, &json!({"security": {"folderTrust": {"enabled": false}}}));
    assert_used(&sandbox, true, &[], |_| {});
}

#[test]
fn a_trusted_project_is_trusted_in_its_folders() {
    let sandbox = project();
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("deep/down/AGENTS.md", "MEMORY-DEEP-DOWN\n");
    run(&sandbox, &["trust"]).exits(0);
    let down = sandbox.project().join("deep/down");
    assert_used(&sandbox, true, &["--cwd", &down.display().to_string()], |_| {});
    assert!(system_prompt(&sandbox, &["--cwd", "deep/down"]).contains("MEMORY-DEEP-DOWN"));
}

#[test]
fn trust_of_a_folder_does_not_reach_the_repository_around_it() {
    let sandbox = project();
    sandbox.write(".git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("deep/AGENTS.md", "MEMORY-ON-THE-WAY\n");
    sandbox.write("deep/down/AGENTS.md", "MEMORY-DEEP-DOWN\n");
    sandbox.write("deep/down/.qoder/settings.json", json!({"language": "LANGUAGE-DEEP-DOWN"}).to_string());
    run(&sandbox, &["trust", "deep/down"]).exits(0);
    let down = sandbox.project().join("deep/down").display().to_string();
    assert_used(&sandbox, false, &["--cwd", &down], |_| {});
    let system = system_prompt(&sandbox, &["--cwd", &down]);
    assert!(system.contains("MEMORY-DEEP-DOWN") && system.contains("LANGUAGE-DEEP-DOWN"), "{system}");
    assert!(!system.contains("MEMORY-ON-THE-WAY"), "{system}");
    // Nor does the workspace.
    for (name, inside) in [("deep/down/new.txt", true), ("new.txt", false)] {
        let file = sandbox.project().join(name);
        let prompt = format!("call Write with {}", json!({"file_path": file, "content": "y"}));
        run(&sandbox, &["-p", &prompt, "--cwd", &down, "--permission-mode", "acceptEdits"])
            .exits(i32::from(!inside));
        assert_eq!(file.exists(), inside, "{name}");
    }
    assert_used(&sandbox, false, &[], |_| {});
}

/// Every way to trust a folder that no list is needed for.
fn vouched(sandbox: &Sandbox, way: &str, arguments: &[&str]) -> Command {
    let mut command = offline(sandbox, arguments);
    match way {
        "--trust" => drop(command.arg("--trust")),
        "QODER_TRUST" => drop(command.env("QODER_TRUST", "1")),
        _ => user_settings(sandbox, &json!({"security": {"folderTrust": {"enabled": false}}})),
    }
    command
}

#[test]
fn no_way_of_trusting_reaches_the_home_or_the_root() {
    for way in ["--trust", "QODER_TRUST", "folderTrust"] {
        let sandbox = Sandbox::new();
        let home = sandbox.home().display().to_string();
        for folder in [home.as_str(), "/"] {
            let shown = finish(vouched(&sandbox, way, &["config", "--cwd", folder])).exits(0);
            assert!(shown.stdout.contains("not trusted"), "{way}: {}", shown.stdout);
        }
        // A home that is a repository, as some people keep theirs, lends nothing to the folders in it.
        sandbox.write(sandbox.home().join(".git/HEAD"), "ref: refs/heads/main\n");
        sandbox.write(sandbox.home().join("AGENTS.md"), "MEMORY-OF-THE-HOME\n");
        let inner = sandbox.write(sandbox.home().join("inner/AGENTS.md"), "MEMORY-INSIDE\n");
        let inner = inner.parent().unwrap().display().to_string();
        let server = server(vec![Reply::text("ok")]);
        let mut command = vouched(&sandbox, way, &["-p", "hello", "--cwd", &inner]);
        command.env("ANTHROPIC_BASE_URL", server.base_url()).env("ANTHROPIC_API_KEY", "test");
        finish(command).exits(0);
        let system = system_of(&server.requests()[0].json());
        assert!(
            system.contains("MEMORY-INSIDE") && !system.contains("MEMORY-OF-THE-HOME"),
            "{way}: {system}"
        );
    }
}

#[test]
fn without_the_variable_the_home_is_that_of_the_password_database() {
    let sandbox = Sandbox::new();
    let user = rustix::process::getuid().as_raw().to_string();
    let passwords = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = passwords.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&user.as_str())).then(|| fields[5].to_owned())
    });
    let expected = std::path::Path::new(home.as_deref().unwrap_or("/")).join(".qoder");
    for value in [None, Some("")] {
        // Any command that names the configuration root will do; a settings file there is not read.
        let mut command = offline(&sandbox, &["-p", "hello", "--debug", "--setting-sources", ""]);
        command.arg("--no-session-persistence").env_remove("QODER_CONFIG_DIR").env_remove("HOME");
        command.envs(value.map(|value| ("HOME", value)));
        finish(command).exits(0).says(&[&format!("config root {},", expected.display())]);
    }
}

#[test]
fn the_home_and_the_root_cannot_be_trusted() {
    let sandbox = Sandbox::new();
    let home = sandbox.home().display().to_string();
    for folder in [home.as_str(), "/"] {
        let refused = run(&sandbox, &["trust", folder]).exits(42);
        refused.says(&["error: ", folder, "cannot be trusted as a whole", "hint: trust a project"]);
    }
    assert!(!sandbox.config().join("trusted-folders.json").exists());
    sandbox.write(sandbox.home().join("AGENTS.md"), "MEMORY-OF-THE-HOME\n");
    user_settings(&sandbox, &json!({"permissions": {"trustDirectories": [home, "/"]}}));
    assert!(!system_prompt(&sandbox, &["--cwd", &home]).contains("MEMORY-OF-THE-HOME"));
    let link = sandbox.project().join("home");
    std::os::unix::fs::symlink(sandbox.home(), &link).unwrap();
    run(&sandbox, &["trust", "home"]).says(&["cannot be trusted as a whole"]);
    let mut command = offline(&sandbox, &["trust", &home]);
    command.env("HOME", &link);
    finish(command).says(&["cannot be trusted as a whole"]);
}

#[test]
fn a_project_cannot_trust_itself() {
    let sandbox = project();
    let settings = json!({"permissions": {"trustDirectories": [sandbox.project()], "allow": ["Bash"]},
        "security": {"folderTrust": {"enabled": false}}, "language": "LANGUAGE-OF-THE-PROJECT"});
    sandbox.write(".qoder/settings.json", settings.to_string());
    let list = json!({"folders": [sandbox.project()]});
    sandbox.write(".qoder/trusted-folders.json", list.to_string());
    sandbox.write(".env", "QODER_TRUST=1\n");
    assert_used(&sandbox, false, &[], |_| {});
    // Trusting some other folder, or one above that is not the project, does not help either.
    run(&sandbox, &["trust", &sandbox.project().join(".qoder").display().to_string()]).exits(0);
    assert_used(&sandbox, false, &[], |_| {});
}

#[test]
fn a_damaged_list_of_folders_trusts_nothing() {
    let sandbox = project();
    sandbox.write(sandbox.config().join("trusted-folders.json"), "{\"folders\": [");
    assert_used(&sandbox, false, &[], |_| {});
}
