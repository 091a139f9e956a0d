//! WebFetch and redirects: followed on the same host, reported when they lead to another, and never followed for ever.

use crate::common::server::serve;
use crate::common::{Bench, text};
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use qoder_tools::PrivateHosts;
use qoder_types::CallOutcome;
use serde_json::json;

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.settings.private_hosts = PrivateHosts::from_patterns(vec!["127.0.0.1".to_owned()]);
    bench
}

fn to(place: &'static str) -> Router {
    let answer = move || async move { (StatusCode::FOUND, [("location", place)], "moved") };
    Router::new().route("/", get(answer)).route("/target", get(|| async { "arrived" }))
}

#[tokio::test]
async fn the_same_host_is_followed_and_the_last_address_is_told() {
    let bench = bench();
    let address = serve(to("/target")).await;
    let outcome = bench.run("WebFetch", json!({ "url": format!("http://{address}"), "prompt": "x" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert!(text(&outcome).contains("arrived"));
    assert_eq!(outcome.structured["url"], format!("http://{address}/target"));
}

#[tokio::test]
async fn another_host_is_a_fact_for_the_model() {
    let bench = bench();
    for place in [
        "https://elsewhere.example/page",
        "http://169.254.169.254/latest/meta-data",
        "http://127.0.0.2/",
        "//www.127.0.0.1.example/",
    ] {
        let address = serve(to(place)).await;
        let outcome =
            bench.run("WebFetch", json!({ "url": format!("http://{address}"), "prompt": "x" })).await;
        assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
        let target = outcome.structured["redirectUrl"].as_str().unwrap();
        assert!(target.contains(place.trim_start_matches("//")), "{target}");
        assert_eq!(outcome.structured["statusCode"], 302);
        assert!(text(&outcome).contains(target), "{}", text(&outcome));
    }
}

#[tokio::test]
async fn bad_targets_and_loops_are_errors() {
    let bench = bench();
    for (place, expected) in [
        ("/", "more than 5 times"),
        ("file:///etc/passwd", "Only http and https"),
        ("ftp://127.0.0.1/", "Only http and https"),
        ("http://user:secret@127.0.0.1/", "user name or password"),
        ("http://[::", "redirect"),
    ] {
        let address = serve(to(place)).await;
        let input = json!({ "url": format!("http://{address}"), "prompt": "x" });
        let text = bench.fail("WebFetch", input).await;
        assert!(text.contains(expected), "{place}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn a_redirect_without_a_place_is_an_ordinary_error_status() {
    let bench = bench();
    let router = Router::new().route("/", get(|| async { (StatusCode::FOUND, "nowhere") }));
    let address = serve(router).await;
    let input = json!({ "url": format!("http://{address}"), "prompt": "x" });
    assert!(bench.fail("WebFetch", input).await.contains("302"));
}
