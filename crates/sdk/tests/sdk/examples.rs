//! Every example runs without a key and does what its page says.

#![expect(dead_code, reason = "the examples' own main functions are for them as programs")]

use crate::support::{Place, within};

#[path = "../../examples/chat.rs"]
mod chat;
#[path = "../../examples/custom_tools.rs"]
mod custom_tools;
#[path = "../../examples/hooks.rs"]
mod hooks;
#[path = "../../examples/model_policy.rs"]
mod model_policy;
#[path = "../../examples/multi_turn.rs"]
mod multi_turn;
#[path = "../../examples/permissions.rs"]
mod permissions;
#[path = "../../examples/quickstart.rs"]
mod quickstart;
#[path = "../../examples/sessions.rs"]
mod sessions;
#[path = "../../examples/streaming.rs"]
mod streaming;

#[tokio::test]
async fn quickstart_answers() {
    let place = Place::new();
    assert!(!within(quickstart::run(place.options().model("offline"))).await.unwrap().is_empty());
}

#[tokio::test]
async fn custom_tools_are_called() {
    let place = Place::new();
    let answer = within(custom_tools::run(place.options())).await.unwrap();
    assert_eq!(answer, "Order O-1001 has been shipped.");
}

#[tokio::test]
async fn permissions_are_denied_by_the_program() {
    let place = Place::new();
    let denied = within(permissions::run(place.options())).await.unwrap();
    assert_eq!(denied, ["\"rm -rf build\""]);
}

#[tokio::test]
async fn hooks_refuse_one_command_and_note_the_other() {
    let place = Place::new();
    let (answer, done) = within(hooks::run(place.options())).await.unwrap();
    assert_eq!(answer, "That is all I could do.");
    assert_eq!(done, ["Bash"]);
}

#[tokio::test]
async fn multi_turn_answers_twice() {
    let place = Place::new();
    assert_eq!(within(multi_turn::run(place.options().model("offline"))).await.unwrap().len(), 2);
}

#[tokio::test]
async fn streaming_shows_the_whole_reply_in_pieces() {
    let place = Place::new();
    let (pieces, whole) = within(streaming::run(place.options().model("offline"))).await.unwrap();
    assert!(!whole.is_empty());
    assert_eq!(pieces, whole);
}

#[tokio::test]
async fn sessions_are_named_and_copied() {
    let place = Place::new();
    let lines = within(sessions::run(place.options().model("offline"), place.sessions())).await.unwrap();
    assert!(lines.iter().any(|line| line.ends_with("A friendly session")), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("4 messages in the copy"));
}

#[tokio::test]
async fn model_policy_is_asked() {
    let place = Place::new();
    assert_eq!(within(model_policy::run(place.options())).await.unwrap(), ["main"]);
}

#[tokio::test]
async fn chat_answers_each_line() {
    let place = Place::new();
    let options = place.playing(&serde_json::json!([{ "text": "one" }, { "text": "two" }]));
    let mut output = Vec::new();
    within(chat::run(options, "Hi.\nAgain.\n\nnever\n".as_bytes(), &mut output)).await.unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "one\ntwo\n");
}
