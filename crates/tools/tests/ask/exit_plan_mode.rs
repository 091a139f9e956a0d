//! ExitPlanMode: only in plan mode, and then back to the mode that was before.

use crate::common::{Bench, text};
use qoder_types::{CallOutcome, PermissionMode, PermissionUpdate, UpdateDestination};
use serde_json::json;

#[tokio::test]
async fn an_approved_plan_returns_to_the_earlier_mode() {
    let mut bench = Bench::new();
    bench.mode = PermissionMode::Plan;
    bench.mode_after_plan = PermissionMode::AcceptEdits;
    let input = json!({ "plan": "1. Do it", "allowedPrompts": [{ "tool": "Bash" }], "confirm": "true" });
    let outcome = bench.run("ExitPlanMode", input).await;
    assert_eq!(outcome.outcome, CallOutcome::Completed, "{}", text(&outcome));
    assert_eq!(outcome.structured, json!({ "success": true, "plan": "1. Do it" }));
    let expected = PermissionUpdate::SetMode {
        mode: PermissionMode::AcceptEdits,
        destination: UpdateDestination::Session,
    };
    assert_eq!(outcome.permission_updates, [expected]);
    assert_eq!(bench.run("ExitPlanMode", json!({})).await.structured, json!({ "success": true }));
}

#[tokio::test]
async fn elsewhere_and_unconfirmed_it_changes_nothing() {
    let mut bench = Bench::new();
    let outcome = bench.run("ExitPlanMode", json!({ "plan": "x" })).await;
    assert_eq!(outcome.outcome, CallOutcome::Failed);
    assert!(text(&outcome).contains("not in plan mode") && outcome.permission_updates.is_empty());
    assert_eq!(outcome.structured["success"], false);
    bench.mode = PermissionMode::Plan;
    let outcome = bench.run("ExitPlanMode", json!({ "confirm": false })).await;
    assert!(outcome.outcome == CallOutcome::Failed && outcome.permission_updates.is_empty());
}
