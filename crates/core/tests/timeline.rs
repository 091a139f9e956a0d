//! Records become a timeline: spans in the order in which they end, turns around them and totals beside them. Any record
//! may come anywhere.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use qoder_core::timeline::{Happening, Span, Tracker, TurnEnd, What};
use qoder_testkit::LogBuilder;
use qoder_types::record::{Answered, AskKind, Asked, RecordBody};
use qoder_types::{
    Behavior, CallOutcome, Decision, DecisionLayer, HookOutcome, HookRun, HookVerdict, Hooked,
    PermissionMode, Record, ReplayClass, TaskEnded, TaskStarted, TaskStatus,
};
use serde_json::json;

fn followed(records: &[Record]) -> (Tracker, Vec<Span>, Vec<TurnEnd>) {
    let mut tracker = Tracker::default();
    let mut happenings: Vec<Happening> = records.iter().flat_map(|record| tracker.see(record)).collect();
    happenings.extend(tracker.finish());
    let (mut spans, mut turns) = (Vec::new(), Vec::new());
    for happening in happenings {
        match happening {
            Happening::TurnBegan(_) => {}
            Happening::Span(span) => spans.push(*span),
            Happening::TurnEnded(end) => turns.push(*end),
        }
    }
    (tracker, spans, turns)
}

fn asked() -> Asked {
    let decision = Decision {
        behavior: Behavior::Ask,
        layer: DecisionLayer::Mode,
        rule: None,
        origin: None,
        mode: PermissionMode::Default,
        reason: "it runs code of others".to_owned(),
        considered: Vec::new(),
        answered_by: None,
    };
    Asked {
        tool_use_id: "b".to_owned(),
        tool_name: "Bash".to_owned(),
        kind: AskKind::Permission,
        decision,
        suggestions: Vec::new(),
    }
}

fn answered() -> Answered {
    serde_json::from_value(json!({"toolUseId": "b", "allow": true, "by": "maria"})).unwrap()
}

fn hooked() -> Hooked {
    serde_json::from_value(json!({"event": "PreToolUse", "toolUseId": "b", "runs": []})).unwrap()
}

/// A turn with a call about which hooks were asked and a person, and a task that outlives it.
fn log() -> LogBuilder {
    let run = HookRun {
        hook: "h".to_owned(),
        outcome: HookOutcome::Success,
        duration_ms: 250,
        problem: None,
        exit_code: None,
        stderr: None,
    };
    let hooks = Hooked { runs: vec![run], verdict: Some(HookVerdict::Ask), ..hooked() };
    let task = TaskStarted {
        task_id: "bash_1".to_owned(),
        tool_use_id: "b".to_owned(),
        description: "serve".to_owned(),
        task_type: "local_bash".to_owned(),
        output_file: String::new(),
        command: String::new(),
    };
    LogBuilder::new()
        .prompt("go")
        .model_requested()
        .tool_call("b", "Bash", json!({"command": "serve"}))
        .push(RecordBody::Hooked(Box::new(hooks)))
        .push(RecordBody::Asked(Box::new(asked())))
        .push(RecordBody::Answered(Box::new(answered())))
        .decision("b", "Bash", Behavior::Allow)
        .tool_started("b", "Bash", ReplayClass::Effectful)
        .push(RecordBody::TaskStarted(task))
        .tool_result("b", "started", CallOutcome::Completed)
        .assistant_text("it runs")
        .turn_ended("it runs")
        .push(RecordBody::TaskEnded(TaskEnded {
            task_id: "bash_1".to_owned(),
            status: TaskStatus::Completed,
            summary: "done".to_owned(),
            exit_code: Some(0),
            account: None,
        }))
}

#[test]
fn spans_have_the_times_of_their_records() {
    let (tracker, spans, turns) = followed(&log().build());
    let kinds: Vec<String> = spans
        .iter()
        .map(|span| serde_json::to_value(span).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["model", "hooks", "question", "tool", "model", "task"]);
    let lasted: Vec<u64> = spans.iter().map(Span::duration_ms).collect();
    // The builder writes a record a second; hooks say themselves how long they took.
    assert_eq!((lasted[0], lasted[1], lasted[2], lasted[3], lasted[5]), (1000, 250, 1000, 2000, 4000));
    let What::Tool(call) = &spans[3].what else { panic!("{:?}", spans[3]) };
    assert_eq!(call.decision.as_ref().unwrap().behavior, Behavior::Allow);
    assert_eq!((call.outcome, call.result.as_str()), (Some(CallOutcome::Completed), "started"));
    let What::Question(question) = &spans[2].what else { panic!("{:?}", spans[2]) };
    assert_eq!((question.answer.as_deref(), question.by.as_deref()), (Some("allow"), Some("maria")));
    assert_eq!((turns.len(), turns[0].number, turns[0].is_error), (1, 1, false));
    assert!(!tracker.is_unfinished());
    let totals = &tracker.totals;
    assert_eq!((totals.turns, totals.model_calls, totals.tool_calls, totals.denied), (1, 2, 1, 0));
    assert_eq!((totals.time_ms.hooks, totals.time_ms.questions), (250, 1000));
}

#[test]
fn every_prefix_of_a_log_has_a_timeline_and_every_call_appears_once() {
    let records = log().build();
    for length in 0..=records.len() {
        let (tracker, spans, turns) = followed(&records[..length]);
        let calls = spans.iter().filter(|span| matches!(span.what, What::Tool(_))).count() as u64;
        assert_eq!(calls, tracker.totals.tool_calls, "{length}");
        assert_eq!(turns.len() as u64, tracker.totals.turns, "{length}");
        assert!(spans.iter().all(|span| span.ended_ms >= span.began_ms), "{length}");
    }
}

#[test]
fn records_in_any_order_and_without_times_are_followed() {
    let mut records = log().build();
    records.reverse();
    for record in &mut records {
        record.timestamp = "not a time".to_owned();
    }
    let (tracker, spans, _) = followed(&records);
    assert_eq!(tracker.totals.tool_calls, 1);
    assert!(spans.iter().all(|span| span.ended_ms == 0));
}

#[test]
fn a_transcript_of_another_program_has_turns_without_ends() {
    let records =
        LogBuilder::empty().prompt("one").assistant_text("a").prompt("two").assistant_text("b").build();
    let (tracker, spans, turns) = followed(&records);
    assert_eq!((turns.len(), spans.len()), (2, 2));
    assert!(turns.iter().all(|turn| turn.subtype.is_none()) && tracker.is_unfinished());
}

#[test]
fn what_was_kept_before_a_call_belongs_to_the_call() {
    let kept = |call: &str, sha256: Option<&str>| -> RecordBody {
        let record = json!({"toolUseId": call, "message": "m", "path": "/a", "sha256": sha256, "mode": 420});
        RecordBody::FileKept(serde_json::from_value(record).unwrap())
    };
    let mut records = LogBuilder::new()
        .prompt("go")
        .model_requested()
        .tool_calls(vec![("a", "Edit", json!({})), ("b", "Edit", json!({}))])
        .build();
    let mut add = |body: RecordBody| {
        let seq = records.len() as u64 + 1;
        records.push(Record { seq, timestamp: "2026-01-02T03:04:05.678Z".to_owned(), body });
    };
    add(kept("b", Some("0123")));
    add(kept("absent", None));
    let (_, spans, _) = followed(&records);
    let calls: Vec<usize> = spans
        .iter()
        .filter_map(|span| match &span.what {
            What::Tool(call) => Some(call.kept.len()),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [0, 1], "in the order in which they began");
}

#[test]
fn what_an_agent_used_counts_in_the_turn_and_in_the_totals_once() {
    let used = json!({"inputTokens": 30, "outputTokens": 10, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0,
        "webSearchRequests": 0, "costUSD": 0.25, "contextWindow": 0, "maxOutputTokens": 0});
    let account = json!({"agent_id": "a1", "agent_type": "Explore", "tool_use_id": "a", "status": "completed",
        "num_turns": 1, "tool_uses": 0, "duration_ms": 5, "duration_api_ms": 5, "total_cost_usd": 0.25,
        "usage": {"input_tokens": 30, "output_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
        "model_usage": {"m": used}});
    let end = json!({"taskId": "a1", "status": "completed", "summary": "done", "account": account});
    let end: TaskEnded = serde_json::from_value(end).unwrap();
    let start = json!({"taskId": "a1", "toolUseId": "a", "description": "look", "taskType": "local_agent",
        "outputFile": "", "command": "Explore"});
    let start: TaskStarted = serde_json::from_value(start).unwrap();
    let records = LogBuilder::new()
        .prompt("go")
        .push(RecordBody::TaskStarted(start))
        .push(RecordBody::TaskEnded(end.clone()))
        .push(RecordBody::TaskEnded(end))
        .turn_ended("done")
        .build();
    let (tracker, _, turns) = followed(&records);
    assert_eq!((tracker.totals.usage.total_input(), tracker.totals.usage.output_tokens), (30, 10));
    assert_eq!((turns[0].usage.output_tokens, turns[0].cost_usd), (10, 0.25));
    assert_eq!(tracker.totals.by_model["m"].output_tokens, 10);
}
