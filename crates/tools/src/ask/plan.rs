//! The ExitPlanMode tool: the model has a plan and asks the person to let it begin.
//!
//! The approval is the effect: a person must answer each time, and with the answer the session goes back to the mode in
//! which it was before planning.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_types::{PermissionMode, PermissionUpdate, ReplayClass, UpdateDestination};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::declared::{BuiltIn, Facts};
use crate::call::schema::Flag;

/// Asks the person to approve your plan and ends plan mode.
///
/// Use it in plan mode only, when you know what is to be changed and how, and nothing is left to find out. Put the
/// whole plan into `plan`: the files to change, the steps, and how you will check the result. Do not use it for
/// questions or research, and ask open questions with AskUserQuestion before.
///
/// The person may approve the plan, which lets you begin, or send it back with a remark; then change the plan and ask
/// again.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ExitPlanModeInput {
    /// The plan, in Markdown, as the person shall read it.
    plan: Option<String>,
    /// Whether the plan is complete. Default true; false leaves plan mode as it is.
    confirm: Option<Flag>,
    /// Hosts and other models add fields of their own; none of them changes what is done.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, Value>")]
    _other: BTreeMap<String, serde::de::IgnoredAny>,
}

/// See [`ExitPlanModeInput`].
#[derive(Debug)]
pub(crate) struct ExitPlanModeTool;

impl BuiltIn for ExitPlanModeTool {
    const NAME: &'static str = "ExitPlanMode";
    const FACTS: Facts =
        Facts { read_only: false, destructive: false, open_world: false, replay: ReplayClass::Pure };
    type Input = ExitPlanModeInput;

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Person]
    }

    async fn run(self: Arc<Self>, input: ExitPlanModeInput, context: ToolContext) -> ToolOutcome {
        exit(input, &context)
    }
}

fn exit(input: ExitPlanModeInput, context: &ToolContext) -> ToolOutcome {
    if context.mode != PermissionMode::Plan {
        return refused(
            "The session is not in plan mode, so there is nothing to leave. Go on with the work.",
        );
    }
    if input.confirm.is_some_and(|confirm| !confirm.0) {
        return refused("`confirm` is false: plan mode goes on. Call again with the finished plan.");
    }
    let mut text = "The person approved the plan and plan mode has ended. Begin with the work.".to_owned();
    let mut structured = json!({ "success": true });
    if let Some(plan) = input.plan.filter(|plan| !plan.trim().is_empty()) {
        text.push_str(" Keep to the plan as it was approved.");
        structured["plan"] = Value::String(plan);
    }
    let mut outcome = ToolOutcome::completed(text, structured);
    outcome.permission_updates.push(PermissionUpdate::SetMode {
        mode: context.mode_after_plan,
        destination: UpdateDestination::Session,
    });
    outcome
}

fn refused(text: &str) -> ToolOutcome {
    let mut outcome = ToolOutcome::failed(text);
    outcome.structured = json!({ "success": false, "error": text });
    outcome
}
