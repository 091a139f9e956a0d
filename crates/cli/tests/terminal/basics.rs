//! The first minute: what is shown at the start, a prompt, an answer, and the end.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::support::{CTRL_C, CTRL_D, ENTER, Start};

#[test]
fn a_prompt_is_answered_and_the_end_says_how_to_continue() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("The **answer** is 42.")]));
    let mut screen = Start::new(&sandbox).with(&server).run();
    screen.until_idle().send("what is it").send(ENTER);
    screen.until("The answer is 42.").until_idle();
    assert_eq!(screen.count("> what is it"), 1);
    screen.send(CTRL_D);
    assert!(screen.end().success());
    let id = sandbox.session_files()[0].file_stem().unwrap().to_str().unwrap().to_owned();
    assert_eq!(screen.rows().last().unwrap(), &format!("qodercli --resume {id}"));
}

#[test]
fn the_title_says_whether_a_turn_runs() {
    let sandbox = Sandbox::new();
    // Titles that follow each other too soon wait for their time, and are not dropped.
    let late = Reply::SlowFirstByte { ms: 300, reply: Box::new(Reply::text("done")) };
    let server = ScriptedServer::start(Script::list(vec![late]));
    let mut screen = Start::new(&sandbox).with(&server).run();
    screen.until_idle().until_written(0, "\u{1b}]2;project - qodercli\u{7}");
    let from = screen.bytes().len();
    screen.send("go").send(ENTER).until_written(from, "\u{1b}]2;* project - qodercli\u{7}");
    screen.until_written(from, "\u{1b}]2;project - qodercli\u{7}").until("done");
}

#[test]
fn without_a_key_the_offline_model_says_so_and_works() {
    let sandbox = Sandbox::new();
    let mut screen = Start::new(&sandbox).run();
    screen.until("The built-in offline model answers").until("offline (no language model)");
    sandbox.write("notes.txt", "hello\n");
    screen.send("call Read with {\"file_path\": \"notes.txt\"}").send(ENTER);
    screen.until("Read notes.txt · 1 line").until_idle();
    screen.send(CTRL_C).until("again to leave").send(CTRL_C);
    assert!(screen.end().success());
}

#[test]
fn a_prompt_on_the_command_line_is_asked_first() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("asked at once")]));
    let mut screen = Start::new(&sandbox).with(&server).arguments(&["look around"]).run();
    screen.until("> look around").until("asked at once").until_idle().send("/quit").send(ENTER);
    assert!(screen.end().success());
}

#[test]
fn what_is_typed_before_the_first_frame_is_kept() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("read it")]));
    let mut screen = Start::new(&sandbox).with(&server).run();
    screen.send("typed early");
    screen.until("> typed early").send(ENTER).until("read it");
}

#[test]
fn commands_run_with_their_output_and_edits_are_differences() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\ntwo\nthree\n");
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Read", json!({ "file_path": "a.txt" })),
        Reply::tool("Edit", json!({ "file_path": "a.txt", "old_string": "two", "new_string": "2 and more" })),
        Reply::tool("Bash", json!({ "command": "cat a.txt; seq 1 20" })),
        Reply::text("changed"),
    ]));
    let arguments = ["--permission-mode", "acceptEdits", "--allowed-tools", "Bash"];
    let mut screen = Start::new(&sandbox).with(&server).arguments(&arguments).run();
    screen.until_idle().send("change it").send(ENTER).until("changed").until_idle();
    let text = screen.text();
    assert!(text.contains("● Read a.txt · 3 lines"), "{text}");
    assert!(text.contains("● Edit a.txt · +1 −1"), "{text}");
    assert!(text.contains("   2 − two") && text.contains("   2 + 2 and more"), "{text}");
    assert!(
        text.contains("● Bash cat a.txt; seq 1 20") && text.contains("18 more lines (Ctrl+O shows all)"),
        "{text}"
    );
}

#[test]
fn it_needs_a_terminal_on_both_sides() {
    let sandbox = Sandbox::new();
    let mut screen = Start::new(&sandbox).shell("$QODER | cat; echo code ${PIPESTATUS:-x}").run();
    screen.until("stdout is not a terminal").until("-p");
    let mut screen = Start::new(&sandbox).shell("echo hi | $QODER > out.txt; cat out.txt").run();
    // A prompt that is piped in is print mode, as ever.
    screen.until("offline model");
}

#[test]
fn nothing_is_written_while_nothing_happens() {
    let sandbox = Sandbox::new();
    let mut screen = Start::new(&sandbox).run();
    screen.until_idle().until("The built-in offline model answers").send("hello").until_prompt("hello");
    // The last frame may still be on its way.
    screen.pause(300);
    let before = screen.bytes().len();
    screen.pause(1_500);
    let bytes = screen.bytes();
    assert_eq!(bytes.len(), before, "{:?}", String::from_utf8_lossy(&bytes[before..]));
}
