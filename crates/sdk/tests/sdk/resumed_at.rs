//! Going on from an earlier message, with the engine in process: the session forgets what came after it.

use futures::StreamExt;
use qoder_agent_sdk::query;
use qoder_testkit::{Reply, Script, ScriptedServer};

use crate::support::{Place, all, result, within};

const ID: &str = "123e4567-e89b-42d3-a456-426614174000";

#[tokio::test]
async fn what_came_after_is_left_out() {
    let place = Place::new();
    let server = ScriptedServer::start(Script::by(|_, number| Reply::text(format!("answer {number}"))));
    let new = || {
        let keyed = place.options().env("ANTHROPIC_API_KEY", "key-of-the-test");
        keyed.env("ANTHROPIC_BASE_URL", server.base_url()).model("m")
    };
    let first = all(query("one", new().session_id(ID)).unwrap()).await;
    let at = first.iter().find_map(|message| message.as_assistant()?.uuid.clone()).unwrap();
    all(query("two", new().resume(ID)).unwrap()).await;
    let other = all(query("other", new().resume(ID).resume_session_at(&at)).unwrap()).await;
    assert_eq!(result(&other).text(), "answer 2");
    let sent = server.requests().last().unwrap().json()["messages"].to_string();
    assert!(sent.contains("one") && sent.contains("other") && !sent.contains("two"), "{sent}");
    all(query("three", new().resume(ID)).unwrap()).await;
    let sent = server.requests().last().unwrap().json()["messages"].to_string();
    assert!(sent.contains("other") && !sent.contains("two"), "{sent}");
    let refused = new().resume(ID).resume_session_at(&at).resume_drops_turn(ID);
    let error = within(query("four", refused).unwrap().next()).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("Resume rejected by --resume-drops-turn:"), "{error}");
    assert_eq!(error.code(), "session_drops_more");
}
