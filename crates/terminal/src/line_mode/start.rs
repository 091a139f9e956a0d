//! What is asked before there is a session: whether the folder is trusted, which session to resume, and what to do with one that
//! another process drives. Choices have numbers; what was typed before a question could be read is no answer to it.

use std::time::Instant;

use tokio::sync::mpsc;

use super::dialog;
use super::print::Printer;
use crate::front::{Front, Open, OpenFailure, Opened};
use crate::text::{one_line, plain_lines};

/// Lines that are typed, with the times at which they were complete.
type Lines = mpsc::UnboundedReceiver<(Instant, String)>;

/// Asks for a number up to this one; none when the terminal is gone. `default` is what an empty line means.
async fn choose(
    most: usize,
    default: Option<usize>,
    printer: &mut Printer,
    lines: &mut Lines,
) -> Option<usize> {
    let asked = Instant::now();
    loop {
        printer.prompt("answer: ");
        let (at, line) = lines.recv().await?;
        printer.line_was_typed();
        if at < asked + dialog::TOO_SOON {
            continue;
        }
        match (line.trim(), line.trim().parse::<usize>(), default) {
            ("", _, Some(default)) => return Some(default),
            (_, Ok(number), _) if (1..=most).contains(&number) => return Some(number),
            _ => printer.line(&format!("Type a number from 1 to {most}.")),
        }
    }
}

/// Asks about a folder that has something to offer. Only a clear yes is one.
pub(super) async fn ask_trust(front: &mut Front, printer: &mut Printer, lines: &mut Lines) {
    let Some(facts) = front.machine.trust_question() else { return };
    printer.bell();
    printer.line(&format!("trust required: {}", one_line(&facts.folder)));
    printer.line("  Its files would count from now on. They can run programs on your machine:");
    for line in facts.enables.iter().flat_map(|line| plain_lines(line)) {
        printer.line(&format!("  {line}"));
    }
    printer.line("1. No, work without them");
    printer.line("2. Yes, I trust this folder");
    match choose(2, Some(1), printer, lines).await {
        Some(2) => match front.machine.trust().await {
            Ok(settings) => front.settings = settings,
            Err(error) => printer.line(&format!("error: {}", one_line(&error.to_string()))),
        },
        Some(_) => front.machine.refuse_trust(),
        None => {}
    }
}

/// Asks which session to resume.
pub(super) async fn choose_session(front: &Front, printer: &mut Printer, lines: &mut Lines) -> Open {
    let sessions = front.machine.sessions().await;
    if sessions.is_empty() {
        printer.line("notice: there is no earlier session in this folder; this is a new one.");
        return Open::New;
    }
    printer.line("sessions, newest first:");
    for (at, session) in sessions.iter().enumerate() {
        let title = session.title.as_deref().unwrap_or(&session.first_prompt);
        printer.line(&format!("{}. {} ({})", at + 1, one_line(title), session.id));
    }
    printer.line(&format!("{}. a new session", sessions.len() + 1));
    let number = choose(sessions.len() + 1, None, printer, lines).await.unwrap_or(usize::MAX);
    sessions.get(number - 1).map_or(Open::New, |session| Open::Resume(session.id.clone()))
}

/// Opens a session. For one that another process drives it is asked what to do.
pub(super) async fn open(
    front: &Front,
    what: Open,
    printer: &mut Printer,
    lines: &mut Lines,
) -> Result<Opened, OpenFailure> {
    let failure = match front.machine.open(what).await {
        Err(failure) if failure.driven_elsewhere.is_some() => failure,
        opened => return opened,
    };
    let id = failure.driven_elsewhere.clone().unwrap_or_default();
    printer.bell();
    printer.line(&format!("notice: {}", one_line(&failure.message)));
    printer.line("1. Attach to it: what you type goes to the process that drives it");
    printer.line("2. Work on a copy of it");
    printer.line("3. Leave");
    match choose(3, None, printer, lines).await {
        Some(1) => front.machine.open(Open::Attach(id)).await,
        Some(2) => front.machine.open(Open::Fork(id)).await,
        Some(_) | None => Err(OpenFailure { driven_elsewhere: None, ..failure }),
    }
}
