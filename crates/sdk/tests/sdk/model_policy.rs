//! The model that the program chooses before each call: its answer is final, and a bad or late one ends the turn.

use std::sync::{Arc, Mutex};

use futures::StreamExt;
use qoder_agent_sdk::{Message, ModelPolicyContext, ModelPolicyResult, QoderAgentOptions, query};
use serde_json::json;

use crate::support::{Place, all, call_then_done, result, within};

#[tokio::test]
async fn the_chosen_model_answers_each_call() {
    let place = Place::new();
    let chosen = place.playbook(&call_then_done("Glob", &json!({ "pattern": "*" })));
    let asked: Arc<Mutex<Vec<ModelPolicyContext>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let options = place.options().model("offline").resolve_model(move |context| {
        seen.lock().unwrap().push(context);
        let chosen = chosen.clone();
        async move { ModelPolicyResult::model(chosen) }
    });
    let messages = all(query("Go.", options).unwrap()).await;
    assert_eq!(result(&messages).text(), "done");
    let asked = asked.lock().unwrap();
    let turns: Vec<(&str, u64)> = asked.iter().map(|each| (each.purpose.as_str(), each.turn_index)).collect();
    assert_eq!(turns, [("main", 0), ("main", 1)]);
    assert_eq!(asked[0].session_id, result(&messages).session_id);
}

#[tokio::test]
async fn an_error_and_an_empty_model_end_the_turn() {
    let place = Place::new();
    let options = place.options().model("offline");
    let failing =
        options.clone().resolve_model(|_| async { Err::<ModelPolicyResult, _>("the router is down") });
    let messages = all(query("Go.", failing).unwrap()).await;
    assert!(result(&messages).is_error);
    assert!(result(&messages).errors[0].contains("the router is down"), "{messages:#?}");
    let empty = options.resolve_model(|_| async { ModelPolicyResult::model("") });
    let messages = all(query("Go.", empty).unwrap()).await;
    assert!(result(&messages).errors[0].contains("empty model"), "{messages:#?}");
}

#[tokio::test]
async fn a_late_answer_is_an_error_of_the_stream() {
    let place = Place::new();
    let options = place.options().model("offline").resolve_model_timeout_ms(1).resolve_model(|_| async {
        std::future::pending::<()>().await;
        ModelPolicyResult::model("offline")
    });
    late(options).await;
}

#[tokio::test]
async fn an_answer_that_blocked_its_thread_past_the_time_is_late() {
    let place = Place::new();
    let options = place.options().model("offline").resolve_model_timeout_ms(20).resolve_model(|_| async {
        std::thread::sleep(std::time::Duration::from_millis(60));
        ModelPolicyResult::model("offline")
    });
    late(options).await;
}

async fn late(options: QoderAgentOptions) {
    let items: Vec<_> = within(query("Go.", options).unwrap().collect()).await;
    let errors: Vec<String> =
        items.iter().filter_map(|item| item.as_ref().err()).map(|error| error.code().to_owned()).collect();
    assert_eq!(errors, ["model_policy_timeout"]);
    let failed = items.iter().flatten().filter_map(Message::as_result).any(|result| result.is_error);
    assert!(failed, "the turn ends with an error result too");
}
