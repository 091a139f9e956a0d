//! Reports the run of one hook to the host, if it wants to know: that it began, what a program writes meanwhile, and how it
//! ended, also when it is withdrawn.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use qoder_core::redact::Secrets;
use qoder_process::{CapturedListener, CapturedStream};
use uuid::Uuid;

use crate::firing::run::Firing;
use crate::outlet::RunReport;
use qoder_config::hooks::HookEvent;

/// The shortest time between two messages about what a program writes.
const PACE: Duration = Duration::from_millis(200);
/// The most such messages of one run.
const MOST_MESSAGES: u32 = 100;
/// The most bytes of one.
const LONGEST_PIECE: usize = 16 * 1024;

/// What the host gets at the end.
#[derive(Debug, Default)]
pub(crate) struct Response<'a> {
    pub(crate) output: &'a str,
    pub(crate) stdout: &'a str,
    pub(crate) stderr: &'a str,
    pub(crate) exit_code: Option<i32>,
    pub(crate) outcome: &'a str,
}

/// The run of one hook, as the host hears of it.
pub(crate) struct Announcement {
    run: Option<Arc<HookRun>>,
}

struct HookRun {
    firing: Firing,
    event: HookEvent,
    hook: String,
    id: String,
}

impl Announcement {
    pub(crate) fn new(firing: &Firing, hook: &str, event: HookEvent) -> std::io::Result<Self> {
        let wanted = firing.outlet.wants_runs() || event == HookEvent::SessionStart;
        let run = wanted.then(|| {
            let id = Uuid::new_v4().to_string();
            Arc::new(HookRun { firing: firing.clone(), event, hook: hook.to_owned(), id })
        });
        if let Some(run) = &run {
            run.report(RunReport::Started)?;
        }
        Ok(Self { run })
    }

    /// Passes on what a program writes, at a bounded pace. What is left out comes with the response.
    pub(crate) fn listener(&self) -> Option<CapturedListener> {
        let run = Arc::clone(self.run.as_ref()?);
        let streams = [(); 2].map(|()| run.firing.redactor.stream(Secrets::All));
        let state = Mutex::new((None::<Instant>, 0_u32, streams));
        Some(Arc::new(move |stream, text| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            let (last, count, [output, errors]) = &mut *state;
            // Everything passes the redactor, also what is left out: a secret may begin in it.
            let text = match stream {
                CapturedStream::Output => output.push_text(text),
                CapturedStream::Errors => errors.push_text(text),
            };
            let late = last.is_none_or(|last| last.elapsed() >= PACE);
            if *count >= MOST_MESSAGES || !late || text.is_empty() {
                return;
            }
            *last = Some(Instant::now());
            *count += 1;
            run.progress(stream, &text);
        }))
    }

    pub(crate) fn end(mut self, response: &Response<'_>) -> std::io::Result<()> {
        match self.run.take() {
            Some(run) => run.respond(response),
            None => Ok(()),
        }
    }
}

impl HookRun {
    fn progress(&self, stream: CapturedStream, text: &str) {
        let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST_PIECE).unwrap_or(text.len());
        let text = &text[..end];
        let (stdout, stderr) = match stream {
            CapturedStream::Output => (text, ""),
            CapturedStream::Errors => ("", text),
        };
        // A host that is gone is met again by the next message of the turn.
        let _ = self.report(RunReport::Progress { stdout: stdout.to_owned(), stderr: stderr.to_owned() });
    }

    fn report(&self, report: RunReport) -> std::io::Result<()> {
        self.firing.outlet.report(&self.id, &self.hook, self.event, report)
    }

    fn respond(&self, response: &Response<'_>) -> std::io::Result<()> {
        let clean = |text: &str| self.firing.redactor.text(text).into_owned();
        self.report(RunReport::Ended {
            output: clean(response.output),
            stdout: clean(response.stdout),
            stderr: clean(response.stderr),
            exit_code: response.exit_code,
            outcome: response.outcome.to_owned(),
        })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            // A host that is gone is met again by the next message of the turn.
            let _ = run.respond(&Response { outcome: "cancelled", ..Response::default() });
        }
    }
}
