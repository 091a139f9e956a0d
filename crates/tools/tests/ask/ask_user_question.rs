//! AskUserQuestion: both shapes of the input, the answers that come back with the approval, and no one to answer.

use crate::common::{Bench, text};
use serde_json::{Value, json};

fn question(text: &str, labels: &[&str]) -> Value {
    let options: Vec<Value> =
        labels.iter().map(|label| json!({ "label": label, "description": "d" })).collect();
    json!({ "question": text, "header": "A header that is long", "options": options, "multiSelect": false })
}

#[tokio::test]
async fn answers_come_back_with_the_questions() {
    let bench = Bench::new();
    let input = json!({
        "questions": [question("Which one?", &["A", "B"]), question("Which more?", &["C", "D", "E"])],
        "answers": { "Which one?": "A", "Which more?": "C, E", "Something else?": "x" },
    });
    let outcome = bench.run("AskUserQuestion", input).await;
    let expected = json!({ "Which one?": "A", "Which more?": "C, E" });
    assert_eq!(outcome.structured["answers"], expected, "{}", text(&outcome));
    assert_eq!(outcome.structured["questions"][0]["header"], "A header tha");
    assert_eq!(outcome.structured["questions"][1]["options"][2]["label"], "E");
    assert_eq!(outcome.structured["questions"][1]["multiSelect"], false);
    assert!(outcome.structured.get("answer").is_none());
    assert!(text(&outcome).contains("Which more? → C, E"), "{}", text(&outcome));
}

#[tokio::test]
async fn the_simple_shape_has_one_answer() {
    let bench = Bench::new();
    let input = json!({
        "question": "Name?", "options": ["x"], "default": "y", "answers": { "Name?": "in own words" },
    });
    let outcome = bench.run("AskUserQuestion", input).await;
    assert_eq!(outcome.structured["answer"], "in own words", "{}", text(&outcome));
    let labels: Vec<&Value> = outcome.structured["questions"][0]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| &option["label"])
        .collect();
    assert_eq!(labels, ["y", "x"]);
}

#[tokio::test]
async fn lists_and_replies_in_own_words_are_taken() {
    let bench = Bench::new();
    let input = json!({ "questions": [question("Q?", &["A", "B"])], "answers": { "Q?": ["A", "B"] } });
    assert_eq!(bench.run("AskUserQuestion", input).await.structured["answers"]["Q?"], "A, B");
    let input = json!({ "questions": [question("Q?", &["A", "B"])], "response": "Do neither." });
    let outcome = bench.run("AskUserQuestion", input).await;
    assert!(
        text(&outcome).contains("(no answer)") && text(&outcome).contains("Do neither."),
        "{}",
        text(&outcome)
    );
    assert_eq!(outcome.structured["response"], "Do neither.");
}

#[tokio::test]
async fn without_an_answer_it_fails() {
    let bench = Bench::new();
    for answers in [json!({}), json!({ "Q?": "" }), json!({ "Q?": null }), json!({ "Other?": "x" })] {
        let input = json!({ "questions": [question("Q?", &["A", "B"])], "answers": answers });
        assert!(bench.fail("AskUserQuestion", input).await.contains("Nobody answered"));
    }
    let input = json!({ "questions": [question("Q?", &["A", "B"])] });
    assert!(bench.fail("AskUserQuestion", input).await.contains("Nobody answered"));
}

#[tokio::test]
async fn questions_that_cannot_be_asked_are_refused() {
    let bench = Bench::new();
    let many: Vec<Value> = (0..5).map(|number| question(&format!("{number}?"), &["A", "B"])).collect();
    for (input, expected) in [
        (json!({ "questions": [] }), "one to four"),
        (json!({ "questions": many }), "one to four"),
        (json!({ "questions": [question("Q?", &["A"])] }), "two to four"),
        (json!({ "questions": [question("Q?", &["A", "B", "C", "D", "E"])] }), "two to four"),
        (json!({ "questions": [question("Q?", &["A", "A"])] }), "occurs twice"),
        (json!({ "questions": [question("Q?", &["A", " "])] }), "no label"),
        (json!({ "questions": [question(" ", &["A", "B"])] }), "is empty"),
        (json!({ "questions": [question("Q?", &["A", "B"]), question("Q?", &["A", "B"])] }), "occurs twice"),
        (json!({ "questions": [question("Q?", &["A", "B"])], "question": "R?" }), "not both"),
    ] {
        let text = bench.fail("AskUserQuestion", input.clone()).await;
        assert!(text.contains(expected), "{input}: {text}");
    }
}
