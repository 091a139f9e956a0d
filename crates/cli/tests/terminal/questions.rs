//! Questions: keys that were meant for the prompt never answer, each choice does what it says, and nothing is cut off.

use std::time::{Duration, Instant};

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::{Value, json};

use super::support::{DOWN, ENTER, ESC, FOCUS_QUESTION, RIGHT, Screen, Start, TAB};

/// A model that wants to run commands, one after another.
fn runs(commands: &[&str]) -> ScriptedServer {
    let mut replies: Vec<Reply> =
        commands.iter().map(|command| Reply::tool("Bash", json!({ "command": command }))).collect();
    replies.push(Reply::text("all done"));
    ScriptedServer::start(Script::by_assistant_count(replies))
}

/// Starts with a prompt and waits for the question.
fn asked(sandbox: &Sandbox, server: &ScriptedServer) -> Screen {
    let mut screen = Start::new(sandbox).with(server).arguments(&["please"]).run();
    screen.until("Bash needs permission");
    screen
}

fn decisions(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.transcript_lines().into_iter().filter(|line| line["type"] == "permission-answer").collect()
}

/// Longer than this between two keys, and the question may take the next one.
const TYPING: Duration = Duration::from_millis(800);

/// Types before, while and after a question appears; answers with how many messages that were. None when the machine was too
/// slow for that to be one go.
fn type_around_a_question(sandbox: &Sandbox, server: &ScriptedServer) -> Option<(Screen, usize)> {
    let mut screen = Start::new(sandbox).with(server).arguments(&["please"]).run();
    screen.until("Esc stops");
    let (mut last, mut left, mut messages) = (Instant::now(), 20, 0);
    while left > 0 {
        for keys in ["y1\r", "yes", ENTER] {
            screen.send(keys).pause(15);
            if last.elapsed() > TYPING {
                return None;
            }
            last = Instant::now();
        }
        messages += 2;
        if screen.text().contains("Bash needs permission") {
            left -= 1;
        }
    }
    Some((screen, messages))
}

#[test]
fn typing_around_the_appearance_of_a_question_answers_nothing_and_loses_nothing() {
    loop {
        let sandbox = Sandbox::new();
        let server = ScriptedServer::start(Script::by_assistant_count(vec![
            Reply::SlowFirstByte {
                ms: 300,
                reply: Box::new(Reply::tool("Bash", json!({ "command": "touch made" }))),
            },
            Reply::text("all done"),
        ]));
        let Some((mut screen, messages)) = type_around_a_question(&sandbox, &server) else { continue };
        assert_eq!(decisions(&sandbox).len(), 0, "{}", screen.text());
        assert!(!sandbox.project().join("made").exists());
        // What was typed is queued, whole.
        screen.until("queued: y1").until("queued: yes").until(&format!("{} more queued", messages - 3));
        screen.send(FOCUS_QUESTION).until("Enter chooses").send("n");
        screen.until("all done");
        assert_eq!(decisions(&sandbox).len(), 1);
        return;
    }
}

#[test]
fn a_draft_is_kept_while_a_question_is_answered() {
    let sandbox = Sandbox::new();
    let server = runs(&["touch made"]);
    let mut screen = asked(&sandbox, &server);
    screen.send("half a thought").until("> half a thought");
    screen.send(FOCUS_QUESTION).until("Enter chooses").send("y").until("all done");
    screen.until("> half a thought");
    assert!(sandbox.project().join("made").exists());
}

#[test]
fn pasted_text_and_focus_events_never_answer() {
    let sandbox = Sandbox::new();
    let server = runs(&["touch made"]);
    let mut screen = asked(&sandbox, &server);
    screen.send(FOCUS_QUESTION).until("Enter chooses");
    screen.send("\u{1b}[I").paste("y\n1\n").send("\u{1b}[O\u{1b}[I").send("\u{1b}[M !!").until("> y");
    assert_eq!(decisions(&sandbox).len(), 0);
}

#[test]
fn it_takes_the_focus_after_a_second_without_a_key() {
    let sandbox = Sandbox::new();
    let server = runs(&["touch made"]);
    let mut screen = asked(&sandbox, &server);
    screen.until("Enter chooses").send("1").until("all done");
    assert!(sandbox.project().join("made").exists());
}

#[test]
fn yes_for_the_session_holds_for_the_next_call_and_writes_no_file() {
    let sandbox = Sandbox::new();
    let server = runs(&["touch made", "touch made"]);
    let mut screen = asked(&sandbox, &server);
    screen.until(&format!("in {}, not sandboxed", sandbox.project().display()));
    screen.until("Yes, for this session: Bash(touch made)");
    screen.send(FOCUS_QUESTION).until("Enter chooses").send("2").until("all done");
    assert_eq!(decisions(&sandbox).len(), 1);
    assert!(!sandbox.config().join("settings.json").exists());
}

#[test]
fn each_scope_writes_the_shown_rule_into_the_shown_file() {
    for (turns, file) in [(0, "settings.local.json"), (1, "settings.json"), (2, "user")] {
        let sandbox = Sandbox::new();
        sandbox.run(super::support::BINARY, &["trust"]);
        let path = match file {
            "user" => sandbox.config().join("settings.json"),
            name => sandbox.project().join(".qoder").join(name),
        };
        let server = runs(&["touch made", "touch made"]);
        let mut screen = Start::new(&sandbox).with(&server).arguments(&["please"]).size(200, 24).run();
        screen.until("Bash needs permission").send(FOCUS_QUESTION).until("Enter chooses");
        for _ in 0..turns {
            screen.send(RIGHT);
        }
        screen
            .until(&format!("Yes, always: Bash(touch made) → {} ", path.display()))
            .send("3")
            .until("all done");
        let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(written["permissions"]["allow"], json!(["Bash(touch made)"]), "{}", path.display());
        assert_eq!(decisions(&sandbox).len(), 1, "the second call needs no question");
    }
}

#[test]
fn a_rule_that_cannot_be_written_is_reported_and_the_call_runs_once() {
    let sandbox = Sandbox::new();
    let server = runs(&["touch made"]);
    let mut screen = asked(&sandbox, &server);
    std::fs::create_dir_all(sandbox.config().join("settings.json")).unwrap();
    screen.send(FOCUS_QUESTION).until("Enter chooses").send("3").until("all done");
    assert!(sandbox.project().join("made").exists());
    assert!(screen.text().contains("settings.json"), "{}", screen.text());
}

#[test]
fn no_with_words_reaches_the_model() {
    let sandbox = Sandbox::new();
    let server = runs(&["touch made"]);
    let mut screen = asked(&sandbox, &server);
    screen.send(FOCUS_QUESTION).until("Enter chooses").send(TAB).until("Say what to do instead");
    screen.send("use mkdir").send(ENTER).until("all done");
    let last = server.requests().last().unwrap().json().to_string();
    assert!(last.contains("use mkdir"), "{last}");
    assert!(!sandbox.project().join("made").exists());
}

#[test]
fn escape_denies_and_stops_the_turn() {
    let sandbox = Sandbox::new();
    let server = runs(&["touch made"]);
    let mut screen = asked(&sandbox, &server);
    screen.send(FOCUS_QUESTION).until("Enter chooses").send(ESC).until("interrupted").until_idle();
    assert!(!sandbox.project().join("made").exists());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_edited_command_is_what_is_judged_and_run() {
    let sandbox = Sandbox::new();
    let editor = sandbox.write("edit.sh", "#!/bin/sh\nsed -i s/made/edited/ \"$1\"\n");
    let server = runs(&["touch made"]);
    let editor = format!("sh {}", editor.display());
    let mut screen =
        Start::new(&sandbox).with(&server).variable("EDITOR", &editor).arguments(&["please"]).run();
    screen.until("Bash needs permission").send(FOCUS_QUESTION).until("Enter chooses").send("\u{7}");
    // The changed input is asked about again, or runs: never the old one.
    screen.wait("the edited command", |rows| rows.iter().any(|row| row.contains("touch edited")));
    if screen.text().contains("Bash needs permission") {
        screen.send(FOCUS_QUESTION).until("Enter chooses").send("y");
    }
    screen.until("all done");
    assert!(sandbox.project().join("edited").exists() && !sandbox.project().join("made").exists());
}

#[test]
fn several_questions_are_counted_and_answered_one_by_one() {
    let sandbox = Sandbox::new();
    let calls = vec![
        ("Bash".to_owned(), json!({ "command": "touch one" })),
        ("Bash".to_owned(), json!({ "command": "touch two" })),
    ];
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::ToolCalls(calls),
        Reply::text("all done"),
    ]));
    let mut screen = asked(&sandbox, &server);
    screen.send(FOCUS_QUESTION).until("Enter chooses").send("y").until_gone("  touch one");
    screen.until("touch two").send(FOCUS_QUESTION).until("Enter chooses").send("n").until("all done");
    assert!(sandbox.project().join("one").exists() && !sandbox.project().join("two").exists());
}

#[test]
fn a_long_command_can_be_read_to_its_end_and_hides_nothing() {
    let sandbox = Sandbox::new();
    let lines: Vec<String> = (1..60).map(|number| format!("echo part{number} > made")).collect();
    let server = runs(&[&format!("{}\nrm -rf hidden \u{202e}evil\u{1b}[8m", lines.join("\n"))]);
    let mut screen = asked(&sandbox, &server);
    screen.until("PageUp and PageDown scroll").send(FOCUS_QUESTION).until("Enter chooses");
    for _ in 0..12 {
        screen.send("\u{1b}[6~");
    }
    screen.until("rm -rf hidden").until("\\u{202e}").until("\\u{1b}");
}

#[test]
fn a_plan_is_shown_and_approved() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("ExitPlanMode", json!({ "plan": "# The plan\n\n1. look\n2. leap" })),
        Reply::text("carried out"),
    ]));
    let mut screen =
        Start::new(&sandbox).with(&server).arguments(&["--permission-mode", "plan", "plan it"]).run();
    screen.until("The plan is ready").until("2. leap").until("plan ·");
    // Without a model that judges, auto mode is not on offer.
    screen.until("3. No, keep planning");
    assert!(!screen.text().contains("auto mode"), "{}", screen.text());
    screen.send(FOCUS_QUESTION).until("Enter chooses").send("1").until("carried out").until("acceptEdits ·");
}

#[test]
fn choices_of_the_model_are_offered_with_own_words() {
    let sandbox = Sandbox::new();
    let questions = json!({ "questions": [
        { "question": "Which colour?", "header": "Colour", "multiSelect": false,
          "options": [{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cold" }] },
        { "question": "Which sizes?", "header": "Size", "multiSelect": true,
          "options": [{ "label": "Small", "description": "" }, { "label": "Large", "description": "" }] },
    ] });
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("AskUserQuestion", questions),
        Reply::text("thank you"),
    ]));
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["ask me"]).run();
    screen.until("Which colour?").until("Blue · cold").send(FOCUS_QUESTION).until("Enter answers");
    screen.send("2").until("Which sizes?").send(" ").send(DOWN).send(" ").until("[x] Large").pause(350);
    screen.send(ENTER).until("thank you");
    let last = server.requests().last().unwrap().json().to_string();
    assert!(last.contains("Blue") && last.contains("Small") && last.contains("Large"), "{last}");
}
