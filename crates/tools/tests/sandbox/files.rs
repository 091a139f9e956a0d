//! A confined command tries to change what is not its own: outside the workspace, protected inside of it, denied to
//! read. Each test does the thing and looks whether it happened.
#![cfg(target_os = "linux")]

use std::os::unix::fs::PermissionsExt;

use crate::common::sandboxed::Sandboxed;

#[tokio::test]
async fn nothing_outside_can_be_written_by_any_way() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let file = sandboxed.outside.join("file");
    std::fs::write(&file, "as it was").unwrap();
    std::os::unix::fs::symlink(&file, sandboxed.bench.path("link")).unwrap();
    std::os::unix::fs::symlink(&sandboxed.outside, sandboxed.bench.path("folder")).unwrap();
    let outside = sandboxed.outside.display();
    let commands = [
        format!("echo x > {outside}/file"),
        format!("echo x > {outside}/new"),
        "echo x > link".to_owned(),
        "echo x > folder/new".to_owned(),
        format!("ln {outside}/file hard && echo x > hard"),
        format!("echo x > own && ln own {outside}/new"),
        format!("echo x > own && mv own {outside}/file"),
        format!("rm -f {outside}/file && ! test -e {outside}/file"),
        format!("truncate -s 0 {outside}/file"),
        format!("chmod 777 {outside}/file"),
        format!("touch -d 2001-01-01 {outside}/file"),
        format!("mkdir {outside}/folder"),
        format!("mkfifo {outside}/pipe"),
        format!("echo x > /proc/self/root{outside}/new"),
        "mv ../work ../moved".to_owned(),
        "cd .. && rmdir outside".to_owned(),
        "mv .. /tmp/elsewhere".to_owned(),
        "echo x > /proc/sys/kernel/hostname".to_owned(),
        "mknod device c 1 1".to_owned(),
    ];
    let before = std::fs::metadata(&file).unwrap();
    for command in commands {
        sandboxed.fail(&command).await;
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "as it was", "{command}");
    }
    let after = std::fs::metadata(&file).unwrap();
    assert_eq!(before.permissions().mode(), after.permissions().mode());
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    let left: Vec<_> = std::fs::read_dir(&sandboxed.outside).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(sandboxed.bench.cwd.is_dir());
}

#[tokio::test]
async fn protected_places_stay_as_they_are() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    for (path, content) in [
        (".git/config", "[core]\n"),
        (".git/hooks/sample", ""),
        ("nested/repository/.git/config", "[core]\n"),
        (".qoder/settings.json", "{}"),
        (".envrc", "export A=1\n"),
    ] {
        sandboxed.bench.write(path, content);
    }
    let commands = [
        "echo x > .git/hooks/pre-commit",
        "echo x >> .git/config",
        "mv .git other",
        "rm -rf .git/hooks",
        "mkdir other && mv other .git/hooks",
        "echo x > new && mv new .envrc",
        "rm .envrc",
        "ln .envrc hard && echo x > hard",
        "ln -s x .envrc",
        "echo '{}' > .qoder/settings.local.json",
        "echo x >> nested/repository/.git/config",
        "chmod 777 .git",
        "git config core.hooksPath /tmp",
        "mv nested/repository/.git nested/other",
    ];
    for command in commands {
        sandboxed.fail(command).await;
    }
    assert_eq!(sandboxed.bench.content(".git/config"), b"[core]\n");
    assert_eq!(sandboxed.bench.content("nested/repository/.git/config"), b"[core]\n");
    assert_eq!(sandboxed.bench.content(".envrc"), b"export A=1\n");
    assert_eq!(std::fs::read_dir(sandboxed.bench.path(".git/hooks")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(sandboxed.bench.path(".qoder")).unwrap().count(), 1);
}

#[tokio::test]
async fn protected_places_do_not_come_into_being() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let commands = [
        "mkdir -p .git/hooks",
        "git init .",
        "mkdir other && mv -T other .git",
        "rmdir .git && mkdir .git && echo x > .git/config",
        "echo '{}' > .mcp.json",
        "echo x > new && mv new .envrc",
        "ln -s /etc/passwd .npmrc",
        "mkdir -p .vscode && echo '{}' > .vscode/tasks.json",
        "echo x > .qoder/settings.json",
        "echo x > .bashrc",
        "mkdir -p .docker && echo '{}' > .docker/config.json",
        "rm -rf .git .vscode; mkdir .git/hooks",
    ];
    for command in commands {
        sandboxed.fail(command).await;
        let left: Vec<_> = std::fs::read_dir(&sandboxed.bench.cwd)
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with('.'))
            .collect();
        assert!(left.is_empty(), "{command} left {left:?}");
    }
}

#[tokio::test]
async fn protection_holds_while_another_command_starts_and_ends() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    let slow = sandboxed.run("while ! test -e go; do sleep 0.02; done; mkdir -p .git/hooks");
    let quick = async {
        sandboxed.succeed("true").await;
        sandboxed.bench.write("go", "");
    };
    let (outcome, ()) = tokio::join!(slow, quick);
    assert_ne!(outcome.structured["exitCode"], 0);
    assert!(!sandboxed.bench.path(".git").exists());
}

#[tokio::test]
async fn a_protected_link_cannot_be_replaced() {
    let Some(sandboxed) = Sandboxed::new() else { return };
    sandboxed.bench.write("real/config", "content\n");
    std::os::unix::fs::symlink("real/config", sandboxed.bench.path(".envrc")).unwrap();
    std::os::unix::fs::symlink("real", sandboxed.bench.path(".vscode")).unwrap();
    assert_eq!(sandboxed.succeed("cat .envrc").await, "content\n");
    for command in ["rm .envrc", "echo x > a && mv a .envrc", "rm .vscode", "ln -sfn /tmp .vscode"] {
        sandboxed.fail(command).await;
    }
    assert_eq!(std::fs::read_link(sandboxed.bench.path(".envrc")).unwrap().to_str(), Some("real/config"));
    assert_eq!(std::fs::read_link(sandboxed.bench.path(".vscode")).unwrap().to_str(), Some("real"));
}

#[tokio::test]
async fn denied_places_cannot_be_read_by_any_name() {
    let Some(mut sandboxed) = Sandboxed::new() else { return };
    let secret = sandboxed.outside.join("secrets");
    std::fs::create_dir_all(secret.join("public")).unwrap();
    std::fs::write(secret.join("key"), "hush").unwrap();
    std::fs::write(secret.join("public/key"), "loud").unwrap();
    std::fs::write(sandboxed.outside.join("token"), "hush").unwrap();
    std::os::unix::fs::symlink(sandboxed.outside.join("token"), sandboxed.bench.path("link")).unwrap();
    sandboxed.change(|settings, outside| {
        let path = |name: &str| outside.join(name).to_str().unwrap().to_owned();
        settings.filesystem.deny_read = vec![path("secrets"), path("token")];
        settings.filesystem.allow_read = vec![path("secrets/public")];
    });
    let outside = sandboxed.outside.display();
    let pid = std::process::id();
    let commands = [
        format!("cat {outside}/token"),
        "cat link".to_owned(),
        format!("cat {outside}/secrets/key"),
        format!("cat /proc/self/root{outside}/token"),
        format!("cat /proc/{pid}/root{outside}/token"),
        format!("cat /proc/{pid}/cwd/../outside/token"),
        format!("chmod 600 {outside}/token && cat {outside}/token"),
        format!("chmod 700 {outside}/secrets && cat {outside}/secrets/key"),
        format!("mv {outside}/token here && cat here"),
        format!("ln {outside}/token here && cat here"),
    ];
    for command in commands {
        let said = sandboxed.fail(&command).await;
        assert!(!said.contains("hush"), "{command}: {said}");
    }
    assert_eq!(sandboxed.succeed(&format!("cat {outside}/secrets/public/key")).await, "loud");
    assert_eq!(std::fs::read_to_string(sandboxed.outside.join("token")).unwrap(), "hush");
}

#[tokio::test]
async fn settings_open_and_close_places() {
    let Some(mut sandboxed) = Sandboxed::new() else { return };
    for path in [".git/config", "kept/file"] {
        sandboxed.bench.write(path, "old\n");
    }
    sandboxed.change(|settings, outside| {
        settings.filesystem.allow_write = vec![".git".to_owned(), outside.to_str().unwrap().to_owned()];
        settings.filesystem.deny_write = vec!["kept".to_owned(), "absent".to_owned()];
    });
    sandboxed.succeed(&format!("echo x > .git/config && echo x > {}/new", sandboxed.outside.display())).await;
    assert_eq!(sandboxed.bench.content(".git/config"), b"x\n");
    assert!(sandboxed.outside.join("new").exists());
    sandboxed.fail("echo x > kept/file").await;
    sandboxed.fail("mkdir absent/below").await;
    assert_eq!(sandboxed.bench.content("kept/file"), b"old\n");
    assert!(!sandboxed.bench.path("absent").exists());
}

#[tokio::test]
async fn a_workspace_inside_an_unreadable_folder_still_works() {
    let Some(mut sandboxed) = Sandboxed::new() else { return };
    sandboxed.bench.write("secret", "hush");
    let around = sandboxed.bench.cwd.parent().unwrap().to_path_buf();
    std::fs::write(around.join("near"), "hush").unwrap();
    let hidden = tempfile::tempdir().unwrap();
    sandboxed.change(|settings, _| {
        let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
        settings.filesystem.deny_read =
            vec![text(&around), "secret".to_owned(), text(hidden.path()), "/dev/null".to_owned()];
    });
    sandboxed.succeed("echo x > file && cat file && ls ..").await;
    for path in ["../near", "secret"] {
        let said = sandboxed.fail(&format!("cat {path}")).await;
        assert!(!said.contains("hush"), "{path}: {said}");
    }
    assert_eq!(sandboxed.bench.content("file"), b"x\n");
    sandboxed.fail("echo x > ../new").await;
    assert!(!around.join("new").exists());
}

#[tokio::test]
async fn a_workspace_in_the_temporary_folder_is_seen_there() {
    let Some(mut sandboxed) = Sandboxed::new() else { return };
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("work/.git")).unwrap();
    std::fs::write(root.join("beside"), "").unwrap();
    sandboxed.bench.cwd = root.join("work");
    sandboxed.succeed("echo x > file && echo x > /tmp/own").await;
    assert_eq!(sandboxed.bench.content("file"), b"x\n");
    sandboxed.fail("echo x > .git/config").await;
    sandboxed.fail("cat ../beside").await;
}
