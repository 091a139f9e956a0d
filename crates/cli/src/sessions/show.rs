//! `qodercli sessions show`: a session's timeline, drawn for people or as data. Turns are written as they are read; what
//! the session came to is at the end.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::draw::Drawing;
use super::page::Page;
use super::timeline::{Ended, Reading, TurnLine};
use super::{locate, newest};
use crate::exit::{Exit, Fault};
use crate::screen::{Document, Ink};
use crate::sessions::arguments::ShowArguments;

/// Shows a session.
pub fn run(arguments: &ShowArguments, environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    let (id, paths) = match &arguments.id {
        Some(id) => locate(environment, id)?,
        None => newest(environment)?,
    };
    let page = Page::of_stdout(environment, arguments.full);
    let mut out = Document::new();
    let reading = Reading::new(arguments.full, arguments.turn);
    let mut shown = 0_u64;
    let ended = if arguments.json {
        let head = json!({ "sessionId": id, "log": paths.log });
        let head = head.to_string();
        out.write_json(&format!("{},\"turns\":[", head.trim_end_matches('}'))).map_err(closed)?;
        let ended = reading.follow(&paths, |turn, _| {
            let comma = if shown > 0 { ",\n" } else { "\n" };
            shown += 1;
            let text = serde_json::to_string(&turn).map_err(io::Error::from).map_err(closed)?;
            out.write_json(&format!("{comma}{text}")).map_err(closed)
        })?;
        finish_data(&mut out, &ended).map_err(closed)?;
        ended
    } else {
        out.write_row(&format!("session {id}")).map_err(closed)?;
        out.write_row(&format!("log     {}", paths.log.display())).map_err(closed)?;
        let mut place = String::new();
        let ended = reading.follow(&paths, |turn: TurnLine, tracker| {
            if shown == 0 {
                place.clone_from(&tracker.cwd);
                out.write_row(&format!("cwd     {}", tracker.cwd)).map_err(closed)?;
            }
            shown += 1;
            Drawing { page, out: &mut out }.turn(&turn).map_err(closed)
        })?;
        if shown == 0 {
            out.write_row(&format!("cwd     {}", ended.tracker.cwd)).map_err(closed)?;
        }
        finish_page(&mut out, page, &ended).map_err(closed)?;
        ended
    };
    out.flush().map_err(closed)?;
    match arguments.turn {
        Some(turn) if shown == 0 => Err(Fault::input(
            format!("there is no turn {turn}"),
            format!("the session has {} turns", ended.tracker.totals.turns),
        )),
        _ => Ok(Exit::Success),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands errors over by value")]
fn closed(error: io::Error) -> Fault {
    Fault::output(&error)
}

fn finish_page(out: &mut Document, page: Page, ended: &Ended) -> io::Result<()> {
    let mut drawing = Drawing { page, out };
    for agent in &ended.others {
        drawing.others(agent)?;
    }
    if let Some(damage) = &ended.damage {
        drawing.out.write_line(&page.ink(Ink::Plain, "\n! ").plain(damage))?;
    }
    drawing.totals(&ended.tracker)
}

fn finish_data(out: &mut Document, ended: &Ended) -> io::Result<()> {
    let tracker = &ended.tracker;
    let rest: Value = json!({
        "agentsWithoutResult": ended.others, "damage": ended.damage, "records": tracker.records, "cwd": tracker.cwd,
        "prompts": tracker.totals.turns, "unfinished": tracker.is_unfinished(),
        "totalCostUsd": tracker.totals.cost_usd, "modelUsage": tracker.totals.by_model,
        "contextTokens": tracker.context_tokens, "epoch": (tracker.epoch > 0).then_some(tracker.epoch),
        "totals": tracker.totals,
    });
    out.write_json(&format!("\n],{}\n", rest.to_string().trim_start_matches('{')))
}
