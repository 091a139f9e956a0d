//! Damaged logs: a torn tail is cut and kept, damage before the end is refused with its line, shown up to there and
//! repaired into a new session. Content too large for a line comes back byte for byte.

use qoder_testkit::{Reply, Sandbox, ScriptedServer};
use serde_json::{Value, json};

use crate::sessions::support::{
    ID, OTHER_ID, append, assert_failure, assert_success, feed, kinds, log_of, log_text, online, records,
    run, run_with, sealed, server, side_of,
};

/// A session of one turn, and the server that answers the next ones.
fn session(sandbox: &Sandbox) -> ScriptedServer {
    let server = server(vec![Reply::text("first answer"), Reply::text("second answer")]);
    run_with(sandbox, &server, &["-p", "first prompt", "--session-id", ID]).exits(0);
    server
}

fn change_lines(sandbox: &Sandbox, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines: Vec<String> = log_text(sandbox, ID).lines().map(str::to_owned).collect();
    change(&mut lines);
    std::fs::write(log_of(sandbox, ID), lines.join("\n") + "\n").unwrap();
}

fn line_of(sandbox: &Sandbox, kind: &str) -> usize {
    kinds(sandbox, ID).iter().position(|found| found == kind).unwrap()
}

/// The session is refused in text and JSON with this reason, and its file stays as it is.
#[track_caller]
fn assert_refused(sandbox: &Sandbox, server: &ScriptedServer, line: usize, reason: &str) {
    let before = std::fs::read(log_of(sandbox, ID)).unwrap();
    let place = format!("is damaged at line {line}: ");
    let text = run_with(sandbox, server, &["-p", "second", "--resume", ID]).exits(55);
    text.says(&[&place, reason, &log_of(sandbox, ID).display().to_string(), "sessions repair"]);
    let json = run_with(sandbox, server, &["-p", "x", "--resume", ID, "--output-format", "json"]).exits(55);
    assert_failure(&json.json(), &place);
    assert_eq!(std::fs::read(log_of(sandbox, ID)).unwrap(), before);
}

/// `sessions repair` makes a new session that can be continued.
#[track_caller]
fn assert_repaired(sandbox: &Sandbox, server: &ScriptedServer, lost: &str) -> Value {
    let before = std::fs::read(log_of(sandbox, ID)).unwrap();
    let repaired = run(sandbox, &["sessions", "repair", ID]).exits(0);
    let id = repaired.stdout.trim().to_owned();
    assert_eq!(id.len(), 36, "{}", repaired.stdout);
    repaired.says(&["the original is unchanged", lost]);
    assert_eq!(std::fs::read(log_of(sandbox, ID)).unwrap(), before);
    assert_eq!(records(sandbox, &id)[0]["forkedFrom"], ID);
    let resumed =
        run_with(sandbox, server, &["-p", "second", "--resume", &id, "--output-format", "json"]).exits(0);
    assert_eq!(resumed.json()["session_id"], id);
    server.requests().last().unwrap().json()
}

#[test]
fn a_torn_tail_is_cut_and_kept_and_the_session_goes_on() {
    for torn in
        ["{\"type\":\"user\",\"uuid\":\"half a rec", "\u{0}\u{0}\u{0}", "{\"type\":\"turn-end\"}garbage\n"]
    {
        let sandbox = Sandbox::new();
        let server = session(&sandbox);
        let intact = log_text(&sandbox, ID);
        append(&sandbox, ID, torn);
        let resumed =
            run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--output-format", "json"]);
        assert_success(&resumed.exits(0).json(), ID, "second answer");
        let kept = side_of(&sandbox, ID).join(format!("torn-{}", intact.len()));
        assert_eq!(std::fs::read_to_string(kept).unwrap(), torn);
        assert!(log_text(&sandbox, ID).starts_with(&intact));
        assert!(!log_text(&sandbox, ID).contains(torn.trim_end()), "the torn bytes are out of the log");
        let last = records(&sandbox, ID).len() as u64;
        assert_eq!(records(&sandbox, ID).last().unwrap()["seq"], last);
    }
}

#[test]
fn lines_of_other_programs_behind_a_torn_record_are_kept() {
    let title = "{\"type\":\"custom-title\",\"customTitle\":\"Mine\",\"sessionId\":\"x\"}\n";
    let tag = "{\"type\":\"tag\",\"tag\":\"experiment\",\"sessionId\":\"x\"}\n";
    let sample = Sandbox::new();
    session(&sample);
    let record = log_text(&sample, ID).lines().last().unwrap().to_owned();
    // Other programs append to the torn line, or behind it.
    for torn in [&record[..1], &record[..40], &record[..record.len() - 1], "{\"type\":\"user\"}garbage\n"] {
        let sandbox = Sandbox::new();
        let server = session(&sandbox);
        let intact = log_text(&sandbox, ID);
        append(&sandbox, ID, &format!("{torn}{title}"));
        append(&sandbox, ID, tag);
        let shown = run(&sandbox, &["sessions", "show", ID]).exits(0);
        shown.says(&["never completed"]);
        for answer in ["second answer", "second answer"] {
            let arguments = ["-p", "next", "--resume", ID, "--output-format", "json"];
            let resumed = run_with(&sandbox, &server, &arguments).exits(0);
            assert_success(&resumed.json(), ID, answer);
        }
        let log = log_text(&sandbox, ID);
        assert!(log.starts_with(&intact));
        assert_eq!((log.matches(title).count(), log.matches(tag).count()), (1, 1), "{torn}");
        assert!(
            log.lines().all(|line| line.trim().is_empty() || serde_json::from_str::<Value>(line).is_ok())
        );
        let kept = side_of(&sandbox, ID).join(format!("torn-{}", intact.len()));
        assert_eq!(std::fs::read_to_string(kept).unwrap(), torn);
        assert!(run(&sandbox, &["sessions", "list"]).exits(0).stdout.contains("Mine"));
    }
}

#[test]
fn a_record_behind_a_bad_line_makes_it_damage() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let at = line_of(&sandbox, "assistant");
    change_lines(&sandbox, |lines| {
        lines[at].truncate(30);
        lines[at].push_str("{\"type\":\"tag\",\"tag\":\"t\",\"sessionId\":\"x\"}");
    });
    assert_refused(&sandbox, &server, at + 1, "it is not a JSON object");
}

#[test]
fn a_last_record_without_its_newline_is_whole() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let intact = log_text(&sandbox, ID);
    std::fs::write(log_of(&sandbox, ID), intact.trim_end()).unwrap();
    run_with(&sandbox, &server, &["-p", "second", "--resume", ID]).exits(0);
    assert!(log_text(&sandbox, ID).starts_with(&intact));
}

#[test]
fn every_cut_of_the_last_records_is_survived() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let bytes = std::fs::read(log_of(&sandbox, ID)).unwrap();
    // From the last record's middle back into the record before: all are tails of a writer that died.
    for cut in [1, 2, 9, 40, 200] {
        std::fs::write(log_of(&sandbox, ID), &bytes[..bytes.len() - cut]).unwrap();
        let resumed = run_with(&sandbox, &server, &["--resume", ID, "--output-format", "json"]).exits(0);
        assert_success(&resumed.json(), ID, "first answer");
    }
}

#[test]
fn a_bad_line_in_the_middle_is_refused_shown_and_repaired() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let at = line_of(&sandbox, "assistant");
    change_lines(&sandbox, |lines| lines[at] = "this is not JSON".to_owned());
    assert_refused(&sandbox, &server, at + 1, "it is not a JSON object");
    let shown = run(&sandbox, &["sessions", "show", ID]).exits(0);
    assert!(shown.stdout.contains("> first prompt"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("= done"), "what follows the damage is not shown: {}", shown.stdout);
    shown.says(&[&format!("is damaged at line {}", at + 1), "showing what stands before it"]);
    let request = assert_repaired(&sandbox, &server, &format!("lost 1 lines: {}", at + 1));
    assert!(request["messages"].to_string().contains("first prompt"), "{request}");
}

#[test]
fn a_flipped_byte_is_found_by_the_checksum() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let at = line_of(&sandbox, "user");
    change_lines(&sandbox, |lines| lines[at] = lines[at].replace("first prompt", "First prompt"));
    assert_refused(&sandbox, &server, at + 1, "its checksum does not match its content");
    assert_repaired(&sandbox, &server, &format!("lost 1 lines: {}", at + 1));
}

#[test]
fn a_session_without_its_beginning_is_repaired_in_its_place() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    change_lines(&sandbox, |lines| lines[0] = "{}garbage".to_owned());
    assert_refused(&sandbox, &server, 1, "it is not a JSON object");
    assert_repaired(&sandbox, &server, "lost 1 lines: 1");
    let newest = run(&sandbox, &["sessions", "list", "--json"]).exits(0).json()[0].clone();
    let repaired = records(&sandbox, newest["sessionId"].as_str().unwrap());
    let prompt = repaired.iter().rfind(|record| record["origin"] == "prompt").unwrap();
    assert_eq!(prompt["message"]["content"], "second");
    assert_eq!(prompt["cwd"], sandbox.project().display().to_string());
}

#[test]
fn an_empty_log_is_no_session_but_its_id_can_be_used() {
    let sandbox = Sandbox::new();
    session(&sandbox);
    std::fs::write(log_of(&sandbox, ID), "").unwrap();
    run(&sandbox, &["-p", "x", "--resume", ID]).exits(55).says(&["No conversation found"]);
    assert_eq!(run(&sandbox, &["sessions", "list", "--json"]).exits(0).json(), json!([]));
    run(&sandbox, &["-p", "x", "--session-id", ID]).exits(0);
    assert_eq!(records(&sandbox, ID)[0]["type"], "session-start");
}

#[test]
fn a_gap_and_a_repeat_in_the_numbers_are_refused() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let whole = log_text(&sandbox, ID);
    let at = line_of(&sandbox, "assistant");
    change_lines(&sandbox, |lines| drop(lines.remove(at)));
    assert_refused(&sandbox, &server, at + 1, &format!("record {} follows record {at}", at + 2));
    std::fs::write(log_of(&sandbox, ID), whole).unwrap();
    change_lines(&sandbox, |lines| lines.insert(at, lines[at].clone()));
    assert_refused(&sandbox, &server, at + 2, &format!("record {} follows record {}", at + 1, at + 1));
}

#[test]
fn lines_of_other_programs_are_tolerated_and_kept() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let lines = [
        json!({"type": "custom-title", "customTitle": "a title", "sessionId": ID}).to_string(),
        json!({"type": "tag", "tag": "x", "sessionId": ID}).to_string(),
        json!({"type": "something-new", "deep": {"list": [1, null]}}).to_string(),
        json!({"no": "type"}).to_string(),
        String::new(),
    ];
    append(&sandbox, ID, &(lines.join("\n") + "\n"));
    let resumed = run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "second answer");
    assert!(log_text(&sandbox, ID).contains(&lines.join("\n")));
    run_with(&sandbox, &server, &["-p", "third", "--resume", ID]).exits(0);
}

#[test]
fn records_of_unknown_kinds_are_kept() {
    let sandbox = Sandbox::new();
    let server = session(&sandbox);
    let seq = records(&sandbox, ID).len() as u64 + 1;
    let newer = sealed(&json!({"type": "from-the-future", "what": {"any": 1}, "sessionId": ID,
        "timestamp": "2030-01-01T00:00:00.000Z", "seq": seq, "v": 99}));
    let same = sealed(&json!({"type": "also-unknown", "sessionId": ID,
        "timestamp": "2030-01-01T00:00:00.000Z", "seq": seq + 1, "v": 1}));
    append(&sandbox, ID, &format!("{newer}{same}"));
    let resumed = run_with(&sandbox, &server, &["-p", "second", "--resume", ID, "--output-format", "json"]);
    assert_success(&resumed.exits(0).json(), ID, "second answer");
    let log = log_text(&sandbox, ID);
    assert!(log.contains(&newer) && log.contains(&same));
    let numbers: Vec<u64> =
        records(&sandbox, ID).iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

/// Ten megabytes in which every part differs, with all that JSON has to escape.
fn large_prompt() -> String {
    let mut text = String::with_capacity(10 << 20);
    let mut number = 0_u32;
    while text.len() < 10 << 20 {
        text.push_str(&format!("line {number}: \"é\\\t🦀\n"));
        number += 1;
    }
    text.push_str("the end");
    text
}

#[test]
fn a_prompt_of_ten_megabytes_moves_to_a_blob_and_comes_back() {
    let sandbox = Sandbox::new();
    let server = server(vec![Reply::text("long"), Reply::text("still here")]);
    let prompt = large_prompt();
    feed(online(&sandbox, &server, &["-p", "--session-id", ID]), prompt.as_bytes()).exits(0);
    let log = log_text(&sandbox, ID);
    let longest = log.lines().map(str::len).max().unwrap();
    assert!(longest < 4 << 20, "{longest}");
    let kept = records(&sandbox, ID).into_iter().find(|record| record["origin"] == "prompt").unwrap();
    assert_eq!(kept["type"], "user");
    let name = kept["blobs"]["/message/content"].as_str().unwrap().to_owned();
    let blob = side_of(&sandbox, ID).join("blobs").join(&name);
    assert!(std::fs::read_to_string(&blob).unwrap() == prompt);
    assert!(log.lines().all(|line| line.starts_with("{\"type\":")), "the type is the first field");

    run_with(&sandbox, &server, &["-p", "and now", "--resume", ID]).exits(0);
    let requests = server.requests();
    let text = |index: usize| {
        let content = requests[index].json()["messages"][0]["content"].clone();
        content.as_str().map_or_else(|| content[0]["text"].as_str().unwrap().to_owned(), str::to_owned)
    };
    assert!(text(0) == prompt && text(1) == prompt, "the model reads the same bytes after the resume");

    let fork = ["-p", "a copy", "--resume", ID, "--fork-session", "--session-id", OTHER_ID];
    run_with(&sandbox, &server, &fork).exits(0);
    let copied = side_of(&sandbox, OTHER_ID).join("blobs").join(&name);
    assert!(std::fs::read_to_string(copied).unwrap() == prompt, "a copy has blobs of its own");
    let exported = run(&sandbox, &["sessions", "export", ID]).exits(0).stdout;
    assert!(exported.contains(&prompt), "{} bytes", exported.len());

    std::fs::remove_file(blob).unwrap();
    let at = line_of(&sandbox, "user");
    assert_refused(&sandbox, &server, at + 1, &format!("part of it is missing: blob {name}"));
    let shown = run(&sandbox, &["sessions", "show", ID, "--json"]).exits(0);
    assert_eq!(shown.json()["prompts"], 0);
}

#[test]
fn a_log_of_which_nothing_can_be_read_makes_no_session() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["-p", "one", "--session-id", ID]).exits(0);
    std::fs::write(log_of(&sandbox, ID), "no record\nnor this\n").unwrap();
    run(&sandbox, &["sessions", "repair", ID]).exits(42).says(&["nothing of ", " can be read"]);
    assert_eq!(sandbox.session_files().len(), 1);
}
