//! Servers that do not come up: the error says what happened and what they wrote.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use qoder_mcp::PeerError;
use qoder_types::server::NamedServer;

use crate::hostile::scripted;
use crate::hostile::support::{Tested, child, context, soon, until};

async fn problem(server: &NamedServer) -> String {
    let mut context = context(Arc::default());
    context.limits.start_up = Duration::from_secs(20);
    failed(Tested::new(server, &context).connect().await.unwrap_err())
}

fn failed(error: PeerError) -> String {
    match error {
        PeerError::Failed(text) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_that_is_not_there() {
    assert_eq!(problem(&child("no-such-program", &[])).await, "`no-such-program` was not found in PATH");
    assert_eq!(problem(&child("/no/such/program", &[])).await, "`/no/such/program` was not found");
    assert_eq!(problem(&child("", &[])).await, "the command is empty");
}

#[tokio::test]
async fn a_program_that_cannot_be_executed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server");
    std::fs::write(&path, "text").unwrap();
    let text = path.to_str().unwrap();
    assert_eq!(problem(&child(text, &[])).await, format!("{text} is not executable"));
    std::fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let problem = problem(&child(text, &[])).await;
    assert!(problem.contains("the interpreter that it names does not exist"), "{problem}");
}

#[tokio::test]
async fn a_folder_that_is_not_there() {
    let mut server = child("sh", &[]);
    if let qoder_types::server::Transport::Stdio { cwd, .. } = &mut server.config.transport {
        *cwd = Some("/no/such/folder".into());
    }
    let problem = problem(&server).await;
    assert_eq!(problem, "`sh` cannot be started: the folder /no/such/folder does not exist");
}

#[tokio::test]
async fn a_process_that_ends_at_once() {
    let problem = problem(&scripted("exit")).await;
    let expected = "the server's process ended with exit code 7; its error stream ends with:\nno licence";
    assert_eq!(problem, expected);
}

#[tokio::test]
async fn a_process_that_says_nothing() {
    let mut context = context(Arc::default());
    context.limits.start_up = Duration::from_secs(5);
    let problem = failed(Tested::new(&scripted("silent"), &context).connect().await.unwrap_err());
    assert!(problem.starts_with("the server did not get ready within 5 s"), "{problem}");
    assert!(problem.ends_with("waiting for something"), "{problem}");
}

#[tokio::test]
async fn a_process_that_prints_something_else() {
    let problem = problem(&scripted("nonsense")).await;
    assert!(problem.contains("lines that are no messages of the protocol"), "{problem}");
    assert!(problem.contains("it printed `all work and no play`"), "{problem}");
}

#[tokio::test]
async fn a_message_that_does_not_end() {
    let problem = problem(&scripted("flood")).await;
    assert!(problem.starts_with("the server sent a message of more than 8 MiB"), "{problem}");
}

#[tokio::test]
async fn a_revision_that_nobody_knows() {
    let problem = problem(&scripted("old")).await;
    assert!(problem.contains("speaks revision `1999-01-01`"), "{problem}");
}

#[tokio::test]
async fn a_handshake_that_goes_wrong() {
    let refused = Tested::plain(&scripted("refuse")).connect().await.unwrap_err();
    assert_eq!(refused, PeerError::Refused { code: -32000, message: "go away".to_owned() });
    let problem = problem(&scripted("stranger")).await;
    assert_eq!(problem, "the server answered the handshake with a wrong id");
}

#[tokio::test]
async fn an_attempt_can_be_given_up() {
    let tested = Tested::plain(&scripted("silent"));
    let attempt = tokio::spawn(tested.peer.connect(Arc::new(|_| {})));
    // Whether it has begun by then does not matter.
    tokio::time::sleep(Duration::from_millis(100)).await;
    tested.close().await;
    let given_up = soon(attempt).await.unwrap().unwrap_err();
    assert_eq!(given_up, PeerError::Closed("the connection was closed".to_owned()));
    // An attempt is given up even when its future is never polled.
    let idle = tested.peer.connect(Arc::new(|_| {}));
    tested.close().await;
    drop(idle);
}

#[tokio::test]
async fn a_later_attempt_wins() {
    let tested = Tested::plain(&scripted("plain"));
    let first = tokio::spawn(tested.peer.connect(Arc::new(|_| {})));
    tokio::task::yield_now().await;
    tested.connect().await.unwrap();
    until(|| first.is_finished()).await;
    assert_eq!(tested.said("echo", serde_json::json!({ "text": "x" })).await, "x");
}
