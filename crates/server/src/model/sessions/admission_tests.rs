//! Tests of [`super::admission`].

use serde_json::{Value, json};

use crate::model::admission::{Action, ActionKind, ActionState, Admission, Follows, Head, Taken, admit};
use crate::model::dialect::Dialect;
use crate::model::ids::EventId;
use crate::model::inputs::{self, Effect};
use crate::model::refusal::Refusal;
use crate::model::status::{Status, StopReason};

fn head(status: Status) -> Head {
    Head {
        status,
        is_archived: false,
        is_leased: status == Status::Running,
        has_outcome: false,
        is_self_hosted: true,
    }
}

fn event(number: u8) -> EventId {
    EventId::of_record(crate::model::ids::SessionId([number; 16]), 1_000, "x")
}

fn action(number: u8, kind: ActionKind) -> Action {
    Action {
        event: event(number),
        kind,
        call_id: format!("call_{number}"),
        state: ActionState::Open,
        thread: None,
    }
}

fn message() -> Value {
    json!({ "type": "user.message", "content": "hi" })
}

fn interrupt() -> Value {
    json!({ "type": "user.interrupt" })
}

fn allow(number: u8) -> Value {
    json!({ "type": "user.tool_confirmation", "tool_use_id": event(number), "result": "allow" })
}

fn result(number: u8, text: &str) -> Value {
    json!({ "type": "user.custom_tool_result", "custom_tool_use_id": event(number), "content": text })
}

fn take(head: Head, actions: &[Action], dialect: Dialect, events: &[Value]) -> Result<Admission, Refusal> {
    let inputs = inputs::read(&json!({ "events": events }), &crate::model::files::GivenFiles::new()).unwrap();
    admit(head, actions, (dialect, "token-1"), inputs)
}

fn processed(admission: &Admission) -> Vec<bool> {
    let each = |taken: &Taken| match taken {
        Taken::Stored { is_processed, .. } => *is_processed,
        Taken::Replayed(_) => true,
    };
    admission.taken.iter().map(each).collect()
}

#[test]
fn a_message_begins_a_turn_of_an_idle_session() {
    for dialect in [Dialect::Qoder, Dialect::Claude] {
        let admission = take(head(Status::Idle), &[], dialect, &[message(), message()]).unwrap();
        assert_eq!(processed(&admission), [true, false], "the second waits for its turn");
        assert_eq!((admission.follows, admission.wakes), (Some(Follows::Running), true));
    }
}

#[test]
fn a_message_while_a_turn_runs_is_a_conflict_or_queued() {
    let refused = take(head(Status::Running), &[], Dialect::Qoder, &[message()]).unwrap_err();
    assert!(matches!(refused, Refusal::Conflict { .. }));
    let queued = take(head(Status::Running), &[], Dialect::Claude, &[message()]).unwrap();
    assert_eq!((processed(&queued), queued.follows, queued.wakes), (vec![false], None, false));
    let behind = take(head(Status::Running), &[], Dialect::Qoder, &[interrupt(), message()]).unwrap();
    assert_eq!((processed(&behind), behind.wakes), (vec![true, false], true));
}

#[test]
fn a_message_while_actions_are_pending_is_a_conflict_or_queued() {
    let pending = [action(1, ActionKind::Ask)];
    assert!(take(head(Status::Idle), &pending, Dialect::Qoder, &[message()]).is_err());
    let queued = take(head(Status::Idle), &pending, Dialect::Claude, &[message()]).unwrap();
    assert_eq!((queued.follows, queued.wakes), (None, false));
    let instead = take(head(Status::Idle), &pending, Dialect::Qoder, &[interrupt(), message()]).unwrap();
    assert_eq!((processed(&instead), instead.closes_all), (vec![true, true], true));
    assert_eq!((instead.follows, instead.wakes), (Some(Follows::Running), true));
}

#[test]
fn the_last_answer_resumes_the_turn_and_an_earlier_one_names_the_rest() {
    let pending = [action(1, ActionKind::Ask), action(2, ActionKind::Custom)];
    let partly = take(head(Status::Idle), &pending, Dialect::Qoder, &[result(2, "x")]).unwrap();
    assert_eq!(partly.follows, Some(Follows::Idle(StopReason::requires(&[event(1)]))));
    assert!(!partly.wakes);
    let both = take(head(Status::Idle), &pending, Dialect::Qoder, &[result(2, "x"), allow(1)]).unwrap();
    assert_eq!((both.follows, both.wakes), (Some(Follows::Running), true));
    // The node that drives it reports what is left by itself.
    let leased = Head { is_leased: true, ..head(Status::Running) };
    let early = take(leased, &pending, Dialect::Qoder, &[allow(1)]).unwrap();
    assert_eq!((early.follows, early.wakes), (None, false));
}

#[test]
fn answers_of_the_wrong_kind_unknown_repeated_and_late_ones_are_refused() {
    let pending = [action(1, ActionKind::Ask), action(2, ActionKind::Custom)];
    let of = |events: &[Value]| take(head(Status::Idle), &pending, Dialect::Qoder, events).unwrap_err();
    for (events, field) in [
        (vec![allow(2)], "events[0].tool_use_id"),
        (vec![allow(1), result(1, "x")], "events[1].custom_tool_use_id"),
        (vec![allow(9)], "events[0].tool_use_id"),
    ] {
        match of(&events) {
            Refusal::Invalid(problem) => assert_eq!(problem.field.as_deref(), Some(field)),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(of(&[allow(1), allow(1)]), Refusal::Conflict { .. }));
    let mut closed = action(1, ActionKind::Ask);
    closed.state = ActionState::Closed;
    let late = take(head(Status::Idle), &[closed], Dialect::Qoder, &[allow(1)]).unwrap_err();
    assert!(late.to_string().contains("no longer pending"), "{late}");
    let late = take(head(Status::Idle), &pending, Dialect::Qoder, &[interrupt(), allow(1)]).unwrap_err();
    assert!(late.to_string().contains("no longer pending"), "{late}");
}

#[test]
fn the_same_result_again_is_replayed_in_one_dialect_and_from_one_token() {
    let first = inputs::read(&json!({ "events": [result(1, "x")] }), &crate::model::files::GivenFiles::new())
        .unwrap()
        .remove(0);
    let Effect::Result { digest, .. } = first.effect.clone() else { panic!() };
    let answered = |token: &str| Action {
        state: ActionState::Answered {
            event: first.id,
            token: token.to_owned(),
            digest: Some(digest.clone()),
        },
        ..action(1, ActionKind::Custom)
    };
    let again =
        take(head(Status::Running), &[answered("token-1")], Dialect::Claude, &[result(1, "x")]).unwrap();
    assert_eq!(again.taken, [Taken::Replayed(first.id)]);
    assert!(!again.wakes && again.follows.is_none());
    for (token, dialect, text) in [
        ("token-2", Dialect::Claude, "x"),
        ("token-1", Dialect::Qoder, "x"),
        ("token-1", Dialect::Claude, "y"),
    ] {
        let refused = take(head(Status::Running), &[answered(token)], dialect, &[result(1, text)]);
        assert!(matches!(refused, Err(Refusal::Conflict { .. })), "{token} {dialect:?} {text}");
    }
}

#[test]
fn an_interrupt_without_anything_to_stop_is_stored_and_changes_nothing() {
    let nothing = take(head(Status::Idle), &[], Dialect::Qoder, &[interrupt()]).unwrap();
    assert!(
        matches!(&nothing.taken[..], [Taken::Stored { entries, is_processed: true, .. }] if entries.is_empty())
    );
    assert!(!nothing.wakes && nothing.follows.is_none() && !nothing.closes_all);
}

#[test]
fn a_session_that_is_over_takes_nothing() {
    let archived = Head { is_archived: true, ..head(Status::Idle) };
    for head in [archived, head(Status::Terminated)] {
        for event in [message(), interrupt()] {
            assert!(take(head, &[], Dialect::Claude, &[event]).is_err());
        }
    }
}
