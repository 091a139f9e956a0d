//! Questions as a person sees them, apart from how they are drawn: what is asked, what can be answered, and the answer that a
//! choice comes to. The same model serves the inline view and line mode.

mod choices;
mod form;
mod permission;
mod plan;
mod trust;

use std::sync::Arc;

use qoder_protocol::{Elicitation, Question};

use crate::state::Tasks;

pub(crate) use choices::{Choices, OneChoice};
pub(crate) use form::{FieldKind, Form};
pub use permission::SettingsFiles;
pub(crate) use permission::{BodyLine, Permission, PermissionChoice};
pub(crate) use plan::{Plan, PlanChoice};
pub use trust::TrustFacts;

/// A question that is open.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    /// A call needs permission.
    Permission(Permission),
    /// A plan is to be approved.
    Plan(Plan),
    /// The model asks something.
    Choices(Choices),
    /// An MCP server asks something.
    Form(Form),
    /// Whether the files of the folder count.
    Trust(TrustFacts),
}

impl Asked {
    /// The model of a question of the gate. `has_judge` says that a model judges calls in auto mode; `tasks` are those of
    /// the session.
    pub(crate) fn of_question(
        question: &Arc<Question>,
        files: &SettingsFiles,
        has_judge: bool,
        tasks: &Tasks,
    ) -> Self {
        let permission = || {
            let agent = question.agent_id.as_ref().and_then(|agent| tasks.get(agent));
            Permission::new(question, files).asked_by(agent.map(|task| task.description.clone()))
        };
        match question.tool_name.as_str() {
            "ExitPlanMode" => Self::Plan(Plan::new(question, has_judge)),
            "AskUserQuestion" => {
                Choices::new(question).map_or_else(|| Self::Permission(permission()), Self::Choices)
            }
            _ => Self::Permission(permission()),
        }
    }

    /// The model of a server's question.
    pub(crate) fn of_elicitation(elicitation: &Arc<Elicitation>) -> Self {
        Self::Form(Form::new(elicitation))
    }

    /// One line for a title or a notification.
    pub(crate) fn headline(&self) -> String {
        match self {
            Self::Permission(permission) => permission.headline(),
            Self::Plan(_) => "A plan waits for approval".to_owned(),
            Self::Choices(_) => "The model has a question".to_owned(),
            Self::Form(form) => format!("MCP server {} has a question", form.server()),
            Self::Trust(_) => "Trust this folder?".to_owned(),
        }
    }
}
