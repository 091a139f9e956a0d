//! Bodies of every operation that are almost right: made from the OpenAPI document, with values of other kinds, missing and further
//! fields, and broken bytes. Each is taken or refused in the documented shape, and none is an error of the server.
//! `QODER_FUZZ_SEED` and `QODER_FUZZ_REQUESTS` give the same requests again, or more of them.

use qoder_server::api::openapi;
use qoder_testkit::Reply;
use serde_json::{Map, Value, json};

use super::support::{Server, custom, id, toolset};

/// Texts that mean something somewhere, or should not.
const WORDS: &[&str] = &[
    "auto",
    "always_ask",
    "always_deny",
    "agent_toolset_20260401",
    "mcp_toolset",
    "custom",
    "user.message",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.tool_result",
    "user.interrupt",
    "user.define_outcome",
    "system.message",
    "text",
    "image",
    "document",
    "base64",
    "url",
    "allow",
    "deny",
    "cloud",
    "self_hosted",
    "limited",
    "static_bearer",
    "mcp_oauth",
    "environment_variable",
    "cron",
    "* * * * *",
    "Mars/Olympus",
    "coordinator",
    "self",
    "file",
    "git_repository",
    "memory_store",
    "latest",
    "",
    " ",
    "\u{0}",
    "\u{2028}",
    "é",
    "../../etc/passwd",
    "-1",
    "2026-13-01",
    "https://[::1",
    "sess_00000000000000000000000000000000",
    "evt_01900000000070008000000000000000",
];

/// Numbers that follow from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

struct Fuzzer {
    numbers: Numbers,
    /// Ids of things that exist.
    ids: Vec<String>,
}

impl Fuzzer {
    fn word(&mut self) -> String {
        match self.numbers.below(6) {
            0 => self.ids[self.numbers.below(self.ids.len())].clone(),
            1 => "x".repeat(1 << self.numbers.below(14)),
            _ => WORDS[self.numbers.below(WORDS.len())].to_owned(),
        }
    }

    fn junk(&mut self, depth: usize) -> Value {
        match self.numbers.below(if depth > 3 { 7 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.numbers.one_in(2)),
            2 => json!(i64::MIN),
            3 => json!(1e300),
            4 => json!(0),
            5 | 6 => json!(self.word()),
            7 => (0..self.numbers.below(4)).map(|_| self.junk(depth + 1)).collect(),
            _ => Value::Object(
                (0..self.numbers.below(4))
                    .map(|_| (self.word(), self.junk(depth + 1)))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// A value that fits a schema, most of the time.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return self.value(&openapi()["components"]["schemas"][name], depth);
        }
        if depth > 6 || self.numbers.one_in(6) {
            return self.junk(depth);
        }
        for key in ["oneOf", "anyOf", "enum"] {
            if let Some(choices) = schema[key].as_array() {
                let chosen = &choices[self.numbers.below(choices.len())];
                return if key == "enum" { chosen.clone() } else { self.value(chosen, depth + 1) };
            }
        }
        if !schema["const"].is_null() {
            return schema["const"].clone();
        }
        match schema["type"].as_str() {
            Some("array") => {
                (0..self.numbers.below(3)).map(|_| self.value(&schema["items"], depth + 1)).collect()
            }
            Some("string") => json!(self.word()),
            Some("integer" | "number") => json!([0, 1, -1, 10, i64::MAX][self.numbers.below(5)]),
            Some("boolean") => json!(self.numbers.one_in(2)),
            _ => self.object(schema, depth),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
        };
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_left_out = if required(name) { self.numbers.one_in(12) } else { self.numbers.one_in(2) };
            if !is_left_out {
                object.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        if self.numbers.one_in(10) {
            object.insert(self.word(), self.junk(depth));
        }
        Value::Object(object)
    }

    /// A path with ids for its parameters.
    fn path(&mut self, template: &str) -> String {
        let parts = template
            .split('/')
            .map(|part| if part.starts_with('{') { self.escaped() } else { part.to_owned() });
        let parts: Vec<String> = parts.collect();
        parts.join("/")
    }

    fn escaped(&mut self) -> String {
        let word = if self.numbers.one_in(3) {
            self.word()
        } else {
            self.ids[self.numbers.below(self.ids.len())].clone()
        };
        word.bytes()
            .take(200)
            .map(|byte| {
                if byte.is_ascii_alphanumeric() || byte == b'_' {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    }

    fn query(&mut self, operation: &Value) -> String {
        let mut pairs = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] == "query" && self.numbers.one_in(3) {
                let name = parameter["name"].as_str().unwrap().replace('[', "%5B").replace(']', "%5D");
                pairs.push(format!("{name}={}", self.escaped()));
            }
        }
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    fn body(&mut self, operation: &Value) -> Vec<u8> {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let value =
            if schema.is_null() || self.numbers.one_in(12) { self.junk(0) } else { self.value(schema, 0) };
        let mut bytes = value.to_string().into_bytes();
        if self.numbers.one_in(10) {
            for _ in 0..=self.numbers.below(3) {
                let at = self.numbers.below(bytes.len());
                bytes[at] = u8::try_from(self.numbers.below(256)).unwrap();
            }
        }
        bytes
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn bodies_that_are_almost_right_are_taken_or_refused_as_documented() {
    let server = Server::replying(vec![Reply::text("hi")]);
    let (seed, count) = (number("QODER_FUZZ_SEED", 1), number("QODER_FUZZ_REQUESTS", 1_200));
    let made = |path: &str, body: &Value| id(&server.post(&format!("/v1/{path}"), body).ok());
    let session = server.session(&json!([toolset(&[]), custom("weather")]));
    let mut ids = vec![session];
    ids.push(made("vaults", &json!({ "display_name": "v" })));
    ids.push(made("memory_stores", &json!({ "name": "m" })));
    ids.push(server.agent(&json!([])));
    ids.push(server.environment());
    let operations: Vec<(String, &str, &Value)> = openapi()["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().iter().map(move |(method, operation)| (method, path, operation))
        })
        .filter(|(method, path, _)| method.as_str() != "servers" && !path.ends_with("/stream"))
        .map(|(method, path, operation)| (method.to_ascii_uppercase(), path.as_str(), operation))
        .collect();
    assert!(operations.len() > 90, "{}", operations.len());
    let mut fuzzer = Fuzzer { numbers: Numbers(seed), ids };
    let (mut taken, mut refused) = (0, 0);
    for turn in 0..count {
        let (method, template, operation) = &operations[fuzzer.numbers.below(operations.len())];
        let prefix = if openapi()["paths"][template]["servers"].is_null() { "/v1" } else { "" };
        let path = format!("{prefix}{}{}", fuzzer.path(template), fuzzer.query(operation));
        let body = if method == "GET" { Vec::new() } else { fuzzer.body(operation) };
        let mut headers = Vec::new();
        if fuzzer.numbers.one_in(3) {
            headers.push(("anthropic-version", "2023-06-01"));
        }
        if fuzzer.numbers.one_in(8) {
            headers.push(("idempotency-key", "the-same-key"));
        }
        let answer = server.request(method, &path, &headers, &body);
        let shown =
            || format!("seed {seed}, request {turn}: {method} {path} {}", String::from_utf8_lossy(&body));
        assert!(answer.status < 500, "{}: {answer:?}", shown());
        if answer.status >= 400 {
            refused += 1;
            answer.error(answer.status);
            assert_eq!(answer.status == 409, answer.header("x-should-retry") == Some("false"), "{}", shown());
            continue;
        }
        taken += 1;
        if method == "POST"
            && let Some(id) = serde_json::from_slice::<Value>(&answer.body)
                .ok()
                .and_then(|made| made["id"].as_str().map(str::to_owned))
        {
            fuzzer.ids.push(id);
        }
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
    assert_eq!(server.get("/ready").status, 200);
    let log = std::fs::read_to_string(server.sandbox.home().join("serve.log")).unwrap();
    assert!(!log.contains("\"panic\""), "{log}");
}
