//! Takes the lines of the program to where they belong. Requests are served by tasks of their own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use qoder_runtime::sessions::SessionHandle;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::AbortHandle;

use crate::control::{Channel, answer};
use crate::input::Line;
use crate::program::Program;

/// Takes lines to where they belong.
pub(crate) struct Reader {
    pub(crate) handle: SessionHandle,
    pub(crate) channel: Arc<Channel>,
    pub(crate) program: Arc<dyn Program>,
    /// True when requests are served: the output is lines that can carry the answers.
    pub(crate) serves: bool,
    pub(crate) refused: Arc<AtomicBool>,
    /// Requests that are being served.
    pub(crate) tasks: HashMap<String, AbortHandle>,
}

impl Reader {
    pub(crate) async fn read(mut self, first: Option<Line>, mut lines: UnboundedReceiver<Line>) {
        if let Some(line) = first {
            self.take(line);
        }
        while let Some(line) = lines.recv().await {
            self.take(line);
        }
        // No further answer can come. The session ends when the last request is served and its turns are done.
        self.channel.close();
        self.handle.attendance_changed();
    }

    fn take(&mut self, line: Line) {
        match line {
            // A session that has ended takes nothing; its end is reported elsewhere.
            Line::User(input) => drop(self.handle.submit(input)),
            Line::Control { id, request } => self.serve(id, request),
            Line::Response { id, answer } => self.channel.resolve(&id, answer),
            Line::Cancel(id) => {
                if let Some(task) = self.tasks.remove(&id) {
                    task.abort();
                }
            }
            Line::Refused(problem) => {
                self.refused.store(true, Ordering::Relaxed);
                self.program.refused(problem, self.handle.session_id());
            }
            Line::Bad(problem) => {
                self.refused.store(true, Ordering::Relaxed);
                self.program.print_note(&format!("warning: {problem}"));
            }
        }
    }

    fn serve(&mut self, id: String, request: Value) {
        if !self.serves {
            return;
        }
        self.tasks.retain(|_, task| !task.is_finished());
        let (handle, channel, name) = (self.handle.clone(), Arc::clone(&self.channel), id.clone());
        let mut serving = Box::pin(async move {
            let answer = answer(&handle, request).await;
            channel.respond(&name, answer.map_err(|error| error.to_string()));
        });
        // The first step at once, so that what goes to the session keeps the order in which it came.
        if (&mut serving).now_or_never().is_none() {
            self.tasks.insert(id, tokio::spawn(serving).abort_handle());
        }
    }
}
