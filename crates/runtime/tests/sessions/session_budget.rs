//! A budget of the session: what earlier runs spent counts, and so does what the log has of agents. A budget of the run starts
//! anew with each run.

use qoder_runtime::sessions::FirstPrompt;
use qoder_types::record::TurnSubtype;
use serde_json::json;

use crate::hooks::support::Stage;
use crate::sessions::support::to_the_end;

/// Each reply costs a dollar; a title costs next to nothing.
fn stage(of_session: bool) -> Stage {
    let reply =
        json!({ "text": "ok", "repeat": true, "usage": { "input_tokens": 1_000_000, "output_tokens": 0 } });
    let mut stage = Stage::new(json!([reply]));
    let prices = json!({ "scripted": { "input": 1.0, "output": 0.0 } });
    stage.options.settings = Some(json!({ "model": { "prices": prices } }).to_string());
    stage.options.max_budget_usd = Some(1.5);
    stage.options.budget_is_of_session = of_session;
    stage
}

fn prompt() -> FirstPrompt {
    FirstPrompt::Text("go".to_owned())
}

#[tokio::test]
async fn a_budget_of_the_session_continues_from_the_recorded_total() {
    let stage = stage(true);
    let ends = [TurnSubtype::Success, TurnSubtype::Success, TurnSubtype::ErrorMaxBudgetUsd];
    for (run, expected) in ends.into_iter().enumerate() {
        let end = to_the_end(&stage, prompt()).await.end.unwrap();
        assert_eq!(end.subtype, expected, "run {run}: {:?}", end.errors);
        // The third run asks no model.
        let spent = f64::from(u32::try_from(run.min(1)).unwrap() + 1);
        assert!((end.total_cost_usd - spent).abs() < 0.01, "run {run}: {}", end.total_cost_usd);
    }
}

#[tokio::test]
async fn a_budget_of_the_run_starts_anew() {
    let stage = stage(false);
    for run in 1..=4 {
        let end = to_the_end(&stage, prompt()).await.end.unwrap();
        assert_eq!(end.subtype, TurnSubtype::Success, "run {run}: {:?}", end.errors);
        assert!((end.total_cost_usd - f64::from(run)).abs() < 0.01, "the total is the session's");
    }
}
