//! How ImageGen fails: each failure has a code that programs can read, a text that says what to do, and writes nothing.
//! What may pass by itself is tried again, everything else is asked once.

use qoder_testkit::ImageReply;
use serde_json::{Value, json};

use crate::images::support::{PNG, Studio, calling, pixels};

fn cat() -> Value {
    json!({ "prompt": "a cat", "file_path": "cat.png", "size": "16x16" })
}

fn answering(reply: ImageReply) -> Studio {
    Studio::new(calling(vec![("ImageGen", cat())]).images(move |_, _| reply.clone()))
}

fn error(code: &str, message: &str) -> String {
    json!({ "error": { "code": code, "message": message, "type": "invalid_request_error" } }).to_string()
}

#[track_caller]
fn expect(reply: ImageReply, code: &str, asked: usize) -> String {
    let studio = answering(reply);
    let turn = studio.accepting();
    assert_eq!(turn.output()["code"], code, "{:#}", turn.output());
    assert_eq!(studio.painted().len(), asked);
    assert_eq!(studio.file("cat.png"), None);
    assert_eq!(turn.result()["subtype"], "success", "the turn continues");
    studio.failure()
}

#[test]
fn a_refused_prompt_a_quota_and_a_size_are_told_apart_and_asked_once() {
    let http = |status, body: String| ImageReply::HttpError { status, body };
    let text =
        expect(http(400, error("moderation_blocked", "rejected by the safety system")), "image_refused", 1);
    assert!(text.contains("rejected by the safety system") && text.contains("Change the prompt"), "{text}");
    expect(http(400, error("content_policy_violation", "no")), "image_refused", 1);
    expect(http(429, error("insufficient_quota", "You exceeded your current quota")), "image_quota", 1);
    expect(http(402, "pay".to_owned()), "image_quota", 1);
    let size = json!({ "error": { "message": "Invalid value: '16x16'", "param": "size" } }).to_string();
    let text = expect(http(400, size), "image_bad_size", 1);
    assert!(text.contains("Leave `size` out"), "{text}");
    expect(http(401, error("invalid_api_key", "bad key key-of-the-painter")), "image_authentication", 1);
    expect(http(404, error("model_not_found", "no such model")), "image_model_not_found", 1);
}

#[test]
fn no_key_is_in_the_text_of_a_failure() {
    let reply = ImageReply::HttpError { status: 400, body: error("x", "the key key-of-the-painter is odd") };
    let text = expect(reply, "image_invalid_request", 1);
    assert!(!text.contains("key-of-the-painter") && text.contains("***"), "{text}");
}

#[test]
fn an_answer_without_a_picture_is_named_as_that() {
    for body in [
        "<html>login</html>",
        "{}",
        r#"{"data": []}"#,
        r#"{"data": [{"b64_json": "bm8gcGljdHVyZQ=="}]}"#,
        r#"{"data": [{"b64_json": "iVBORw0KGgo="}]}"#,
        r#"{"data": [{"b64_json": "!"}]}"#,
        r#"{"data": [{}]}"#,
    ] {
        expect(ImageReply::Body(body.to_owned()), "image_not_an_image", 1);
    }
}

#[test]
fn one_bad_picture_of_two_writes_nothing() {
    let input = json!({ "prompt": "a cat", "file_path": "cat.png", "count": 2 });
    let studio = Studio::new(calling(vec![("ImageGen", input)]).images(|_, _| {
        ImageReply::Base64(vec![crate::images::support::PIXEL.to_owned(), "bm8gcGljdHVyZQ==".to_owned()])
    }));
    assert_eq!(studio.accepting().output()["code"], "image_not_an_image");
    assert_eq!((studio.file("cat-1.png"), studio.file("cat-2.png")), (None, None));
}

#[test]
fn what_may_pass_by_itself_is_tried_again() {
    for status in [500, 503, 429] {
        let studio =
            Studio::new(calling(vec![("ImageGen", cat())]).images(move |call, number| match number {
                0 | 1 => ImageReply::HttpError { status, body: error("busy", "later") },
                _ => pixels(call),
            }));
        studio.accepting();
        assert!(studio.file("cat.png").unwrap().starts_with(PNG), "{status}");
        assert_eq!(studio.painted().len(), 3);
    }
    let studio = answering(ImageReply::HttpError { status: 500, body: "down".to_owned() });
    studio.settle(&json!({ "general": { "maxAttempts": 3 } }));
    assert_eq!(studio.accepting().output()["code"], "image_server");
    assert_eq!(studio.painted().len(), 3);
}

#[test]
fn input_that_makes_no_sense_is_refused_before_anything_is_paid() {
    for (more, code) in [
        (json!({ "prompt": " " }), "image_invalid_input"),
        (json!({ "count": 0 }), "image_invalid_input"),
        (json!({ "count": 11 }), "image_invalid_input"),
        (json!({ "size": "large" }), "image_bad_size"),
        (json!({ "size": "0x100" }), "image_bad_size"),
        (json!({ "image_path": "none.png" }), "file_not_found"),
    ] {
        let mut input = cat();
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let studio = Studio::drawing(input);
        assert_eq!(studio.accepting().output()["code"], code, "{more}");
        assert!(studio.painted().is_empty(), "{more}");
    }
}

#[test]
fn an_image_model_that_nobody_has_is_an_error_of_the_settings() {
    for (name, words) in [("nowhere/x", "no provider `nowhere`"), ("scripted:/none.json", "/none.json")] {
        let studio = Studio::drawing(cat());
        studio.settle(&json!({ "model": { "image": name } }));
        let turn = studio.accepting();
        assert_ne!(turn.code, 0);
        assert!(turn.stderr.contains(words), "{}", turn.stderr);
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": "note/cat.png" }));
    studio.sandbox.write("note", "a file, not a folder");
    let turn = studio.accepting();
    assert!(turn.output()["error"].as_str().unwrap().contains("note"), "{}", turn.output());
    assert_eq!(studio.file("note").unwrap(), b"a file, not a folder");
}
