//! One call in the tool host: the context that its tool gets, and what goes back to the caller while it runs.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures::FutureExt;
use qoder_core::permissions::SessionPermissions;
use qoder_core::ports::{
    Cancelled, Hidden, Outputs, ProgressSink, Spent, ToolContext, ToolOutcome, ToolProgress,
};
use qoder_process::TaskFile;
use qoder_types::PermissionMode;
use serde_json::Value;
use tokio::sync::watch;

use super::lines::{Sender, encode};
use super::message::{Context, FromHost, Outcome, PIECE};
use super::serve::{Host, lock};

/// A call that runs.
pub(crate) struct Running {
    cancel: watch::Sender<bool>,
    tool_use_id: String,
}

impl Running {
    pub(crate) fn new(cancel: watch::Sender<bool>, tool_use_id: String) -> Self {
        Self { cancel, tool_use_id }
    }

    pub(crate) fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    pub(crate) fn tool_use_id(&self) -> &str {
        &self.tool_use_id
    }
}

/// Runs a call and reports its result.
pub(crate) async fn run_call(
    host: Arc<Host>,
    (call, tool, input): (u64, String, Value),
    context: Context,
    cancelled: watch::Receiver<bool>,
) {
    let found = host.tools.iter().find(|one| one.definition().name == tool);
    let outcome = match found {
        Some(tool) => {
            let run = tool.run(input, tool_context(&host, call, context, cancelled));
            AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_| {
                let text = "internal error: the tool panicked; its effect is unknown. This is a bug; please report it.";
                ToolOutcome::failed(text)
            })
        }
        None => ToolOutcome::failed(format!("The environment has no tool {tool}.")),
    };
    lock(&host.running).remove(&call);
    let result = Outcome {
        content: outcome.content,
        outcome: outcome.outcome,
        structured: outcome.structured,
        observations: outcome.observations,
        new_cwd: outcome.new_cwd.and_then(|cwd| cwd.into_os_string().into_string().ok()),
    };
    host.sender.send(&FromHost::Result { call, result: Box::new(result) });
}

fn tool_context(
    host: &Arc<Host>,
    call: u64,
    context: Context,
    mut cancelled: watch::Receiver<bool>,
) -> ToolContext {
    let asked = Arc::clone(host);
    let hides = context.hides.then(|| {
        let asked = Arc::clone(host);
        Arc::new(move |path: &Path| asked.asking.is_hidden(call, path)) as Hidden
    });
    let cancelled: Cancelled = async move {
        // The sender goes when the call has ended: then no one waits for this.
        let _ = cancelled.wait_for(|wanted| *wanted).await;
    }
    .boxed()
    .shared();
    ToolContext {
        session_id: context.session_id,
        tool_use_id: context.tool_use_id,
        cwd: context.cwd,
        roots: context.roots.into(),
        outputs: Outputs { directory: context.outputs, redactor: host.redactor.clone() },
        observed: Arc::new(move |path| asked.asking.observed(call, path)),
        keep_before: None,
        hidden: hides,
        cancelled,
        progress: progress(host, call),
        environment: Arc::clone(&host.environment),
        side_model: None,
        spent: Spent::default(),
        permissions: SessionPermissions::default(),
        mode: PermissionMode::Default,
        mode_after_plan: PermissionMode::Default,
        worktree: None,
        shared: Arc::clone(&host.shared) as Arc<dyn std::any::Any + Send + Sync>,
    }
}

fn progress(host: &Arc<Host>, call: u64) -> ProgressSink {
    let host = Arc::downgrade(host);
    Arc::new(move |progress| {
        let Some(host) = host.upgrade() else { return };
        match progress {
            ToolProgress::Output(text) => host.sender.send(&FromHost::Output { call, text }),
            ToolProgress::TaskStarted { start, receipt } => {
                lock(&host.announced).insert(start.task_id.clone(), receipt);
                let file = host.shared.task(&start.task_id).and_then(|task| task.file.clone());
                if let Some(file) = file {
                    tokio::spawn(follow(host.sender.clone(), Arc::clone(&host), start.task_id.clone(), file));
                }
                host.sender.send(&FromHost::TaskStarted { call, start });
            }
            // What the task says reaches the caller, which reports by itself; its end follows the last of it.
            ToolProgress::TaskProgress { .. } | ToolProgress::TaskParked(_) | ToolProgress::TaskEnded(_) => {}
        }
    })
}

/// Sends what a task says, and then how it ended.
async fn follow(sender: Sender, host: Arc<Host>, id: String, file: TaskFile) {
    let Some(task) = host.shared.task(&id) else { return };
    let mut sent = 0;
    loop {
        let has_ended = tokio::select! {
            biased;
            () = file.more_than(sent) => false,
            () = task.ended() => true,
        };
        let taken = file.taken();
        sent = send_file(&sender, &id, &file, sent).await;
        if has_ended {
            break;
        }
        // What is not kept, because the file is full, is not sent either.
        sent = sent.max(taken);
    }
    if let Some(end) = task.end() {
        sender.send(&FromHost::TaskEnded { end });
    }
}

/// Sends what the file has beyond this place.
async fn send_file(sender: &Sender, id: &str, file: &TaskFile, from: u64) -> u64 {
    let (sender, id, path) = (sender.clone(), id.to_owned(), file.path().to_path_buf());
    let sending = tokio::task::spawn_blocking(move || {
        use std::os::unix::fs::FileExt;
        let Ok(file) = std::fs::File::open(&path) else { return from };
        let (mut at, mut piece) = (from, vec![0; PIECE]);
        while let Ok(count @ 1..) = file.read_at(&mut piece, at) {
            sender.send(&FromHost::TaskOutput { task: id.clone(), data: encode(&piece[..count]) });
            at += count as u64;
        }
        at
    });
    sending.await.unwrap_or(from)
}
