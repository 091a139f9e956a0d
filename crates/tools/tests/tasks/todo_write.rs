//! TodoWrite: the list comes back whole, with an id for every item.
//!
//! Ids that were given stay, the others are numbered around them.

use crate::common::{Bench, text};
use serde_json::json;

#[tokio::test]
async fn ids_are_filled_in_and_counts_are_told() {
    let bench = Bench::new();
    let input = json!({ "todos": [
        { "content": "a", "status": "completed", "id": "1" },
        { "content": "b", "status": "in_progress", "priority": "high" },
        { "content": "c", "status": "pending", "id": "1" },
    ] });
    let outcome = bench.run("TodoWrite", input).await;
    assert!(text(&outcome).contains("3 items: 1 completed, 1 in progress, 1 pending"));
    assert_eq!(outcome.structured["success"], true);
    let ids: Vec<&str> = outcome.structured["todos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["1", "2", "3"]);
    assert_eq!(outcome.structured["todos"][1]["priority"], "high");
}

#[tokio::test]
async fn an_item_without_content_is_refused() {
    let bench = Bench::new();
    let input = json!({ "todos": [{ "content": " ", "status": "pending" }] });
    assert!(bench.fail("TodoWrite", input).await.contains("todos[0].content"));
    assert!(bench.succeed("TodoWrite", json!({ "todos": [] })).await.contains("0 items"));
}

#[tokio::test]
async fn numbers_as_ids_and_the_active_form_are_taken() {
    let bench = Bench::new();
    let input = json!({ "todos": [
        { "content": "a", "status": "completed", "id": 7, "activeForm": "Doing a" },
        { "content": "b", "status": "pending", "id": "7" },
    ] });
    let outcome = bench.run("TodoWrite", input).await;
    let expected = json!([
        { "id": "7", "content": "a", "status": "completed", "activeForm": "Doing a" },
        { "id": "1", "content": "b", "status": "pending" },
    ]);
    assert_eq!(outcome.structured["todos"], expected);
    assert!(text(&outcome).contains("Mark the next item in progress"), "{}", text(&outcome));
}
