//! The gate as a table: rules, mode and call on one side, the decision on the other. Every rule that stops something
//! is tested beside an ordinary neighbour that still runs.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::path::Path;

use qoder_policy::{Confinement, NoLinks, Policy, Question, Rule, RuleSet, Workspace, decide};
use qoder_types::Access;
use qoder_types::Behavior::{Allow, Ask, Deny};
use qoder_types::workspace::Isolation;
use qoder_types::{Behavior, Decision, DecisionLayer, PermissionMode, RuleOrigin, RuleSource};

const DEFAULT: PermissionMode = PermissionMode::Default;
const BYPASS: PermissionMode = PermissionMode::BypassPermissions;

fn workspace() -> Workspace {
    Workspace {
        cwd: "/w/p".into(),
        project_root: "/w/p".into(),
        home: "/home/u".into(),
        roots: vec!["/w/p".into()],
        config_dir: "/home/u/.qoder".into(),
        protected: Vec::new(),
        isolation: None,
    }
}

fn rules(lists: &[(Behavior, &[&str])]) -> RuleSet {
    let mut set = RuleSet::default();
    for (behavior, texts) in lists {
        for text in *texts {
            let origin = RuleOrigin { source: RuleSource::CliArg, file: None, line: None };
            set.add(*behavior, Rule::parse(text, origin).unwrap());
        }
    }
    set
}

fn judge(lists: &[(Behavior, &[&str])], mode: PermissionMode, tool: &str, access: Access) -> Decision {
    judge_by(&rules(lists), mode, tool, access)
}

fn judge_by(rules: &RuleSet, mode: PermissionMode, tool: &str, access: Access) -> Decision {
    judge_in(workspace(), rules, mode, tool, access)
}

fn judge_in(
    workspace: Workspace,
    rules: &RuleSet,
    mode: PermissionMode,
    tool: &str,
    access: Access,
) -> Decision {
    let policy = Policy::new(rules, workspace);
    let question = Question {
        tool,
        accesses: &[access],
        mode,
        trusted: true,
        mode_is_explicit: false,
        policy: &policy,
        cwd: Path::new("/w/p"),
        confinement: Confinement::None,
        files: &NoLinks,
    };
    decide(&question).unwrap().decision
}

fn command(lists: &[(Behavior, &[&str])], mode: PermissionMode, text: &str) -> Behavior {
    judge(lists, mode, "Bash", Access::Command(text.to_owned())).behavior
}

fn edit(lists: &[(Behavior, &[&str])], mode: PermissionMode, path: &str) -> Behavior {
    judge(lists, mode, "Write", Access::Edit(path.into())).behavior
}

fn read(lists: &[(Behavior, &[&str])], mode: PermissionMode, path: &str) -> Behavior {
    judge(lists, mode, "Read", Access::Read(path.into())).behavior
}

#[test]
fn deny_rules_for_commands_hold_in_every_mode() {
    let rules: &[(Behavior, &[&str])] =
        &[(Deny, &["Bash(rm:*)", "Bash(echo push*)", "Bash(git * --force)"]), (Allow, &["Bash"])];
    for mode in [DEFAULT, BYPASS, PermissionMode::AcceptEdits] {
        for text in [
            "rm x",
            "/bin/rm x",
            "env rm x",
            "timeout 5 rm x",
            "nice -n 5 rm x",
            "command rm x",
            "bash -c 'rm x'",
            "xargs rm",
            "echo push origin",
            "git push origin --force",
        ] {
            assert_eq!(command(rules, mode, text), Deny, "{mode:?} {text}");
        }
        // What cannot be read might be denied; a person has to look.
        for text in ["X=1 rm x", "true; rm x", "$(echo rm) x", "bash -c \"a $x; $y\"", "r\"\"m x > y"] {
            assert_ne!(command(rules, mode, text), Allow, "{mode:?} {text}");
        }
        for text in ["ls", "echo pull", "git push origin", "grep rm file"] {
            assert_eq!(command(rules, mode, text), Allow, "{mode:?} {text}");
        }
    }
}

#[test]
fn allow_rules_match_what_is_written_and_nothing_else() {
    let rules: &[(Behavior, &[&str])] =
        &[(Allow, &["Bash(npm run test:*)", "Bash(git status)", "Bash(cargo * --locked)"])];
    for text in ["npm run test", "npm run test -- x", "git  status", "git 'status'", "cargo build --locked"] {
        assert_eq!(command(rules, DEFAULT, text), Allow, "{text}");
    }
    for text in [
        "npm run tests",
        "npm run test; make",
        "npm run test && make",
        "git status -s && make",
        "./git status",
        "env git status",
        "X=1 git status",
        "git status > f",
        "npm run test $(make)",
        "cargo build --locked | sh",
        "git status\nmake",
    ] {
        assert_eq!(command(rules, DEFAULT, text), Ask, "{text}");
    }
}

#[test]
fn wholesale_removal_is_never_automatic_and_privileges_need_a_name() {
    let broad: &[(Behavior, &[&str])] = &[(Allow, &["Bash"])];
    for text in [
        "rm -rf /",
        "rm -rf ~",
        "rm -rf \"$HOME\"",
        "sudo rm -rf /etc",
        "rm -rf /usr/../etc",
        "true; rm -rf /*",
    ] {
        assert_eq!(command(broad, DEFAULT, text), Ask, "{text}");
        assert_eq!(command(&[], BYPASS, text), Ask, "{text}");
        assert_eq!(command(broad, PermissionMode::DontAsk, text), Deny, "{text}");
    }
    for text in ["rm -rf .", "rm -rf ..", "rm -rf *", "rm -rf /w"] {
        assert_eq!(command(&[(Allow, &["Bash", "Bash(rm:*)"])], DEFAULT, text), Ask, "{text}");
    }
    assert_eq!(command(broad, DEFAULT, "sudo id"), Ask);
    assert_eq!(command(&[(Allow, &["Bash(sudo id)"])], DEFAULT, "sudo id"), Allow);
    assert_eq!(command(&[], BYPASS, "sudo id"), Allow);
    for text in ["rm -rf target", "rm notes.txt", "ls /", "cd .. && ls"] {
        assert_eq!(command(broad, DEFAULT, text), Allow, "{text}");
    }
}

#[test]
fn all_of_bash_writes_outside_only_by_a_rule_of_the_user_the_command_line_or_the_host() {
    let decided = |sources: &[RuleSource], text: &str| {
        let mut set = RuleSet::default();
        for source in sources {
            let origin = RuleOrigin { source: *source, file: None, line: None };
            set.add(Allow, Rule::parse("Bash", origin).unwrap());
        }
        judge_by(&set, DEFAULT, "Bash", Access::Command(text.to_owned())).behavior
    };
    let outside = "echo x > /srv/x";
    for source in
        [RuleSource::UserSettings, RuleSource::FlagSettings, RuleSource::CliArg, RuleSource::Session]
    {
        assert_eq!(decided(&[source], outside), Allow, "{source:?}");
        // No order of the rules hides the wider one.
        assert_eq!(decided(&[RuleSource::ProjectSettings, source], outside), Allow, "{source:?}");
        assert_eq!(decided(&[source, RuleSource::ProjectSettings], outside), Allow, "{source:?}");
        assert_eq!(decided(&[source], "echo x > ~/.bashrc"), Ask, "{source:?}");
    }
    for source in [RuleSource::ProjectSettings, RuleSource::LocalSettings, RuleSource::Command] {
        assert_eq!(decided(&[source], outside), Ask, "{source:?}");
        assert_eq!(decided(&[source], "echo x > inside.txt"), Allow, "{source:?}");
    }
}

#[test]
fn file_rules_bind_commands_that_name_the_file() {
    let rules: &[(Behavior, &[&str])] =
        &[(Deny, &["Read(secret.txt)", "Edit(/conf/**)"]), (Allow, &["Bash"])];
    for text in [
        "cat secret.txt",
        "cat ./a/../secret.txt",
        "head --file=secret.txt",
        "touch conf/x",
        "env cat /w/p/secret.txt",
    ] {
        assert_eq!(command(rules, BYPASS, text), Deny, "{text}");
    }
    assert_ne!(command(rules, BYPASS, "cat secret.txt | head"), Allow);
    assert_eq!(command(rules, BYPASS, "cat notes.txt"), Allow);
}

#[test]
fn broad_edit_rules_stay_in_the_workspace_and_off_protected_files() {
    let broad: &[(Behavior, &[&str])] = &[(Allow, &["Edit"])];
    assert_eq!(edit(broad, DEFAULT, "/w/p/src/a.rs"), Allow);
    for path in [
        "/w/other/a",
        "/home/u/x",
        "/w/p/.git/config",
        "/w/p/.envrc",
        "/w/p/.hg/hgrc",
        "/w/p/.cargo/config.toml",
    ] {
        assert_eq!(edit(broad, DEFAULT, path), Ask, "{path}");
        assert_eq!(edit(broad, PermissionMode::Auto, path), Deny, "{path}");
        assert_eq!(edit(&[], BYPASS, path), Allow, "{path}");
    }
    assert_eq!(edit(&[(Allow, &["Edit(//w/other/**)"])], DEFAULT, "/w/other/a"), Allow);
    assert_eq!(edit(&[(Allow, &["Edit(/.envrc)"])], DEFAULT, "/w/p/.envrc"), Allow);
    assert_eq!(edit(&[(Allow, &["Edit(/**)"])], DEFAULT, "/w/p/.envrc"), Ask);
    assert_eq!(edit(&[(Deny, &["Read(a.rs)"]), (Allow, &["Edit"])], BYPASS, "/w/p/a.rs"), Deny);
}

#[test]
fn modes_do_what_they_say() {
    let cases = [
        (DEFAULT, Allow, Ask, Ask),
        (PermissionMode::AcceptEdits, Allow, Allow, Ask),
        (PermissionMode::Plan, Allow, Deny, Deny),
        (PermissionMode::DontAsk, Allow, Deny, Deny),
        (PermissionMode::Auto, Allow, Allow, Deny),
        (BYPASS, Allow, Allow, Allow),
    ];
    for (mode, reading, editing, running) in cases {
        assert_eq!(read(&[], mode, "/w/p/a"), reading, "{mode:?}");
        assert_eq!(edit(&[], mode, "/w/p/a"), editing, "{mode:?}");
        assert_eq!(command(&[], mode, "make"), running, "{mode:?}");
    }
    // Plan makes no changes, whatever is allowed.
    assert_eq!(edit(&[(Allow, &["Edit"])], PermissionMode::Plan, "/w/p/a"), Deny);
    assert_eq!(command(&[(Allow, &["Bash"])], PermissionMode::Plan, "make"), Deny);
    assert_eq!(read(&[], DEFAULT, "/etc/passwd"), Ask);
    assert_eq!(read(&[], DEFAULT, "/w/p-old/a"), Ask);
}

#[test]
fn a_deny_rule_never_loosens() {
    let commands = ["ls", "rm -rf /", "sudo id", "a && b", "git push --force", "cat secret.txt"];
    let allow: &[&str] = &["Bash", "Bash(git:*)"];
    let strictness = |behavior| match behavior {
        Allow => 0,
        Ask => 1,
        Deny => 2,
    };
    for text in commands {
        for mode in [DEFAULT, BYPASS, PermissionMode::Auto, PermissionMode::DontAsk] {
            let before = command(&[(Allow, allow)], mode, text);
            for deny in ["Bash(ls)", "Bash(git:*)", "Read(secret.txt)", "Bash"] {
                let after = command(&[(Allow, allow), (Deny, &[deny])], mode, text);
                assert!(strictness(after) >= strictness(before), "{deny} on {text} in {mode:?}");
            }
        }
    }
}

#[test]
fn skills_that_bring_only_text_run_and_rules_name_them() {
    let skill = |lists: &[(Behavior, &[&str])], mode, only_text| {
        let access = Access::Skill { name: "p:pdf".to_owned(), only_text };
        judge(lists, mode, "Skill", access).behavior
    };
    for mode in [DEFAULT, PermissionMode::Plan, PermissionMode::DontAsk, PermissionMode::Auto] {
        assert_eq!(skill(&[], mode, true), Allow, "{mode:?}");
    }
    assert_eq!(skill(&[], DEFAULT, false), Ask);
    assert_eq!(skill(&[], PermissionMode::DontAsk, false), Deny);
    for allowing in ["Skill", "Skill(p:pdf)", "Skill(a, p:pdf)"] {
        assert_eq!(skill(&[(Allow, &[allowing])], DEFAULT, false), Allow, "{allowing}");
    }
    for other in ["Skill(pdf)", "Agent(p:pdf)"] {
        assert_eq!(skill(&[(Allow, &[other])], DEFAULT, false), Ask, "{other}");
        assert_eq!(skill(&[(Deny, &[other])], DEFAULT, true), Allow, "{other}");
    }
    for stopping in ["Skill", "Skill(p:pdf)"] {
        assert_eq!(skill(&[(Deny, &[stopping]), (Allow, &["Skill"])], BYPASS, true), Deny, "{stopping}");
        assert_eq!(skill(&[(Ask, &[stopping]), (Allow, &["Skill"])], DEFAULT, true), Ask, "{stopping}");
    }
}

/// An isolated session: allowed tools ask for nothing that stays inside, and nothing lifts the denial of what leaves.
#[test]
fn an_isolated_session_has_no_cautions_inside_and_no_way_out() {
    let isolated = || Workspace { isolation: Some(Isolation::new(vec!["/w/p".into()])), ..workspace() };
    let allowed = rules(&[(Allow, &["Bash", "Read", "Write"])]);
    let ruled = |mode, tool: &str, access| judge_in(isolated(), &allowed, mode, tool, access);
    let bash = |mode, text: &str| ruled(mode, "Bash", Access::Command(text.to_owned()));
    for inside in [
        "git commit -m x",
        "echo x > .git/config",
        "rm -rf /w/p",
        "sudo true",
        "crontab -l",
        "$UNKNOWN -x",
        "cat /usr/include/stdio.h > /dev/null",
        "echo x > /tmp/scratch",
    ] {
        assert_eq!(bash(DEFAULT, inside).behavior, Allow, "{inside}");
    }
    for outside in [
        "cat /root/.ssh/id_rsa",
        "cat ../../root/secret",
        "echo x > /w/other",
        "echo x > /usr/bin/x",
        "rm -rf /",
        "cat ~/x",
        "cat /proc/self/root/root/secret",
    ] {
        for mode in [DEFAULT, BYPASS, PermissionMode::Auto] {
            let decision = bash(mode, outside);
            assert_eq!((decision.behavior, decision.layer), (Deny, DecisionLayer::SafetyCheck), "{outside}");
        }
    }
    assert_eq!(ruled(DEFAULT, "Write", Access::Edit(".bashrc".into())).behavior, Allow);
    assert_eq!(ruled(DEFAULT, "Read", Access::Read("a.txt".into())).behavior, Allow);
    for path in ["/etc/passwd", "/w/p/../other", "/proc/self/environ", "/tmp/x"] {
        assert_eq!(ruled(BYPASS, "Read", Access::Read(path.into())).behavior, Deny, "{path}");
        assert_eq!(ruled(BYPASS, "Write", Access::Edit(path.into())).behavior, Deny, "{path}");
    }
    // What is not allowed asks as ever, and a directory that is added later is outside all the same.
    let none = rules(&[]);
    let access = Access::Edit("a.txt".into());
    assert_eq!(judge_in(isolated(), &none, DEFAULT, "Write", access).behavior, Ask);
    let mut wider = isolated();
    wider.roots.push("/w/other".into());
    let access = Access::Edit("/w/other/a".into());
    assert_eq!(judge_in(wider, &allowed, DEFAULT, "Write", access).behavior, Deny);
}

/// What was given to an isolated session can be read by its tools and commands, and changed by neither.
#[test]
fn what_is_mounted_into_an_isolated_session_can_only_be_read() {
    let isolation = Isolation { mounted: vec!["/w/given".into()], ..Isolation::new(vec!["/w/p".into()]) };
    let isolated = || Workspace { isolation: Some(isolation.clone()), ..workspace() };
    let allowed = rules(&[(Allow, &["Bash", "Read", "Write"])]);
    let ruled = |tool: &str, access| judge_in(isolated(), &allowed, BYPASS, tool, access).behavior;
    assert_eq!(ruled("Read", Access::Read("/w/given/a.txt".into())), Allow);
    assert_eq!(ruled("Bash", Access::Command("cat /w/given/a.txt".to_owned())), Allow);
    assert_eq!(ruled("Write", Access::Edit("/w/given/a.txt".into())), Deny);
    assert_eq!(ruled("Bash", Access::Command("echo x > /w/given/a.txt".to_owned())), Deny);
    assert_eq!(ruled("Read", Access::Read("/w/given/../other".into())), Deny);
}
