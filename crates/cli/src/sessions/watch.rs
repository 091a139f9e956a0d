//! `qodercli sessions watch`: the messages of a session, from its log, while another process writes it. The same messages
//! that the front of that process shows, as text or as JSON lines.

use std::collections::BTreeMap;
use std::time::Duration;

use qoder_protocol::Projector;
use qoder_runtime::events::Event;
use qoder_runtime::layout::SessionPaths;
use qoder_store::follow::Follow;
use qoder_store::lease;
use qoder_store::line::Line;
use qoder_types::record::{RecordBody, UserOrigin};

use super::locate;
use crate::command_line::arguments::OutputFormat;
use crate::exit::{Exit, Fault};
use crate::run::host::{self, View};
use crate::screen::print_note;
use crate::sessions::arguments::WatchArguments;

/// How often it is looked whether the session is still driven.
const GLANCE: Duration = Duration::from_millis(200);

/// Follows a session while a process drives it.
pub fn run(arguments: &WatchArguments, environment: &BTreeMap<String, String>) -> Result<Exit, Fault> {
    let (id, paths) = locate(environment, &arguments.id)?;
    let format = arguments.output_format.unwrap_or(OutputFormat::Text);
    if format == OutputFormat::Json {
        return Err(Fault::input(
            "`--output-format json` has one result; a watch has many messages",
            "use stream-json",
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault { exit: Exit::General, message: error.to_string(), hint: String::new() })?;
    runtime.block_on(follow(&id, &paths, arguments, format))
}

async fn follow(
    id: &str,
    paths: &SessionPaths,
    arguments: &WatchArguments,
    format: OutputFormat,
) -> Result<Exit, Fault> {
    let sink =
        host::make(View { format, partial: false, verbose: true, hook_events: false, last_result: false });
    let mut projector = Projector::new(id);
    projector.replays_prompts = true;
    let mut log = Follow::open(paths, arguments.after)?;
    loop {
        // A look at the lease before the end of the log: what its holder wrote last is read after it is gone.
        let driven = lease::holder(paths).is_some();
        let line = match tokio::time::timeout(GLANCE, log.next()).await {
            Ok(line) => line?,
            Err(_) if driven || arguments.follow => continue,
            Err(_) => {
                print_note(&format!("no process drives session {id}; `--follow` waits for one"));
                return Ok(Exit::Success);
            }
        };
        match line {
            None => {
                return Err(Fault {
                    exit: Exit::Session,
                    message: format!("session {id} was deleted"),
                    hint: String::new(),
                });
            }
            Some(Line::Record(record)) => {
                if let RecordBody::User(entry) = &record.body
                    && entry.origin == UserOrigin::Prompt
                    && format == OutputFormat::Text
                {
                    print_note(&format!("> {}", entry.message.content.to_text()));
                }
                if let RecordBody::Asked(asked) = &record.body {
                    print_note(&format!(
                        "{} waits for an answer: {}. Answer with `qodercli permissions answer {id} {} allow|deny`",
                        asked.tool_name, asked.decision.reason, asked.tool_use_id
                    ));
                }
                if let Some(message) = projector.project(&record) {
                    sink.take(Event::Message(&message)).map_err(|error| Fault::output(&error))?;
                }
            }
            Some(Line::Foreign(_)) => {}
        }
    }
}
