//! What is longer, deeper or more than is read: never allowed, denied where no one can be asked, and a deny rule still
//! finds what is in the part that was read. Each bound is tested beside something large that is still read.

use std::time::{Duration, Instant};

use qoder_runtime::permission_check::Checker;
use serde_json::{Value, json};

use crate::permission_cases::place::Place;

struct Bench {
    place: Place,
    checker: Checker,
}

impl Bench {
    fn new() -> Self {
        let place = Place::new();
        let checker = Checker::new(place.workspace(), place.home());
        Self { place, checker }
    }

    fn decision(&mut self, mode: &str, rules: &Value, command: &str) -> String {
        let case = json!({
            "rules": rules, "mode": mode, "tool": "Bash", "input": {"command": command},
            "cwd": self.place.workspace(), "home": self.place.home(),
        });
        let begun = Instant::now();
        let checked = self.checker.check(&case.to_string());
        // A guard against hanging, far above what the work takes.
        assert!(begun.elapsed() < Duration::from_secs(60), "a decision took {:?}", begun.elapsed());
        let answer: Value = serde_json::from_str(&checked.line).unwrap();
        answer["decision"].as_str().unwrap().to_owned()
    }
}

fn broad() -> Value {
    json!({"allow": ["Bash"]})
}

#[test]
fn length() {
    let mut bench = Bench::new();
    let fits = format!("echo {}", "x".repeat(60 * 1024));
    assert_eq!(bench.decision("default", &json!({}), &fits), "allow");
    let long = format!("echo {}", "x".repeat(70 * 1024));
    assert_eq!(bench.decision("default", &json!({}), &long), "ask");
    assert_eq!(bench.decision("default", &broad(), &long), "ask");
    assert_eq!(bench.decision("bypassPermissions", &json!({}), &long), "ask");
    for mode in ["dontAsk", "auto", "plan"] {
        assert_eq!(bench.decision(mode, &broad(), &long), "deny", "{mode}");
    }
    let denied = json!({"deny": ["Bash(rm:*)"]});
    let behind = format!("rm x; echo {}", "x".repeat(70 * 1024));
    assert_eq!(bench.decision("bypassPermissions", &denied, &behind), "deny");
    let far = format!("echo {}; rm x", "x".repeat(70 * 1024));
    assert_eq!(bench.decision("bypassPermissions", &denied, &far), "ask");
    assert_eq!(bench.decision("dontAsk", &denied, &far), "deny");
}

#[test]
fn number_of_commands() {
    let mut bench = Bench::new();
    assert_eq!(bench.decision("default", &json!({}), &"ls; ".repeat(200)), "allow");
    for count in [5_000, 15_000] {
        let many = "ls;".repeat(count);
        assert_eq!(bench.decision("default", &broad(), &many), "ask", "{count}");
        assert_eq!(bench.decision("dontAsk", &broad(), &many), "deny", "{count}");
    }
}

#[test]
fn depth_of_nesting() {
    let mut bench = Bench::new();
    let nested = |depth: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    assert_eq!(bench.decision("default", &json!({}), &nested(5, "( ", "ls", ")")), "allow");
    assert_eq!(bench.decision("default", &json!({}), &nested(3, "echo $(", "ls", ")")), "allow");
    for depth in [200, 3_000, 10_000] {
        for (open, close) in [
            ("( ", ")"),
            ("{ ", ";}"),
            ("echo $(", ")"),
            ("echo \"$(", ")\""),
            ("${a:-", "}"),
            ("$((", "))"),
            ("cat <(", ")"),
            ("if ", ";then ls;fi"),
            ("timeout 1 ", ""),
            ("sudo ", ""),
            ("eval ", ""),
            ("! ", ""),
        ] {
            let text = nested(depth, open, "ls", close);
            let got = bench.decision("default", &json!({"deny": ["Bash(rm:*)"]}), &text);
            assert_ne!(got, "allow", "{depth} times {open}");
            let hidden = nested(depth, open, "rm x", close);
            let got = bench.decision("bypassPermissions", &json!({"deny": ["Bash(rm:*)"]}), &hidden);
            assert_ne!(got, "allow", "{depth} times {open} around what is denied");
        }
    }
}

#[test]
fn odd_texts_are_answered() {
    let mut bench = Bench::new();
    for text in [
        "\"",
        "'",
        "`",
        "$(",
        "${",
        "((",
        "<<",
        "<<E",
        "&&",
        "|",
        ";;",
        ")",
        "}",
        "\\",
        "a\\\n",
        "[[",
        "case x in",
    ] {
        for count in [1, 64, 5_000] {
            let got =
                bench.decision("bypassPermissions", &json!({"deny": ["Bash(rm:*)"]}), &text.repeat(count));
            assert!(matches!(got.as_str(), "allow" | "ask" | "deny"), "{text}");
            let got = bench.decision("default", &json!({}), &text.repeat(count));
            assert_ne!(got, "allow", "{text} {count} times");
        }
    }
    assert_eq!(bench.decision("default", &json!({}), "echo '('"), "allow");
}
