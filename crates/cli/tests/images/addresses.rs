//! Pictures that come as an address are fetched under the rules for fetches: a host that is not public needs a rule that
//! names it, and a rule that denies fetching holds here too.

use qoder_testkit::{ImageReply, Script, ScriptedServer};
use serde_json::json;

use crate::images::support::{PNG, Studio, calling};

/// A server with one picture.
fn gallery() -> ScriptedServer {
    let other = Studio::drawing(json!({ "prompt": "a cat", "file_path": "cat.png" }));
    other.accepting();
    let picture = other.file("cat.png").unwrap();
    ScriptedServer::start(Script::list(Vec::new()).file("/1.png", "image/png", picture).file(
        "/page",
        "text/html",
        b"<html>no picture</html>".to_vec(),
    ))
}

fn pointing_to(url: String) -> Studio {
    let input = json!({ "prompt": "a cat", "file_path": "cat.png" });
    Studio::new(calling(vec![("ImageGen", input)]).images(move |_, _| ImageReply::Urls(vec![url.clone()])))
}

#[test]
fn an_address_inside_needs_a_rule_that_names_its_host() {
    let gallery = gallery();
    for (rules, written) in [
        (&["--permission-mode", "bypassPermissions"][..], false),
        (&["--allowed-tools", "ImageGen,WebFetch"][..], false),
        (&["--allowed-tools", "ImageGen,WebFetch(domain:127.0.0.1)"][..], true),
        (
            &["--allowed-tools", "ImageGen,WebFetch(domain:127.0.0.1)", "--disallowed-tools", "WebFetch"][..],
            false,
        ),
    ] {
        let studio = pointing_to(format!("{}/1.png", gallery.base_url()));
        let before = gallery.requests().len();
        let turn = studio.turn(rules);
        assert_eq!(studio.file("cat.png").is_some_and(|bytes| bytes.starts_with(PNG)), written, "{rules:?}");
        assert_eq!(gallery.requests().len() - before, usize::from(written), "{rules:?}");
        if !written {
            let code = turn.output()["code"].clone();
            assert!(code == "web_not_public" || code == "web_denied", "{code} {rules:?}");
            assert_eq!(studio.records("side-call").len(), 1, "it was made and is paid for");
        }
    }
}

#[test]
fn what_is_at_the_address_must_be_a_picture() {
    let gallery = gallery();
    for path in ["/page", "/gone"] {
        let studio = pointing_to(format!("{}{path}", gallery.base_url()));
        let turn = studio.turn(&["--allowed-tools", "ImageGen,WebFetch(domain:127.0.0.1)"]);
        assert_eq!(turn.output()["code"], "image_not_an_image", "{path}");
        assert_eq!(studio.file("cat.png"), None);
    }
    let studio = pointing_to("file:///etc/passwd".to_owned());
    assert_eq!(studio.accepting().output()["code"], "web_scheme");
}
