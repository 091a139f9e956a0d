//! The rules of the log, as properties over generated sessions: continuing from any prefix reaches an equal end (1), no
//! effectful call starts twice (2), the prompt only grows (3), no call runs without a decision (6), unknown records are
//! passed over (8), limits always end in a terminal record (9), and a background task ends once and is reported once. A
//! simulated driver does what the real one does, without IO.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod simulation;

use proptest::prelude::*;
use qoder_core::fold::fold;
use qoder_types::record::{RecordBody, TurnSubtype, Unknown};
use qoder_types::{Behavior, Record, ReplayClass};
use serde_json::value::RawValue;

use simulation::{Scenario, normalised_prompt, run, scenarios};

fn settings() -> ProptestConfig {
    ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn continuing_from_any_prefix_reaches_an_equal_end(scenario in scenarios()) {
        let whole = run(Vec::new(), &scenario);
        let expected = normalised_prompt(&fold(&whole));
        for length in 0..whole.len() {
            let continued = run(whole[..length].to_vec(), &scenario);
            let state = fold(&continued);
            prop_assert!(!state.is_unfinished(), "prefix {length} of {}", whole.len());
            prop_assert_eq!(normalised_prompt(&state), expected.clone(), "prefix {} of {}", length, whole.len());
            prop_assert_eq!(ends(&continued), ends(&whole));
        }
    }

    #[test]
    fn an_effectful_call_starts_at_most_once_and_every_call_ends(scenario in scenarios(), cuts in prop::collection::vec(0.0_f64..1.0, 1..6)) {
        let mut records = run(Vec::new(), &scenario);
        for cut in cuts {
            let kept = ((records.len() as f64) * cut) as usize;
            records = run(records[..kept].to_vec(), &scenario);
        }
        let mut started = std::collections::HashSet::new();
        for record in &records {
            if let RecordBody::ToolStarted(start) = &record.body
                && start.replay == ReplayClass::Effectful
            {
                prop_assert!(started.insert(start.tool_use_id.clone()), "{} started twice", start.tool_use_id);
            }
        }
        prop_assert_eq!(fold(&records).open_calls().count(), 0);
    }

    #[test]
    fn a_task_ends_once_and_is_told_at_most_once(scenario in scenarios(), cuts in prop::collection::vec(0.0_f64..1.0, 0..6)) {
        let mut records = run(Vec::new(), &scenario);
        for cut in cuts {
            let kept = ((records.len() as f64) * cut) as usize;
            records = run(records[..kept].to_vec(), &scenario);
        }
        let (mut ended, mut told) = (std::collections::HashSet::new(), std::collections::HashSet::new());
        for record in &records {
            match &record.body {
                RecordBody::TaskEnded(end) => prop_assert!(ended.insert(end.task_id.clone()), "{} ended twice", end.task_id),
                RecordBody::User(entry) => for id in &entry.tasks {
                    prop_assert!(ended.contains(id), "{id} was told before its end");
                    prop_assert!(told.insert(id.clone()), "{id} was told twice");
                },
                // The model is never asked while the end of a task waits to be reported.
                RecordBody::ModelRequested(_) => prop_assert_eq!(&ended, &told),
                _ => {}
            }
        }
        let state = fold(&records);
        prop_assert_eq!(state.running_tasks().count(), 0);
        prop_assert_eq!(ended.len(), state.tasks.len());
        prop_assert_eq!(state.untold_tasks().count(), ended.len() - told.len());
    }

    #[test]
    fn the_prompt_only_grows_between_epochs(scenario in scenarios()) {
        let records = run(Vec::new(), &scenario);
        let mut state = qoder_core::State::default();
        let mut before: Option<(u32, Vec<String>)> = None;
        for record in &records {
            state.apply(record);
            if !matches!(record.body, RecordBody::ModelRequested(_)) {
                continue;
            }
            let request = qoder_core::render::request(&state, &qoder_core::render::RenderOptions::default());
            let texts: Vec<String> =
                request.messages.iter().map(|message| serde_json::to_string(&message.message).unwrap()).collect();
            let epoch = state.epoch.as_ref().map_or(0, |epoch| epoch.number);
            if let Some((old_epoch, old)) = &before
                && *old_epoch == epoch
            {
                prop_assert!(texts.starts_with(old), "{:?} is not a prefix of {:?}", old, texts);
            }
            before = Some((epoch, texts));
        }
    }

    #[test]
    fn nothing_runs_without_an_allowing_decision(scenario in scenarios()) {
        let records = run(Vec::new(), &scenario);
        let mut allowed = std::collections::HashSet::new();
        for record in &records {
            match &record.body {
                RecordBody::Decided(decided) if decided.decision.behavior == Behavior::Allow => {
                    allowed.insert(decided.tool_use_id.clone());
                }
                RecordBody::ToolStarted(start) => prop_assert!(allowed.contains(&start.tool_use_id)),
                _ => {}
            }
        }
    }

    #[test]
    fn unknown_records_are_passed_over(scenario in scenarios(), places in prop::collection::vec(0.0_f64..1.0, 1..4)) {
        let records = run(Vec::new(), &scenario);
        let mut mixed = records.clone();
        for place in places {
            let raw = RawValue::from_string("{\"type\":\"of-the-future\"}".to_owned()).unwrap();
            let at = ((mixed.len() as f64) * place) as usize;
            let body = RecordBody::Unknown(Unknown { kind: "of-the-future".to_owned(), raw });
            mixed.insert(at, Record { seq: 0, timestamp: String::new(), body });
        }
        let (with, without) = (fold(&mixed), fold(&records));
        prop_assert_eq!(normalised_prompt(&with), normalised_prompt(&without));
        prop_assert_eq!(with.last_turn, without.last_turn);
        prop_assert_eq!(with.totals, without.totals);
    }

    #[test]
    fn a_limit_always_ends_in_a_terminal_record(scenario in scenarios(), most in 1_u64..4) {
        let scenario = Scenario { max_turns: Some(most), ..scenario };
        let records = run(Vec::new(), &scenario);
        let prompts = scenario.prompts.len();
        let ended: Vec<_> = ends(&records);
        prop_assert_eq!(ended.len(), prompts, "every turn has an end");
        for (subtype, calls) in ended {
            prop_assert!(calls <= most);
            prop_assert!(subtype != TurnSubtype::ErrorMaxTurns || calls == most);
        }
    }
}

fn ends(records: &[Record]) -> Vec<(TurnSubtype, u64)> {
    records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::TurnEnded(end) => Some((end.subtype, end.num_turns)),
            _ => None,
        })
        .collect()
}
