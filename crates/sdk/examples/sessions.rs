//! Sessions outlive the program: one is started, listed, named, gone on with by its id and copied.

use futures::StreamExt;
use qoder_agent_sdk::{
    Error, QoderAgentOptions, SessionPlace, fork_session, get_session_messages, list_sessions, query,
    rename_session,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let here = SessionPlace::of(".");
    for line in run(QoderAgentOptions::new(), here).await? {
        println!("{line}");
    }
    Ok(())
}

/// Starts, names, resumes and copies a session; returns what a list shows.
pub async fn run(options: QoderAgentOptions, place: SessionPlace) -> Result<Vec<String>, Error> {
    let id = ask("Say hello.", options.clone()).await?;
    rename_session(&id, "A friendly session", &place)?;
    let again = ask("Say it again.", options.resume(&id)).await?;
    assert_eq!(id, again, "the same session continues");
    let copy = fork_session(&id, None, Some("The copy"), &place)?;
    let mut lines: Vec<String> = list_sessions(&place)?
        .iter()
        .map(|session| format!("{}  {}", session.session_id, session.summary))
        .collect();
    lines.push(format!("{} messages in the copy", get_session_messages(&copy, &place)?.len()));
    Ok(lines)
}

async fn ask(prompt: &str, options: QoderAgentOptions) -> Result<String, Error> {
    let mut id = String::new();
    let mut messages = query(prompt, options)?;
    while let Some(message) = messages.next().await {
        if let Some(result) = message?.as_result() {
            id.clone_from(&result.session_id);
        }
    }
    // The log is closed when this returns, so that it can be gone on with at once.
    messages.close().await;
    Ok(id)
}
