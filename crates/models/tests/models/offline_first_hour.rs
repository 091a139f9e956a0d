//! What people ask the offline model first: which calls it makes for that and what it says. Sentences that are about more
//! than it understands are left to the other rules.

use qoder_models::{ModelOptions, resolve};
use qoder_types::ContentBlock;
use serde_json::{Value, json};

use crate::support::{ask, request, tool, user};

/// The first calls for a sentence, as tool and input; the text where there are none.
async fn first(prompt: &str) -> Result<Vec<(String, Value)>, String> {
    let model = resolve(&ModelOptions { model: Some("offline".into()), ..ModelOptions::default() }).unwrap();
    let mut asked = request(vec![user(prompt)]);
    asked.tools = ["Read", "Grep", "Glob", "Bash"].map(|name| tool(name, &[])).to_vec().into();
    let told = ask(&model, asked).await;
    let mut calls = Vec::new();
    for block in &told.reply().content {
        match block {
            ContentBlock::ToolUse { name, input, .. } => calls.push((name.clone(), input.clone())),
            ContentBlock::Text { text } => return Err(text.clone()),
            other => panic!("{other:?}"),
        }
    }
    Ok(calls)
}

#[tokio::test]
async fn a_greeting_is_answered_in_two_lines() {
    for prompt in ["hello", "Hi!", "Hello there.", "good morning", "hey, qodercli"] {
        let text = first(prompt).await.unwrap_err();
        assert!(text.starts_with("Hello.") && text.lines().count() == 2, "{prompt}: {text}");
    }
    let calls = first("hello, show me README.md").await.unwrap();
    assert_eq!(calls, [("Read".to_owned(), json!({ "file_path": "README.md" }))]);
}

#[tokio::test]
async fn questions_about_a_file_read_that_file() {
    for prompt in
        ["summarize README.md", "please summarise the file README.md", "give me a summary of README.md"]
    {
        let calls = first(prompt).await.unwrap();
        assert_eq!(calls, [("Read".to_owned(), json!({ "file_path": "README.md" }))], "{prompt}");
    }
    for prompt in [
        "list the functions in src/main.rs",
        "show me all functions of src/main.rs",
        "which functions are there in src/main.rs?",
        "what functions are defined in src/main.rs",
    ] {
        let calls = first(prompt).await.unwrap();
        assert_eq!((calls[0].0.as_str(), &calls[0].1["path"]), ("Grep", &json!("src/main.rs")), "{prompt}");
    }
}

#[tokio::test]
async fn questions_about_the_project_look_at_its_files_and_ask_git() {
    for prompt in ["how do I run the tests", "How can I run the unit tests here?", "how to test this project"]
    {
        let calls = first(prompt).await.unwrap();
        assert_eq!(calls, [("Glob".to_owned(), json!({ "pattern": "*" }))], "{prompt}");
    }
    for prompt in [
        "what changed recently",
        "show me the recent changes",
        "what's new in this repo?",
        "list the latest commits",
    ] {
        let calls = first(prompt).await.unwrap();
        assert_eq!(
            (calls[0].0.as_str(), &calls[0].1["command"]),
            ("Bash", &json!("git log --oneline -n 10")),
            "{prompt}"
        );
    }
}
