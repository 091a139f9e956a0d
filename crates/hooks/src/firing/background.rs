//! What hooks say after their caller continued: recorded when it comes, context of the next turn, and may wake the model.
//! Also what a session keeps of its hooks between two steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use qoder_core::ports::Spent;
use qoder_types::{HookVerdict, Hooked};

use crate::answers::join::join;
use crate::answers::output::bounded;
use crate::firing::run::{Answered, Fired, Firing, Occasion};
use crate::watching::watch::Watched;
use crate::watching::workspace::WorkspaceWatch;
use qoder_config::hooks::Background;
use qoder_config::hooks::{Hook, HookEvent};
use qoder_config::memory::LoadedFiles;

/// What a hook said after its caller had continued.
pub struct BackgroundAnswer {
    /// For the log.
    pub record: Hooked,
    /// For the next turn.
    pub context: Option<String>,
    /// For the model, now.
    pub wake: Option<String>,
    /// What it cost.
    pub spent: Spent,
}

/// What a session keeps of its hooks between two steps.
#[derive(Debug, Default)]
pub struct Remembered {
    /// Texts for the model when the next turn begins.
    pub for_next_turn: Vec<String>,
    /// What keeps the turn that runs from ending.
    pub wake: Vec<String>,
    /// Inputs that hooks made.
    pub own_inputs: BTreeSet<String>,
    /// The input of a hook that goes before all others.
    pub first_input: Option<String>,
    /// How often hooks woke the model since the last prompt of a person.
    pub wakes: u32,
    /// The conversation is to be forgotten with the end of the turn.
    pub clear_context: bool,
    /// What hooks want to know the changes of.
    pub watched: Watched,
    /// The workspace, while a hook wants to know of changed files.
    pub workspace: Option<WorkspaceWatch>,
    /// The memory files that the model has.
    pub memory: LoadedFiles,
    /// A turn has begun, and the session has not checked yet whether they changed.
    pub memory_due: bool,
}

impl Firing {
    /// Brings a late answer to the session.
    pub(crate) fn deliver(&self, event: HookEvent, hook: &Hook, answered: &Answered) {
        let wake = match &hook.traits.background {
            Background::Rewake { message, summary } if answered.exit_code == Some(2) => {
                if let Some(summary) = summary {
                    // A host that is gone is met again by the turn.
                    let _ = self.outlet.warn(&self.redactor.text(summary));
                }
                let words =
                    message.as_deref().unwrap_or("A hook that ran in the background wants you to know:");
                let words = format!("{words}\n{}", bounded(answered.stderr.trim()));
                Some(format!("<system-reminder>\n{}\n</system-reminder>", words.trim()))
            }
            Background::No | Background::Yes | Background::Rewake { .. } => None,
        };
        let answer = match wake.is_some() {
            true => &Answered { answer: Ok(serde_json::json!({})), ..copy(answered) },
            false => answered,
        };
        let Ok((run, said)) = self.take(event, hook, answer, false) else { return };
        let joined = join([(hook.name.as_str(), said)]);
        let mut record = joined.record(event, None, vec![run]);
        // It is too late to decide about anything.
        let blocked = record.verdict.take() == Some(HookVerdict::Deny);
        (record.stop, record.updated_input, record.by) = (None, None, None);
        let reason = joined.reason.filter(|_| blocked && wake.is_none());
        let texts: Vec<String> = reason.into_iter().chain(joined.context).collect();
        let context = (!texts.is_empty()).then(|| texts.join("\n\n"));
        let late = BackgroundAnswer { record, context, wake, spent: self.spent.clone() };
        self.hooks.arrived(late);
    }

    /// Puts on record that hooks ran beside the driver.
    pub fn keep(&self, fired: Fired) -> Fired {
        let mut record = fired.record.clone();
        (record.stop, record.updated_input) = (None, None);
        self.hooks.arrived(BackgroundAnswer {
            record,
            context: None,
            wake: None,
            spent: Arc::clone(&self.spent),
        });
        fired
    }

    /// Calls hooks that only observe and that no caller waits for.
    pub fn fire_aside(self, occasion: Occasion) {
        let hooks = Arc::clone(&self.hooks);
        let spent = Arc::clone(&self.spent);
        // When too much runs already, this one is not called.
        hooks.run_beside(true, async move {
            // A host that is gone is met again by the turn.
            let Ok(Some(Fired { joined, mut record })) = self.fire(occasion).await else { return };
            (record.verdict, record.stop, record.updated_input) = (None, None, None);
            self.hooks.arrived(BackgroundAnswer { record, context: joined.context, wake: None, spent });
        });
    }
}

fn copy(answered: &Answered) -> Answered {
    Answered {
        answer: answered.answer.clone(),
        elapsed: answered.elapsed,
        exit_code: answered.exit_code,
        stdout: answered.stdout.clone(),
        stderr: answered.stderr.clone(),
    }
}
