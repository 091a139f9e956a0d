//! Properties of the gate over generated lines, rules and paths: more denials never loosen, blanks and quotes around
//! literal words change nothing, more commands never loosen, a line is never looser than each of its commands, a link
//! never widens access, and every text gets an answer.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod links;

use std::path::Path;

use proptest::prelude::*;
use qoder_policy::{Confinement, FileSystem, NoLinks, Policy, Question, Rule, RuleSet, Workspace, decide};
use qoder_types::Access;
use qoder_types::{Behavior, PermissionMode, RuleOrigin, RuleSource};

/// Modes in which a line may be allowed, asked about or denied.
const MODES: [PermissionMode; 6] = [
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::BypassPermissions,
    PermissionMode::Plan,
    PermissionMode::DontAsk,
    PermissionMode::Auto,
];

/// Ordinary and dangerous commands, each a whole simple command.
const COMMANDS: [&str; 34] = [
    "ls",
    "ls -la src",
    "cat a.txt",
    "cat /etc/passwd",
    "grep -rn foo src",
    "git status",
    "git diff --stat",
    "git push --force",
    "git -C sub push",
    "rm a.txt",
    "rm -rf build",
    "rm -rf /",
    "npm test",
    "npm publish",
    "find . -name x",
    "find . -delete",
    "echo hi",
    "echo x > out.txt",
    "echo x > .git/config",
    "sort -o out a.txt",
    "sed -n 1p a.txt",
    "sed -i s/a/b/ a.txt",
    "sudo ls",
    "env ls",
    "bash -c 'rm a.txt'",
    "timeout 5 ls",
    "X=1 ls",
    "cat $X",
    "cd sub",
    "cd /",
    "cat .env",
    "cp a.txt conf/x",
    "xargs rm",
    "true",
];

const RULES: [&str; 20] = [
    "Bash",
    "Bash(ls:*)",
    "Bash(npm test)",
    "Bash(npm:*)",
    "Bash(git push:*)",
    "Bash(git * --force)",
    "Bash(rm:*)",
    "Bash(rm -rf:*)",
    "Bash(cat *)",
    "Bash(sudo ls)",
    "Bash(find:*)",
    "Bash(echo hi)",
    "Read",
    "Read(.env)",
    "Read(/src/**)",
    "Edit",
    "Edit(/conf/**)",
    "Edit(*.txt)",
    "WebFetch(domain:example.com)",
    "*",
];

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

fn rule(text: &str) -> Rule {
    Rule::parse(text, RuleOrigin { source: RuleSource::CliArg, file: None, line: None }).unwrap()
}

fn rules(lists: &[(Behavior, Vec<&str>)]) -> RuleSet {
    let mut set = RuleSet::default();
    for (behavior, texts) in lists {
        for text in texts {
            set.add(*behavior, rule(text));
        }
    }
    set
}

/// What is decided; a place that cannot exist is refused.
fn decided(
    rules: &RuleSet,
    mode: PermissionMode,
    tool: &str,
    access: Access,
    files: &dyn FileSystem,
) -> Behavior {
    let policy = Policy::new(rules, workspace());
    let question = Question {
        tool,
        accesses: &[access],
        mode,
        trusted: true,
        mode_is_explicit: false,
        policy: &policy,
        cwd: Path::new("/w/p"),
        confinement: Confinement::None,
        files,
    };
    decide(&question).map_or(Behavior::Deny, |ruling| ruling.decision.behavior)
}

fn line(rules: &RuleSet, mode: PermissionMode, text: &str) -> Behavior {
    decided(rules, mode, "Bash", Access::Command(text.to_owned()), &NoLinks)
}

/// The smaller the looser.
fn strictness(behavior: Behavior) -> u8 {
    match behavior {
        Behavior::Allow => 0,
        Behavior::Ask => 1,
        Behavior::Deny => 2,
    }
}

fn some_rules() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(&RULES[..]), 0..4)
}

fn some_sets() -> impl Strategy<Value = [(Behavior, Vec<&'static str>); 3]> {
    (some_rules(), some_rules(), some_rules()).prop_map(|(allow, ask, deny)| {
        [(Behavior::Allow, allow), (Behavior::Ask, ask), (Behavior::Deny, deny)]
    })
}

fn a_command() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&COMMANDS[..])
}

fn a_mode() -> impl Strategy<Value = PermissionMode> {
    prop::sample::select(&MODES[..])
}

/// The words of a command that has no quotes and no operators.
fn plain_words(command: &str) -> Option<Vec<&str>> {
    let plain = command.chars().all(|c| c.is_ascii_alphanumeric() || " -./_:".contains(c));
    plain.then(|| command.split(' ').collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_more_denial_never_loosens(
        sets in some_sets(), mode in a_mode(), command in a_command(), other in a_command(),
        more in prop::sample::select(&RULES[..]),
    ) {
        let before = rules(&sets);
        let mut after = before.clone();
        after.add(Behavior::Deny, rule(more));
        let text = format!("{command} && {other}");
        let (was, is) = (line(&before, mode, &text), line(&after, mode, &text));
        prop_assert!(strictness(is) >= strictness(was), "{text} with {more}: {was:?} became {is:?}");
    }

    #[test]
    fn one_more_question_never_loosens(
        sets in some_sets(), mode in a_mode(), command in a_command(), more in prop::sample::select(&RULES[..]),
    ) {
        let before = rules(&sets);
        let mut after = before.clone();
        after.add(Behavior::Ask, rule(more));
        let (was, is) = (line(&before, mode, command), line(&after, mode, command));
        prop_assert!(strictness(is) >= strictness(was), "{command} with {more}: {was:?} became {is:?}");
    }

    #[test]
    fn blanks_and_quotes_around_literal_words_change_nothing(
        sets in some_sets(), mode in a_mode(), command in a_command(),
        how in prop::collection::vec((0..4_u8, 1..3_usize), 8),
    ) {
        let Some(words) = plain_words(command) else { return Ok(()) };
        let mut text = String::new();
        for (word, (quote, blanks)) in words.iter().zip(how.iter().cycle()) {
            let (first, rest) = word.split_at(1);
            text.push_str(&match quote {
                0 => (*word).to_owned(),
                1 => format!("'{word}'"),
                2 => format!("\"{word}\""),
                _ => format!("{first}\"{rest}\""),
            });
            text.push_str(&if *quote == 3 { "\t".repeat(*blanks) } else { " ".repeat(*blanks) });
        }
        let set = rules(&sets);
        prop_assert_eq!(line(&set, mode, command), line(&set, mode, &text), "{}", text);
    }

    #[test]
    fn one_more_command_never_loosens(
        sets in some_sets(), mode in a_mode(), command in a_command(), other in a_command(),
        between in prop::sample::select(&["; ", " && ", " || ", " | ", " |& ", " & ", "\n"][..]),
    ) {
        let set = rules(&sets);
        let text = format!("{command}{between}{other}");
        let both = line(&set, mode, &text);
        let first = line(&set, mode, command);
        prop_assert!(strictness(both) >= strictness(first), "{text:?} is {both:?}, {command:?} alone {first:?}");
        // What stands behind a change of folder is judged elsewhere; otherwise it is as strict as alone.
        if !command.starts_with("cd") {
            let second = line(&set, mode, other);
            prop_assert!(strictness(both) >= strictness(second), "{text:?} is {both:?}, {other:?} alone {second:?}");
        }
    }

    #[test]
    fn what_surrounds_a_command_never_loosens(
        sets in some_sets(), mode in a_mode(), command in a_command(),
        around in prop::sample::select(&[
            ("(", ")"), ("{ ", "; }"), ("! ", ""), ("if ", "; then true; fi"), ("while ", "; do true; done"),
            ("echo $(", ")"), ("echo \"$(", ")\""), ("cat <(", ")"), ("true; ", ""), ("for i in 1; do ", "; done"),
            ("case x in x) ", ";; esac"), ("time ", ""),
        ][..]),
    ) {
        let set = rules(&sets);
        let text = format!("{}{command}{}", around.0, around.1);
        let (alone, inside) = (line(&set, mode, command), line(&set, mode, &text));
        prop_assert!(strictness(inside) >= strictness(alone), "{text:?} is {inside:?}, alone {alone:?}");
    }

    #[test]
    fn every_text_gets_an_answer(command in any::<String>(), path in any::<String>(), mode in a_mode(), sets in some_sets()) {
        let set = rules(&sets);
        line(&set, mode, &command);
        for access in [Access::Read(path.clone().into()), Access::Edit(path.clone().into()), Access::Fetch(path)] {
            decided(&set, mode, "Read", access, &NoLinks);
        }
    }

    #[test]
    fn signs_and_letters_of_every_script_get_an_answer(
        parts in prop::collection::vec((prop::sample::select(&[
            "<", ">", "{", "$", "${", "<<", "&", "|", "=", "[", "`", "\"", "*", "~", "#", ":", "-", "+", "\n", " ",
        ][..]), any::<char>()), 0..24),
    ) {
        let text: String = parts.iter().flat_map(|(sign, letter)| sign.chars().chain([*letter])).collect();
        let alone = line(&RuleSet::default(), PermissionMode::Default, &text);
        let deny = rules(&[(Behavior::Deny, vec!["Bash(rm:*)"])]);
        let denied = line(&deny, PermissionMode::Default, &format!("rm x; {text}"));
        prop_assert!(strictness(denied) >= strictness(alone) && denied != Behavior::Allow);
    }

    #[test]
    fn shell_like_texts_get_an_answer_and_broken_ones_are_not_allowed(
        parts in prop::collection::vec(prop::sample::select(&[
            "ls", "rm x", " ", ";", "&&", "|", "&", "\n", "(", ")", "{", "}", "$(", "`", "\"", "'", "\\", "<", ">", "<<E",
            "E", "$x", "${", "[[", "]]", "if", "then", "fi", "for", "do", "done", "case", "in", "esac", "=", "#", "*",
        ][..]), 0..24),
        mode in a_mode(),
    ) {
        let text = parts.concat();
        let deny = rules(&[(Behavior::Deny, vec!["Bash(rm:*)"])]);
        let none = RuleSet::default();
        let (was, is) = (line(&none, mode, &text), line(&deny, mode, &text));
        prop_assert!(strictness(is) >= strictness(was), "{text:?}: {was:?} became {is:?}");
    }

    #[test]
    fn every_rule_text_is_read_or_refused(text in any::<String>(), command in a_command()) {
        let origin = RuleOrigin { source: RuleSource::CliArg, file: None, line: None };
        let texts = [text.clone(), format!("Bash({text})"), format!("Read({text})"), format!("WebFetch(domain:{text})")];
        for text in texts {
            let Ok(rule) = Rule::parse(&text, origin.clone()) else { continue };
            let mut set = RuleSet::default();
            let was = line(&set, PermissionMode::BypassPermissions, command);
            set.add(Behavior::Deny, rule);
            let is = line(&set, PermissionMode::BypassPermissions, command);
            prop_assert!(strictness(is) >= strictness(was), "{text:?} on {command}: {was:?} became {is:?}");
        }
    }
}
