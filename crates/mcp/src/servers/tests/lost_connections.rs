//! Connections that end: reached again, started again, given up, or reported; a call that was never sent is repeated.

use super::*;

#[tokio::test]
async fn a_remote_server_that_drops_is_reached_again() {
    let peer = Scripted::new(&[Does::Connect, Does::Fail("refused"), Does::Fail("refused"), Does::Connect]);
    let servers = servers(vec![(http("kb"), Arc::clone(&peer))]);
    servers.connect().await;
    let heard = listen(&servers);
    peer.report(PeerEvent::Closed("reset".to_owned()));
    // A call waits for it, and the tools stay meanwhile.
    servers.inner.until(|all| all["kb"].status == ServerStatus::Connecting).await;
    assert_eq!(servers.tools().len(), 1);
    let result = servers.call("mcp__kb__find", json!({}), never()).await.unwrap();
    assert_eq!(result.content[0]["text"], "found");
    assert_eq!(peer.connects.load(Ordering::Relaxed), 4);
    assert_eq!(heard.lock().unwrap().last().unwrap(), "kb connected");
}

#[tokio::test]
async fn a_remote_server_that_stays_away_is_given_up() {
    let peer = Scripted::new(&[Does::Connect, Does::Fail("refused")]);
    let servers = servers(vec![(http("kb"), Arc::clone(&peer))]);
    servers.connect().await;
    peer.report(PeerEvent::Closed("reset".to_owned()));
    servers.inner.until(|all| all["kb"].status == ServerStatus::Failed).await;
    let error = servers.rows()[0]["error"].as_str().unwrap().to_owned();
    assert_eq!(error, "refused (given up after 8 attempts to reconnect)");
    assert!(servers.tools().is_empty());
}

#[tokio::test]
async fn a_process_that_died_is_started_once_more_by_the_next_call() {
    let peer = Scripted::new(&[Does::Connect, Does::Connect, Does::Fail("gone for good")]);
    let servers = servers(vec![(stdio("kb"), Arc::clone(&peer))]);
    servers.connect().await;
    let died = || async {
        peer.report(PeerEvent::Closed("exited with 1: out of memory".to_owned()));
        servers.inner.until(|all| all["kb"].status == ServerStatus::Failed).await;
    };
    died().await;
    assert_eq!(servers.rows()[0]["error"], "exited with 1: out of memory");
    servers.call("mcp__kb__find", json!({}), never()).await.unwrap();
    assert_eq!(servers.rows()[0]["status"], "connected");
    died().await;
    let problem = servers.call("mcp__kb__find", json!({}), never()).await.unwrap_err().to_string();
    assert_eq!(problem, "the server `kb` cannot be used: gone for good");
    assert!(servers.tools().is_empty());
}

#[tokio::test]
async fn a_call_that_was_never_sent_goes_to_the_next_connection() {
    let peer = Scripted::new(&[Does::Connect, Does::Connect]);
    *peer.tools.lock().unwrap() = vec!["gone"];
    let servers = Arc::new(servers(vec![(stdio("kb"), Arc::clone(&peer))]));
    servers.connect().await;
    let calling = tokio::spawn({
        let servers = Arc::clone(&servers);
        async move { servers.call("mcp__kb__gone", json!({}), never()).await }
    });
    // The call finds the connection dead before its keeper does.
    while peer.calls.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    peer.report(PeerEvent::Closed("exited with 1".to_owned()));
    let result = calling.await.unwrap().unwrap();
    assert_eq!(result.content[0]["text"], "found");
    assert_eq!((peer.connects.load(Ordering::Relaxed), peer.calls.load(Ordering::Relaxed)), (2, 2));
}

#[tokio::test]
async fn a_connection_that_ends_during_a_call_is_told_as_what_it_is() {
    let peer = Scripted::new(&[Does::Connect]);
    *peer.tools.lock().unwrap() = vec!["drop"];
    let servers = servers(vec![(stdio("kb"), peer)]);
    servers.connect().await;
    let problem = servers.call("mcp__kb__drop", json!({}), never()).await.unwrap_err().to_string();
    assert!(problem.contains("ended during the call") && problem.contains("may or may not"), "{problem}");
    servers.close().await;
    assert!(servers.call("mcp__kb__drop", json!({}), never()).await.is_err());
}
