//! WebFetch and the places it must not reach: every spelling of an address, every name that leads inside.
//!
//! Nothing may be connected to before it is checked, so a server that would answer counts its visitors.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::Bench;
use crate::common::server::serve;
use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;
use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_tools::{NameLookup, PrivateHosts};
use serde_json::json;

/// Knows these names and no others.
#[derive(Debug)]
struct Names(HashMap<&'static str, Vec<&'static str>>);

impl NameLookup for Names {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let found = self.0.get(host.as_str()).cloned();
        async move {
            let found = found.ok_or_else(|| io::Error::other("no such name"))?;
            Ok(found.into_iter().map(|address| address.parse().unwrap()).collect())
        }
        .boxed()
    }
}

fn with_names(names: &[(&'static str, &[&'static str])]) -> Bench {
    let mut bench = Bench::new();
    let names = names.iter().map(|(name, addresses)| (*name, addresses.to_vec())).collect();
    bench.settings.name_lookup = Arc::new(Names(names));
    bench
}

async fn refusal(bench: &Bench, url: &str) -> String {
    bench.fail("WebFetch", json!({ "url": url, "prompt": "x" })).await
}

#[tokio::test]
async fn literal_addresses_and_well_known_names_are_refused_in_every_spelling() {
    let bench = with_names(&[]);
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127。0。0。1/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://0/",
        "http://10.1.2.3:8080/x",
        "http://192.168.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://100.100.100.200/",
        "http://localhost/",
        "http://localhost./",
        "http://LOCALHOST:80/",
        "http://ⓛocalhost/",
        "http://a.localhost/",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://intranet/",
        "https://printer.local/",
    ] {
        let text = refusal(&bench, url).await;
        assert!(text.contains("not a public host"), "{url}: {text}");
        assert!(text.contains("WebFetch(domain:"), "{url}: {text}");
    }
}

#[tokio::test]
async fn urls_that_are_none_or_carry_credentials_are_refused() {
    let bench = with_names(&[]);
    let long = format!("https://example.com/{}", "a".repeat(10_000));
    for (url, expected) in [
        ("", "cannot be read"),
        ("example.com", "cannot be read"),
        ("https://", "cannot be read"),
        ("http://exa mple.com/", "cannot be read"),
        ("http://[::1", "cannot be read"),
        ("http://256.256.256.256/", "cannot be read"),
        ("file:///etc/passwd", "Only http and https"),
        ("ftp://example.com/", "Only http and https"),
        ("javascript:alert(1)", "Only http and https"),
        ("https://user@example.com/", "user name or password"),
        ("https://user:word@example.com/", "user name or password"),
        ("https://example.com@127.0.0.1/", "user name or password"),
        (long.as_str(), "longer than"),
    ] {
        let text = refusal(&bench, url).await;
        assert!(text.contains(expected), "{url}: {text}");
    }
}

#[tokio::test]
async fn a_name_is_refused_when_one_of_its_addresses_is_inside() {
    let bench = with_names(&[
        ("rebind.example", &["93.184.215.14", "127.0.0.1"]),
        ("inside.example", &["fd00:ec2::254"]),
        ("empty.example", &[]),
    ]);
    for host in ["rebind.example", "REBIND.example.", "inside.example"] {
        assert!(refusal(&bench, &format!("https://{host}/")).await.contains("not a public host"), "{host}");
    }
    for host in ["empty.example", "unknown.example"] {
        assert!(refusal(&bench, &format!("https://{host}/")).await.contains("was not found"), "{host}");
    }
}

#[tokio::test]
async fn a_rule_opens_exactly_the_host_it_names() {
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let router = Router::new().route(
        "/",
        get(move |headers: HeaderMap| async move {
            counted.fetch_add(1, Ordering::SeqCst);
            format!("you asked {}", headers["host"].to_str().unwrap())
        }),
    );
    let port = serve(router).await.port();
    let mut bench = with_names(&[
        ("wiki.corp.example", &["127.0.0.1"]),
        ("a.dev.example", &["127.0.0.1"]),
        ("dev.example", &["127.0.0.1"]),
    ]);
    let patterns = vec!["Wiki.Corp.Example".to_owned(), "*.dev.example".to_owned()];
    bench.settings.private_hosts = PrivateHosts::from_patterns(patterns);
    for host in ["wiki.corp.example", "wiki.corp.example.", "a.dev.example"] {
        let input = json!({ "url": format!("http://{host}:{port}/"), "prompt": "x" });
        let text = bench.succeed("WebFetch", input).await;
        assert!(text.contains(&format!("you asked {host}:{port}")), "{text}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 3);
    for host in ["dev.example", "127.0.0.1"] {
        let text = refusal(&bench, &format!("http://{host}:{port}/")).await;
        assert!(text.contains("not a public host"), "{host}: {text}");
    }
    assert_eq!(visits.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn plain_http_to_a_public_host_is_upgraded_and_never_falls_back() {
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = visits.clone();
    let router = Router::new().route(
        "/",
        get(move || async move {
            counted.fetch_add(1, Ordering::SeqCst);
            "in the clear"
        }),
    );
    let port = serve(router).await.port();
    let mut bench = with_names(&[("mixed.example", &["127.0.0.1", "93.184.215.14"])]);
    // One public address is enough to want encryption, also for a host that a rule allows.
    bench.settings.private_hosts = PrivateHosts::from_patterns(vec!["mixed.example".to_owned()]);
    let text = refusal(&bench, &format!("http://mixed.example:{port}/")).await;
    assert!(text.contains("failed"), "{text}");
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}
