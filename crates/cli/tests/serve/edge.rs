//! The edge: tokens, names, sizes, junk and requests that count once. Every refusal has the documented shape and changes nothing.

use std::io::{Read, Write};
use std::net::TcpStream;

use qoder_testkit::Reply;
use serde_json::{Value, json};

use super::support::{Server, id, message};

fn server() -> Server {
    Server::replying(vec![Reply::text("hi")])
}

#[test]
fn no_route_is_open_without_a_token_but_the_health_checks() {
    let server = server();
    let wrong = format!("Bearer {}x", server.token);
    let unknown = "Bearer pt-aaaaaaaa-0123456789012345678901234567890123456789012";
    let basic = "Basic YTpi".to_owned();
    for headers in [
        vec![],
        vec![("authorization", wrong.as_str())],
        vec![("authorization", unknown)],
        vec![("authorization", basic.as_str())],
        vec![("x-api-key", "pt-x")],
    ] {
        let answer = server.bare("GET", "/v1/agents", &headers, b"");
        let (kind, message) = answer.error(401);
        assert_eq!((kind.as_str(), message.as_str()), ("authentication_error", "Invalid API key or token."));
    }
    server.bare("GET", "/nowhere", &[], b"").error(401);
    server.bare("GET", "/metrics", &[], b"").error(401);
    for open in ["/health", "/ready"] {
        assert_eq!(server.bare("GET", open, &[], b"").status, 200, "{open}");
    }
    for headers in
        [("authorization", format!("Bearer {}", server.token)), ("x-api-key", server.token.clone())]
    {
        let answer = server.bare("GET", "/v1/agents", &[(headers.0, headers.1.as_str())], b"");
        assert_eq!(answer.status, 200, "{}", headers.0);
    }
}

#[test]
fn a_token_does_what_its_scopes_say_and_no_more() {
    let server = server();
    let session = server.session(&json!([]));
    let sessions = format!("/v1/sessions/{session}");
    let events = format!("{sessions}/events");
    let attempts: [(&str, &str, Value, &str); 6] = [
        ("GET", sessions.as_str(), Value::Null, "read"),
        ("GET", "/v1/models", Value::Null, "read"),
        ("POST", events.as_str(), json!({ "events": [{ "type": "user.interrupt" }] }), "run"),
        ("POST", sessions.as_str(), json!({ "title": "t" }), "run"),
        ("POST", "/v1/agents", json!({ "name": "a", "model": "auto" }), "admin"),
        (
            "POST",
            events.as_str(),
            json!({ "events": [{ "type": "user.tool_confirmation", "result": "allow",
                "tool_use_id": "evt_01900000000070008000000000000000" }] }),
            "approve",
        ),
    ];
    for scope in ["read", "run", "approve", "admin"] {
        let token = server.token(&["--user", "bob", "--tenant", "ana", "--scopes", scope]);
        let bearer = format!("Bearer {token}");
        for (method, path, body, needed) in &attempts {
            let body = if *method == "GET" { String::new() } else { body.to_string() };
            let answer = server.bare(method, path, &[("authorization", &bearer)], body.as_bytes());
            if scope == *needed {
                assert_ne!(answer.status, 403, "{scope}: {method} {path}");
            } else {
                let (kind, message) = answer.error(403);
                assert_eq!(kind, "permission_error");
                assert!(message.contains(needed), "{message}");
            }
        }
    }
}

#[test]
fn tenants_do_not_see_each_other() {
    let server = server();
    let session = server.session(&json!([]));
    let agent = server.agent(&json!([]));
    let environment = server.environment();
    let other = server.token(&["--user", "mallory"]);
    let bearer = format!("Bearer {other}");
    let headers = [("authorization", bearer.as_str())];
    for (method, path) in [
        ("GET", format!("/v1/sessions/{session}")),
        ("GET", format!("/v1/sessions/{session}/events")),
        ("GET", format!("/v1/sessions/{session}/events/stream")),
        ("POST", format!("/v1/sessions/{session}/archive")),
        ("POST", format!("/v1/sessions/{session}/cancel")),
        ("DELETE", format!("/v1/sessions/{session}")),
        ("GET", format!("/v1/agents/{agent}")),
        ("GET", format!("/v1/agents/{agent}/versions")),
        ("POST", format!("/v1/agents/{agent}/archive")),
        ("GET", format!("/v1/environments/{environment}")),
        ("DELETE", format!("/v1/environments/{environment}")),
    ] {
        let foreign = server.bare(method, &path, &headers, b"");
        let (_, text) = foreign.error(404);
        let unknown_path = path.replace(&session, "sess_00000000000000000000000000000000");
        let unknown_path = unknown_path.replace(&agent, "agent_00000000000000000000000000000000");
        let unknown_path = unknown_path.replace(&environment, "env_00000000000000000000000000000000");
        let (_, unknown) = server.bare(method, &unknown_path, &headers, b"").error(404);
        let shape = |text: &str| text.split('`').next().unwrap().to_owned();
        assert_eq!(shape(&text), shape(&unknown), "{path}");
    }
    let body = json!({ "agent": agent, "environment_id": environment }).to_string();
    server.bare("POST", "/v1/sessions", &headers, body.as_bytes()).error(404);
    let listed = server.bare("GET", "/v1/sessions", &headers, b"").ok();
    assert_eq!(listed["data"], json!([]));
    assert_eq!(server.get("/v1/sessions").ok()["data"].as_array().unwrap().len(), 1);
}

#[test]
fn foreign_names_and_pages_are_refused() {
    let server = server();
    let bearer = format!("Bearer {}", server.token);
    for host in ["evil.example.com", "localhost.evil.com", "10.0.0.1"] {
        let answer = server.bare("GET", "/v1/agents", &[("authorization", &bearer), ("host", host)], b"");
        answer.error(403);
    }
    for origin in ["https://evil.example.com", "null", "http://localhost:3000"] {
        let headers = [("authorization", bearer.as_str()), ("origin", origin)];
        let answer = server.bare("GET", "/v1/agents", &headers, b"");
        answer.error(403);
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let server =
        Server::with(None, &["--allow-host", "agents.lan", "--allow-origin", "https://console.lan"], &[]);
    let bearer = format!("Bearer {}", server.token);
    let headers =
        [("authorization", bearer.as_str()), ("host", "agents.lan:80"), ("origin", "https://console.lan")];
    let answer = server.bare("GET", "/v1/agents", &headers, b"");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://console.lan"));
    let preflight = server.bare("OPTIONS", "/v1/agents", &headers[1..], b"");
    assert_eq!(preflight.status, 204);
}

#[test]
fn every_answer_has_the_id_of_its_request() {
    let server = server();
    let own = server.request("GET", "/v1/agents", &[("x-request-id", "my-request.1")], b"");
    assert_eq!(
        (own.header("x-request-id"), own.header("request-id")),
        (Some("my-request.1"), Some("my-request.1"))
    );
    let missing = server.request("GET", "/v1/agents/agent_x", &[("x-request-id", "my-request.2")], b"");
    missing.error(404);
    assert_eq!(missing.json()["request_id"], "my-request.2");
    for odd in ["", "a b", "ä", &"x".repeat(200)] {
        let answer = server.request("GET", "/v1/agents", &[("x-request-id", odd)], b"");
        assert_eq!(answer.header("x-request-id").unwrap().len(), 36, "{odd:?}");
    }
}

#[test]
fn bodies_that_are_not_what_they_should_be_are_refused_in_the_documented_shape() {
    let server = server();
    for (body, part) in [
        (&b"{\"name\":"[..], "Request body must be valid JSON."),
        (b"nonsense", "Request body must be valid JSON"),
        (b"[]", "must be a JSON object"),
        (b"{\"name\": \"\xff\", \"model\": \"auto\"}", "Request body must be valid JSON"),
        (b"{}", "`model` is required"),
        (b"{\"name\": 7, \"model\": \"auto\"}", "`name` must be a string"),
        (b"{\"name\": \"\", \"model\": \"auto\"}", "`name`"),
        (b"{\"name\": \"a\", \"model\": \"scripted:/etc/passwd\"}", "`model`"),
    ] {
        let (kind, message) = server.request("POST", "/v1/agents", &[], body).error(400);
        assert_eq!(kind, "invalid_request_error");
        assert!(message.contains(part), "{message}");
    }
    let deep = format!("{{\"name\":\"a\",\"model\":\"auto\",\"x\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    let (_, message) = server.request("POST", "/v1/agents", &[], deep.as_bytes()).error(400);
    assert!(message.contains("nested"), "{message}");
    let (_, message) = server.get("/v1/agents?limit=0").error(400);
    assert!(message.contains("limit"), "{message}");
    let many = format!("/v1/agents?{}", "a=1&".repeat(2_000));
    server.get(&many).error(400);
    server.get("/v1/agents?page=a&after_id=b").error(400);
    server.request("PATCH", "/v1/sessions", &[], b"").error(405);
    server.get("/v1/nowhere").error(404);
    server.get("/v1/agents/%ff%fe").error(404);
    server.get("/v1/messages").error(404);
    assert_eq!(server.get("/v1/agents").ok()["data"], json!([]), "nothing was changed");
}

#[test]
fn a_body_of_some_megabytes_is_ordinary_and_one_over_the_limit_is_refused() {
    let server = server();
    let session = server.session(&json!([]));
    let mut stream = server.stream(&session, None);
    let long = "word ".repeat(600_000);
    server.send(&session, &json!([message(&long)])).ok();
    stream.until_end_of_turn();
    let stored = server.events(&session);
    assert_eq!(stored[0]["content"][0]["text"].as_str().unwrap().len(), long.len());
    assert_eq!(stream.seen[0]["content"][0]["text"].as_str().unwrap().len(), long.len());
    let huge = vec![b' '; 33 * 1024 * 1024];
    let (kind, text) = server.request("POST", "/v1/agents", &[], &huge).error(400);
    assert_eq!(kind, "invalid_request_error");
    assert!(text.contains("larger than 32 MiB"), "{text}");
    let database = std::fs::metadata(server.data().join("server.db")).unwrap().len();
    assert!(database < 8 * 1024 * 1024, "long content is in blobs: {database}");
}

#[test]
fn a_client_that_sends_all_of_a_body_that_is_too_large_gets_the_answer() {
    let server = server();
    let body = format!(r#"{{"name":"{}","model":"auto"}}"#, "x".repeat(40 * 1024 * 1024));
    let (kind, message) = server.request("POST", "/v1/agents", &[], body.as_bytes()).error(400);
    assert_eq!((kind.as_str(), message.contains("larger than 32 MiB")), ("invalid_request_error", true));
    assert_eq!(server.get("/v1/agents").ok()["data"], json!([]));
}

#[test]
fn junk_on_the_socket_harms_nothing() {
    let server = server();
    for junk in [
        &b"\r\n\r\n"[..],
        b"GET",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/agents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"POST /v1/agents HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/agents HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    ] {
        let _ = server.raw(junk);
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(100_000));
    let refused = server.raw(long.as_bytes());
    let refused = String::from_utf8_lossy(&refused);
    assert!(refused.starts_with("HTTP/1.1 4"), "{refused}");
    let mut headers = "GET /health HTTP/1.1\r\nhost: localhost\r\n".to_owned();
    (0..2_000).for_each(|number| headers.push_str(&format!("x-{number}: {}\r\n", "y".repeat(20))));
    let refused = server.raw(format!("{headers}\r\n").as_bytes());
    assert!(
        String::from_utf8_lossy(&refused).starts_with("HTTP/1.1 4"),
        "{}",
        String::from_utf8_lossy(&refused)
    );
    // Connections that never say anything are no one's problem.
    let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let mut half = TcpStream::connect(server.address()).unwrap();
    half.write_all(b"POST /v1/agents HTTP/1.1\r\nhost: loc").unwrap();
    assert_eq!(server.get("/health").status, 200);
    drop((silent, half));
    assert_eq!(server.get("/v1/agents").ok()["data"], json!([]));
}

#[test]
fn a_key_makes_a_request_count_once() {
    let mut server = server();
    let body = json!({ "name": "a", "model": "auto" }).to_string();
    let create = |server: &Server, key: &str, body: &str| {
        server.request("POST", "/v1/agents", &[("idempotency-key", key)], body.as_bytes())
    };
    let first = create(&server, "k1", &body);
    let again = create(&server, "k1", &body);
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    let (kind, text) = create(&server, "k1", &json!({ "name": "b", "model": "auto" }).to_string()).error(409);
    assert_eq!(kind, "conflict_error");
    assert_eq!(text, "Idempotency key reused with a different request body.");
    let other = create(&server, "k2", &body);
    assert_ne!(id(&first.json()), id(&other.json()));
    create(&server, "k3", "{}").error(400);
    assert_eq!(
        create(&server, "k3", &body).status,
        200,
        "a request that changed nothing has not used its key"
    );
    server.kill();
    server.start_again();
    assert_eq!(create(&server, "k1", &body).body, first.body, "also after a kill");
    let old = server.request("POST", "/v1/agents", &[("x-idempotency-key", "k1")], body.as_bytes());
    assert_eq!(old.body, first.body);
    let threads: Vec<_> = std::thread::scope(|scope| {
        let send = || create(&server, "same", &body).body;
        let running: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(threads.windows(2).all(|pair| pair[0] == pair[1]), "twins get one answer");
    let session = server.session(&json!([]));
    let path = format!("/v1/sessions/{session}/events");
    let body = json!({ "events": [message("go")] }).to_string();
    let mut stream = server.stream(&session, None);
    let first = server.request("POST", &path, &[("idempotency-key", "m")], body.as_bytes());
    let again = server.request("POST", &path, &[("idempotency-key", "m")], body.as_bytes());
    assert_eq!(first.ok(), again.ok(), "no conflict with the turn that the first one started");
    stream.until_end_of_turn();
}

#[test]
fn a_client_that_hangs_up_has_sent_its_message_all_the_same() {
    let server = server();
    let sessions: Vec<String> = (0..40).map(|_| server.session(&json!([]))).collect();
    for (number, session) in sessions.iter().enumerate() {
        let body = json!({ "events": [message("go")] }).to_string();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head = format!(
            "POST /v1/sessions/{session}/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            server.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // Some hang up before the request was read, some while it is done.
        std::thread::sleep(std::time::Duration::from_micros(number as u64 * 100));
    }
    let is_over = |session: &String| {
        let kinds = server.kinds(session);
        kinds.is_empty() || kinds.last().is_some_and(|kind| kind == "session.status_idle")
    };
    let until = std::time::Instant::now() + super::support::PATIENCE;
    while !sessions.iter().all(is_over) {
        assert!(std::time::Instant::now() < until, "a session is driven by no one");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(sessions.iter().any(|session| !server.kinds(session).is_empty()));
}

#[test]
fn a_connection_serves_many_requests() {
    let server = server();
    let request = format!(
        "GET /v1/agents HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\r\n",
        server.token
    );
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(super::support::PATIENCE)).unwrap();
    stream.write_all(request.repeat(5).as_bytes()).unwrap();
    let mut answers = String::new();
    while answers.matches("\"has_more\":false}").count() < 5 {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "{answers}");
        answers.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 5);
}

#[test]
fn the_document_of_the_interface_needs_no_token() {
    let server = Server::offline();
    let answer = server.bare("GET", "/openapi.json", &[], b"");
    let document = answer.ok();
    assert_eq!(document, *qoder_server::api::openapi());
    assert_eq!(document["servers"], json!([{ "url": "/api/v1/cloud" }, { "url": "/v1" }]));
    // One table makes the router and the document; a path that the router did not have would be unknown here.
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert!(paths.len() > 50, "{paths:?}");
    for path in paths {
        let prefix = if document["paths"][path]["servers"].is_null() { "/v1" } else { "" };
        let answer = server.request("OPTIONS", &format!("{prefix}{path}"), &[], b"");
        assert_eq!(answer.status, 405, "{path}");
    }
}
