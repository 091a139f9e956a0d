//! WebSearch: three kinds of services, the wishes about domains, the limit of a session, and services that fail.

use crate::common::server::{Then, serve, serve_raw};
use crate::common::{Bench, cancellable, never, text};
use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use qoder_tools::{SearchService, SearchSettings};
use qoder_types::CallOutcome;
use serde_json::{Value, json};

fn bench(provider: SearchService, base_url: String) -> Bench {
    let mut bench = Bench::new();
    bench.settings.search = Some(SearchSettings {
        provider,
        base_url: Some(base_url),
        api_key: Some("the-key".to_owned().into()),
        api_key_env: None,
        max_results: 5,
    });
    bench
}

/// Results in the shape that SearXNG and Tavily share.
fn results() -> Value {
    json!({ "results": [
        { "title": "One", "url": "https://docs.example.com/one", "content": "about\n  one" },
        { "title": "Two", "url": "https://other.example/two", "content": "about two" },
        { "title": "Three", "url": "https://notexample.com/three" },
        { "title": "No address" },
        { "title": "Odd", "url": "javascript:alert(1)", "content": "x" },
    ] })
}

#[tokio::test]
async fn without_a_service_it_says_how_to_set_one() {
    let outcome = Bench::new().run("WebSearch", json!({ "query": "rust" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    for part in ["tools.webSearch.provider", "searxng", "brave", "tavily", "apiKeyEnv", "baseUrl"] {
        assert!(text(&outcome).contains(part), "{}", text(&outcome));
    }
    assert_eq!(outcome.structured["code"], "search_not_configured");
}

#[tokio::test]
async fn searxng_is_asked_by_its_query_and_read_by_its_list() {
    let router = Router::new().route(
        "/deep/search",
        get(|RawQuery(query): RawQuery| async move {
            assert_eq!(query.unwrap(), "q=rust+%26+c&format=json");
            Json(results())
        }),
    );
    let address = serve(router).await;
    let bench = bench(SearchService::Searxng, format!("http://{address}/deep/"));
    let outcome = bench.run("WebSearch", json!({ "query": " rust & c " })).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert_eq!(outcome.structured["query"], "rust & c");
    let expected = json!({ "title": "One", "url": "https://docs.example.com/one", "snippet": "about one" });
    assert_eq!(outcome.structured["results"][0], expected);
    assert_eq!(outcome.structured["results"].as_array().unwrap().len(), 3);
    assert!(
        text(&outcome).contains("1. One\n   https://docs.example.com/one\n   about one"),
        "{}",
        text(&outcome)
    );
    assert!(!text(&outcome).contains("javascript"), "{}", text(&outcome));
}

#[tokio::test]
async fn brave_gets_its_key_in_a_header() {
    let router = Router::new().route(
        "/res/v1/web/search",
        get(|headers: HeaderMap, RawQuery(query): RawQuery| async move {
            if headers.get("x-subscription-token").is_none_or(|key| key != "the-key") {
                return (StatusCode::UNAUTHORIZED, Json(json!({})));
            }
            assert_eq!(query.unwrap(), "q=news+site%3Aa.example+OR+site%3Ab.example&count=5");
            let found = json!({ "title": "A", "url": "https://x.a.example/", "description": "about a" });
            (StatusCode::OK, Json(json!({ "type": "search", "web": { "results": [found] } })))
        }),
    );
    let address = serve(router).await;
    let mut bench = bench(SearchService::Brave, format!("http://{address}"));
    let input = json!({ "query": "news", "allowed_domains": ["a.example", "https://B.example/path"] });
    let outcome = bench.run("WebSearch", input.clone()).await;
    assert_eq!(outcome.structured["results"][0]["snippet"], "about a", "{}", text(&outcome));
    bench.settings.search.as_mut().unwrap().api_key = Some("wrong".to_owned().into());
    let refused = bench.fail("WebSearch", input.clone()).await;
    assert!(refused.contains("refused the key") && !refused.contains("wrong"), "{refused}");
    bench.settings.search.as_mut().unwrap().api_key = None;
    assert!(bench.fail("WebSearch", input).await.contains("No key is set"));
}

#[tokio::test]
async fn tavily_gets_everything_in_its_body() {
    let router = Router::new().route(
        "/search",
        post(|headers: HeaderMap, Json(body): Json<Value>| async move {
            assert_eq!(headers["authorization"], "Bearer the-key");
            let expected = json!({
                "query": "news", "max_results": 5, "include_domains": [], "exclude_domains": ["example.com"],
            });
            assert_eq!(body, expected);
            Json(results())
        }),
    );
    let address = serve(router).await;
    let bench = bench(SearchService::Tavily, format!("http://{address}"));
    let input = json!({ "query": "news", "blocked_domains": ["*.example.com"] });
    let outcome = bench.run("WebSearch", input).await;
    let urls: Vec<&str> = outcome.structured["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["url"].as_str().unwrap())
        .collect();
    assert_eq!(urls, ["https://other.example/two", "https://notexample.com/three"]);
}

#[tokio::test]
async fn domains_filter_whatever_the_service_returned() {
    let router = Router::new().route("/search", get(|| async { Json(results()) }));
    let bench = bench(SearchService::Searxng, format!("http://{}", serve(router).await));
    let outcome = bench.run("WebSearch", json!({ "query": "xx", "allowed_domains": ["example.com"] })).await;
    assert_eq!(outcome.structured["results"].as_array().unwrap().len(), 1);
    assert_eq!(outcome.structured["results"][0]["title"], "One");
    let none =
        bench.succeed("WebSearch", json!({ "query": "xx", "allowed_domains": ["nowhere.example"] })).await;
    assert!(none.contains("on other domains"), "{none}");
}

#[tokio::test]
async fn wishes_that_contradict_or_mean_nothing_are_refused() {
    let bench = bench(SearchService::Searxng, "http://127.0.0.1:9".to_owned());
    for (input, expected) in [
        (json!({ "query": "a" }), "at least 2"),
        (json!({ "query": "x".repeat(401) }), "longer than"),
        (
            json!({ "query": "xx", "allowed_domains": ["a.example"], "blocked_domains": ["b.example"] }),
            "not both",
        ),
        (json!({ "query": "xx", "blocked_domains": ["not a domain"] }), "blocked_domains"),
        (json!({ "query": "xx", "allowed_domains": vec!["a.example"; 51] }), "more than 50"),
    ] {
        let text = bench.fail("WebSearch", input.clone()).await;
        assert!(text.contains(expected), "{input}: {text}");
    }
}

#[tokio::test]
async fn services_that_fail_are_told_apart() {
    let long = "HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\n\r\n";
    for (answer, expected) in [
        ("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n", "refused the key (status 401)"),
        ("HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n", "Try later"),
        ("HTTP/1.1 500 Oh\r\ncontent-length: 4\r\n\r\noops", "status 500: oops"),
        ("HTTP/1.1 302 Go\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n", "status 302"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", "not JSON"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "no list at /results"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"results\": 1}", "no list at /results"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", "failed"),
        (long, "larger than"),
    ] {
        let address = serve_raw(answer.as_bytes().to_vec(), Then::Close).await;
        let bench = bench(SearchService::Searxng, format!("http://{address}"));
        let text = bench.fail("WebSearch", json!({ "query": "xx" })).await;
        assert!(text.contains(expected), "{answer}: {text}");
    }
    for base in ["", "not a url", "ftp://x.example"] {
        let bench = bench(SearchService::Searxng, base.to_owned());
        assert!(bench.fail("WebSearch", json!({ "query": "xx" })).await.contains("baseUrl"), "{base}");
    }
}

#[tokio::test]
async fn a_silent_service_is_given_up() {
    let address = serve_raw(Vec::new(), Then::Hang).await;
    let mut bench = bench(SearchService::Searxng, format!("http://{address}"));
    let (cancel, cancelled) = cancellable();
    cancel.send(()).unwrap();
    let outcome = bench.run_until("WebSearch", json!({ "query": "xx" }), cancelled).await;
    assert_eq!(outcome.outcome, CallOutcome::Interrupted);
    bench.settings.web_timeout_ms = 100;
    assert!(bench.fail("WebSearch", json!({ "query": "xx" })).await.contains("longer than 100 ms"));
}

#[tokio::test]
async fn a_session_has_a_limited_number_of_searches() {
    // The port has no listener: a search that fails counts too.
    let bench = bench(SearchService::Brave, "http://127.0.0.1:9".to_owned());
    let tool = bench.tool("WebSearch");
    for _ in 0..200 {
        let outcome = tool.run(json!({ "query": "xx" }), bench.context(never())).await;
        assert_ne!(outcome.structured["code"], "search_too_many");
    }
    let outcome = tool.run(json!({ "query": "xx" }), bench.context(never())).await;
    assert_eq!(outcome.structured["code"], "search_too_many", "{}", text(&outcome));
}
