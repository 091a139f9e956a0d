//! Pictures are made, changed and replaced: what the endpoint is asked, what is written and shown, what it costs.

use qoder_testkit::{ImageCall, ImageReply};
use serde_json::json;

use crate::images::support::{PAINTER, PIXEL, PNG, Studio, calling, pixels};

#[test]
fn without_an_image_model_there_is_no_tool() {
    let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": "cat.png" }));
    studio.settle(&json!({ "model": { "image": "" } }));
    let turn = studio.accepting();
    assert!(!turn.offers("ImageGen"));
    let first = studio.server.requests()[0].json();
    assert!(!first["tools"].to_string().contains("ImageGen"), "{:#}", first["tools"]);
    assert!(studio.failure().contains("ImageGen"), "{}", studio.failure());
    assert!(studio.painted().is_empty());
}

#[test]
fn pictures_are_written_shown_and_paid_for() {
    let input = json!({ "prompt": "a cat", "file_path": "art/cat.png", "count": 2, "size": "512x512", "quality": "high" });
    let studio = Studio::drawing(input);
    let turn = studio.accepting();
    assert!(turn.offers("ImageGen"), "{}", turn.stderr);
    assert_eq!(turn.result()["result"], "done");

    let asked = studio.painted();
    assert_eq!((asked.len(), asked[0].path.as_str()), (1, "/v1/images/generations"));
    assert_eq!(
        asked[0].json(),
        json!({ "model": PAINTER, "prompt": "a cat", "n": 2, "size": "512x512", "quality": "high",
            "response_format": "b64_json" })
    );
    assert_eq!(asked[0].header("authorization"), Some("Bearer key-of-the-painter"));

    for name in ["art/cat-1.png", "art/cat-2.png"] {
        assert!(studio.file(name).unwrap().starts_with(PNG), "{name}");
    }
    assert_eq!(studio.file("art/cat.png"), None);
    let (blocks, is_error) = studio.shown();
    assert!(!is_error);
    let text = blocks[0]["text"].as_str().unwrap();
    assert!(
        text.contains("art/cat-1.png") && text.contains("art/cat-2.png") && text.contains("1x1"),
        "{text}"
    );
    for block in &blocks[1..] {
        assert_eq!((&block["type"], &block["source"]["data"]), (&json!("image"), &json!(PIXEL)));
    }
    assert_eq!(blocks.len(), 3);

    let output = turn.output();
    assert_eq!(output["images"][1]["media_type"], "image/png");
    assert_eq!((&output["images"][0]["width"], &output["model"]), (&json!(1), &json!(PAINTER)));
    assert!(!output.to_string().contains(PIXEL), "the bytes are in the files");

    let spent = studio.records("side-call");
    assert_eq!((spent.len(), &spent[0]["purpose"]), (1, &json!("image_gen")));
    // 7 tokens in, 100 out, and two pictures.
    let cost = 7.0 * 10.0 / 1e6 + 100.0 * 40.0 / 1e6 + 2.0 * 0.02;
    let told = &turn.result()["modelUsage"][PAINTER];
    assert!((told["costUSD"].as_f64().unwrap() - cost).abs() < 1e-9, "{told}");
    assert_eq!(told["outputTokens"], 100);
    assert!((turn.result()["total_cost_usd"].as_f64().unwrap() - cost).abs() < 1e-9);
}

#[test]
fn a_picture_is_changed() {
    let input = json!({ "prompt": "add a hat", "file_path": "hat.png", "image_path": "cat.png" });
    let studio = Studio::new(calling(vec![("ImageGen", input)]).images(|call: &ImageCall, _| {
        assert!(call.edits);
        assert_eq!(
            (call.fields["prompt"].as_str(), call.fields["n"].as_str()),
            (Some("add a hat"), Some("1"))
        );
        let file = &call.files[0];
        assert_eq!((file.field.as_str(), file.file_name.as_str()), ("image", "cat.png"));
        assert_eq!(file.content_type, "image/png");
        assert!(file.bytes.starts_with(PNG));
        pixels(call)
    }));
    draw_cat(&studio);
    let before = studio.file("cat.png");
    studio.accepting();
    assert!(!studio.shown().1, "{:?}", studio.shown());
    assert!(studio.file("hat.png").unwrap().starts_with(PNG));
    assert_eq!(studio.file("cat.png"), before);
    assert_eq!(studio.painted()[0].path, "/v1/images/edits");
}

/// A first picture, made by a run of its own.
fn draw_cat(studio: &Studio) {
    let other = Studio::drawing(json!({ "prompt": "a cat", "file_path": "cat.png" }));
    other.accepting();
    std::fs::write(studio.path("cat.png"), other.file("cat.png").unwrap()).unwrap();
}

#[test]
fn what_is_no_picture_is_not_changed() {
    for (name, content) in [("note.png", "just text"), ("a.gif", "GIF89a")] {
        let input = json!({ "prompt": "add a hat", "file_path": "hat.png", "image_path": name });
        let studio = Studio::drawing(input);
        studio.sandbox.write(name, content);
        assert_eq!(studio.accepting().output()["code"], "image_not_an_image");
        assert!(studio.painted().is_empty());
    }
}

#[test]
fn a_file_is_replaced_only_when_the_call_says_so() {
    for (overwrite, replaced) in [(None, false), (Some(false), false), (Some(true), true)] {
        let mut input = json!({ "prompt": "a cat", "file_path": "cat.png", "count": 1 });
        if let Some(overwrite) = overwrite {
            input["overwrite"] = json!(overwrite);
        }
        let studio = Studio::drawing(input);
        studio.sandbox.write("cat.png", "mine");
        let turn = studio.accepting();
        assert_eq!(studio.file("cat.png").unwrap().starts_with(PNG), replaced);
        assert_eq!(studio.painted().len(), usize::from(replaced), "nothing is paid for in vain");
        if !replaced {
            assert_eq!(turn.output()["code"], "image_file_exists");
        }
    }
}

#[test]
fn one_of_several_that_exists_keeps_all_of_them_from_being_made() {
    let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": "cat.png", "count": 3 }));
    studio.sandbox.write("cat-2.png", "mine");
    assert_eq!(studio.accepting().output()["code"], "image_file_exists");
    assert!(studio.painted().is_empty());
    assert_eq!((studio.file("cat-1.png"), studio.file("cat-2.png").unwrap()), (None, b"mine".to_vec()));
}

#[test]
fn a_file_holds_the_format_that_its_name_says() {
    for (name, start) in [("cat.jpg", &[0xFF, 0xD8, 0xFF][..]), ("cat.webp", b"RIFF"), ("CAT.PNG", PNG)] {
        let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": name }));
        studio.accepting();
        assert!(studio.file(name).unwrap().starts_with(start), "{name}");
    }
    for name in ["cat", "cat.svg", "cat.png.txt", ".png"] {
        let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": name }));
        assert_eq!(studio.accepting().output()["code"], "image_bad_file_name", "{name}");
        assert!(studio.painted().is_empty());
    }
}

#[test]
fn a_field_that_the_server_does_not_know_is_left_out_from_then_on() {
    let call = |name: &str| ("ImageGen", json!({ "prompt": "a cat", "file_path": name }));
    let studio = Studio::new(calling(vec![call("1.png"), call("2.png")]).images(|call, _| {
        if call.fields.contains_key("response_format") {
            let body = json!({ "error": { "message": "Unknown parameter: 'response_format'.",
                "type": "invalid_request_error", "param": "response_format", "code": "unknown_parameter" } });
            return ImageReply::HttpError { status: 400, body: body.to_string() };
        }
        pixels(call)
    }));
    studio.accepting();
    assert!(studio.file("1.png").is_some() && studio.file("2.png").is_some());
    assert_eq!(studio.painted().len(), 3, "once with it, and never again");
}

#[test]
fn models_that_always_send_bytes_are_asked_for_the_format_of_the_file() {
    for (name, wanted) in [("cat.webp", json!("webp")), ("cat.jpeg", json!("jpeg")), ("cat.png", json!(null))]
    {
        let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": name }));
        studio.settle(&json!({ "model": { "image": "pictures/gpt-image-1" } }));
        studio.accepting();
        let asked = studio.painted()[0].json();
        assert_eq!((&asked["output_format"], asked.get("response_format")), (&wanted, None), "{name}");
    }
}

#[test]
fn fewer_pictures_than_asked_for_are_taken_and_more_are_not() {
    for (made, written) in [(1, 1), (5, 2)] {
        let input = json!({ "prompt": "a cat", "file_path": "cat.png", "count": 2 });
        let script = calling(vec![("ImageGen", input)]);
        let studio = Studio::new(script.images(move |_, _| ImageReply::Base64(vec![PIXEL.to_owned(); made])));
        let turn = studio.accepting();
        assert_eq!(turn.output()["images"].as_array().unwrap().len(), written);
        assert_eq!(studio.file("cat-2.png").is_some(), written == 2);
    }
}

#[test]
fn the_built_in_painter_needs_no_network() {
    let studio = Studio::drawing(json!({ "prompt": "a cat", "file_path": "cat.png", "size": "64x48" }));
    studio.settle(&json!({ "model": { "image": "offline" } }));
    let turn = studio.accepting();
    let image = &turn.output()["images"][0];
    assert_eq!((&image["width"], &image["height"]), (&json!(64), &json!(48)));
    assert!(studio.painted().is_empty());
}
