//! Text of others: a model, a tool, a file name. It is shown, and never obeyed.

use qoder_testkit::{Reply, Sandbox, Script, ScriptedServer};
use serde_json::json;

use super::support::{ENTER, ESC, Start, contains};

/// What a program may try: title, clipboard, mouse, clearing, the alternate screen, a question to the terminal.
const ATTACK: &str = "\\033]0;stolen\\007\\033]52;c;c3RvbGVu\\007\\033[?1000h\\033[2J\\033[3J\\033[?1049h\\033[6n\\033[31mred\\033[m end";

#[test]
fn sequences_of_tools_and_models_change_nothing_but_their_own_cell() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": format!("printf '{ATTACK}'") })),
        Reply::text("reply \u{1b}]0;stolen\u{7}\u{1b}[2J\u{1b}[?1049h\u{9b}2J and so on"),
    ]));
    let arguments = ["--allowed-tools", "Bash"];
    let mut screen = Start::new(&sandbox).with(&server).arguments(&arguments).run();
    screen.until_idle().send("try it").send(ENTER).until("and so on").until_idle();
    let bytes = screen.bytes();
    for sequence in ["]0;stolen", "]52;", "[?1000h", "[2J", "[3J", "[6n", "[?1049h"] {
        let sequence = format!("\u{1b}{sequence}");
        assert!(!contains(&bytes, &sequence), "{sequence:?}");
    }
    assert!(screen.text().contains("red end"), "{}", screen.text());
    // The alternate screen is for overlays alone.
    screen.send("\u{f}").until("Transcript").until_written(bytes.len(), "\u{1b}[?1049h");
    screen.send(ESC).until_written(bytes.len(), "\u{1b}[?1049l").until_idle();
    assert!(!contains(&screen.bytes(), "\u{1b}]52;"));
}

#[test]
fn no_color_means_no_color() {
    let sandbox = Sandbox::new();
    let server = ScriptedServer::start(Script::by_assistant_count(vec![
        Reply::tool("Bash", json!({ "command": "printf '\\033[31mred\\033[m\\n'" })),
        Reply::text("# Heading\n\n```rust\nfn main() {}\n```\n\n**bold** and `code`"),
    ]));
    let arguments = ["--allowed-tools", "Bash"];
    let start = Start::new(&sandbox).with(&server).arguments(&arguments);
    let mut screen = start.variable("NO_COLOR", "1").variable("COLORTERM", "truecolor").run();
    screen.until_idle().send("show").send(ENTER).until("bold and code").until_idle();
    let text = String::from_utf8_lossy(&screen.bytes()).into_owned();
    for styles in
        text.split("\u{1b}[").skip(1).filter_map(|rest| rest.split_once('m').map(|(codes, _)| codes))
    {
        let is_style = styles.chars().all(|sign| sign.is_ascii_digit() || sign == ';');
        let colored = styles.split(';').filter_map(|code| code.parse::<u8>().ok()).any(|code| code >= 30);
        assert!(!is_style || !colored, "{styles:?} is a colour");
    }
}
