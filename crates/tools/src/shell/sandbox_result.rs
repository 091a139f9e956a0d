//! Between Bash and the sandbox: preparing off the thread that serves others, and what the model reads about it.

use std::sync::Arc;

use qoder_core::ports::{ToolContext, ToolOutcome};
use qoder_process::sandbox::Confinement;
use qoder_process::sandbox::Sandbox;
use qoder_process::sandbox::SandboxError;
use qoder_types::{CallOutcome, ToolResultContent};
use serde_json::json;

use crate::shell::sandbox_choice::{Choice, blocked_note};

/// The confinement for a command that runs inside; `None` for one that runs outside.
pub(crate) async fn confine(
    sandbox: Option<&Arc<Sandbox>>,
    choice: Choice,
    context: &ToolContext,
) -> Result<Option<Confinement>, SandboxError> {
    let sandbox = match (choice, sandbox) {
        (Choice::Outside, _) | (_, None) => return Ok(None),
        (Choice::Inside | Choice::InsideAnyway, Some(sandbox)) => Arc::clone(sandbox),
    };
    let (cwd, roots) = (context.cwd.clone(), Arc::clone(&context.roots));
    // It looks through folders.
    match tokio::task::spawn_blocking(move || sandbox.confine(&cwd, &roots)).await {
        Ok(prepared) => prepared.map(Some),
        Err(error) => Err(SandboxError::Unavailable(error.to_string())),
    }
}

/// What the model reads when a command cannot run confined: the reason, and that it did not run.
pub(crate) fn refused(error: &SandboxError) -> ToolOutcome {
    let text = format!(
        "The command was not run, because it would have to run in the sandbox and that is not possible: {error}. \
         For the person: {}.",
        error.hint()
    );
    let mut outcome = ToolOutcome::failed(text);
    outcome.structured["code"] = json!(error.code());
    outcome
}

/// Adds what the sandbox has to say about a command that is over.
pub(crate) fn annotate(
    sandbox: Option<&Sandbox>,
    choice: Choice,
    command: &str,
    mut outcome: ToolOutcome,
) -> ToolOutcome {
    let Some(sandbox) = sandbox.filter(|_| choice != Choice::Outside) else { return outcome };
    let ToolResultContent::Text(text) = &mut outcome.content else { return outcome };
    let failed = outcome.outcome == CallOutcome::Failed;
    let blocked = failed.then(|| blocked_note(sandbox, command, text)).flatten();
    for note in choice.note().into_iter().chain(blocked) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    outcome
}
