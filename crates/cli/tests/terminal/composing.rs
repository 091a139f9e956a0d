//! The prompt: where the caret is, earlier prompts, large pastes, and what a draft becomes when a turn is stopped.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};

use super::support::{CTRL_C, CTRL_D, DOWN, ENTER, ESC, Screen, Start, UP};

/// The row of the composer on the screen.
fn composer_row(screen: &Screen) -> usize {
    screen.rows().iter().rposition(|row| row.starts_with('>')).unwrap()
}

/// Waits until the composer shows this with the caret in this column.
fn until_caret(screen: &mut Screen, text: &str, column: u16) {
    screen.until(text).until_caret(column);
    assert_eq!(usize::from(screen.cursor().0), composer_row(screen), "{}", screen.text());
}

#[test]
fn the_caret_is_where_the_next_character_goes() {
    let sandbox = Sandbox::new();
    let mut screen = Start::new(&sandbox).run();
    screen.until_idle().send("a世界");
    until_caret(&mut screen, "> a世界", 7);
    // Over the wide character, and over a letter with two marks, in one step each.
    screen.send("\u{1b}[D");
    until_caret(&mut screen, "> a世界", 5);
    screen.send("e\u{301}\u{323}");
    until_caret(&mut screen, "> a世e\u{301}\u{323}界", 6);
    screen.send("\u{7f}");
    until_caret(&mut screen, "> a世界", 5);
    screen.send("\u{1}");
    until_caret(&mut screen, "> a世界", 2);
}

#[test]
fn up_brings_earlier_prompts_back_also_those_of_another_start() {
    let sandbox = Sandbox::new();
    let reply = |text: &str| Reply::text(text);
    let server = ScriptedServer::start(Script::list(vec![reply("one"), reply("two")]));
    let mut screen = Start::new(&sandbox).with(&server).run();
    screen.until_idle().send("first prompt").send(ENTER).until("one").until_idle();
    screen.send("second prompt").send(ENTER).until("two").until_idle();
    screen
        .send("begun")
        .until("> begun")
        .send(UP)
        .until_prompt("second prompt")
        .send(UP)
        .until_prompt("first prompt");
    screen.send(DOWN).until_prompt("second prompt").send(DOWN).until_prompt("begun");
    screen.send(CTRL_C).until_prompt("").send("/status").send(ENTER).until("session ").until_prompt("");
    screen
        .send(UP)
        .until_prompt("/status")
        .send(UP)
        .until_prompt("begun")
        .send(UP)
        .until_prompt("second prompt");
    screen.send(CTRL_C).until_prompt("").send(CTRL_D);
    assert!(screen.end().success());

    let mut again = Start::new(&sandbox).with(&server).run();
    // Earlier prompts are read beside the first frame: the search shows them as soon as they are there.
    again.until_idle().send("\u{12}first").until("first prompt").send(ESC).until_gone("first prompt");
    again.send(UP).until_prompt("/status").send(UP).until_prompt("second prompt");
    again.send(UP).until_prompt("first prompt");
}

#[test]
fn a_large_paste_is_one_token_and_is_sent_whole() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::text("received")]));
    let mut screen = Start::new(&sandbox).with(&server).run();
    let pasted: Vec<String> = (1..=84).map(|number| format!("pasted line {number}")).collect();
    screen.until_idle().send("see ").paste(&pasted.join("\n")).until("[Pasted text #1, 84 lines]");
    screen.paste("short").until("84 lines]short").send(ENTER).until("received");
    let sent = server.requests()[0].json()["messages"].to_string();
    assert!(
        sent.contains("see pasted line 1\\npasted line 2") && sent.contains("pasted line 84short"),
        "{sent}"
    );
}

#[test]
fn a_prompt_that_is_stopped_before_an_answer_returns_before_the_draft() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::list(vec![Reply::SlowFirstByte {
        ms: 60_000,
        reply: Box::new(Reply::text("too late")),
    }]));
    let mut screen = Start::new(&sandbox).with(&server).run();
    screen.until_idle().send("too early").send(ENTER).until("Esc stops");
    screen.send("more").until_prompt("more").send(ESC).until("interrupted").until_idle();
    screen.until("> too early").until("  more");
}
