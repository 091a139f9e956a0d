//! The hub of a session: every event of the session and its agents passes it, without secrets, on its way to the sinks that
//! are attached. Warnings also become notices on the message stream, after the `init` message that readers expect first.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use qoder_core::redact::{Redactor, Secrets};
use qoder_protocol::messages::{StreamMessage, SystemMessage};
use qoder_protocol::{ActionId, Answer, Question, Resolution};
use tokio::sync::{Notify, mpsc, oneshot};

use super::questions::Questions;
use super::{AnswerError, ArrivedAnswer, Event, Outlet, Receipt, Sink, Wants};
use crate::events::Notice;
use crate::session::new_id;

/// Passes the events of a session on.
pub struct Hub {
    redactor: Redactor,
    sinks: Arc<RwLock<Sinks>>,
    notices: Mutex<Notices>,
    questions: Mutex<Questions>,
    /// A sink came, went, or stopped answering.
    attendance: Arc<Notify>,
    /// A question was opened.
    opened: Notify,
    /// Asks the one who serves the inbox to look into it.
    looks: Mutex<Option<mpsc::UnboundedSender<oneshot::Sender<()>>>>,
}

#[derive(Default)]
struct Sinks {
    next: u64,
    attached: Vec<(u64, Arc<dyn Sink>)>,
}

/// Notices wait until the stream has begun.
struct Notices {
    /// The session that `init` named.
    session_id: Option<String>,
    waiting: Vec<Notice>,
}

/// A sink that is attached; dropping it detaches the sink.
pub struct AttachedSink {
    hub: Weak<Hub>,
    number: u64,
}

impl Drop for AttachedSink {
    fn drop(&mut self) {
        let Some(hub) = self.hub.upgrade() else { return };
        let mut sinks = hub.sinks.write().unwrap_or_else(PoisonError::into_inner);
        sinks.attached.retain(|(number, _)| *number != self.number);
        drop(sinks);
        hub.attendance.notify_waiters();
    }
}

impl Hub {
    /// A hub that hides what `redactor` knows, with these notices for the stream.
    pub(crate) fn new(redactor: Redactor, notices: &[Notice]) -> Arc<Self> {
        Arc::new(Self {
            redactor,
            sinks: Arc::default(),
            notices: Mutex::new(Notices { session_id: None, waiting: notices.to_vec() }),
            questions: Mutex::default(),
            attendance: Arc::default(),
            opened: Notify::new(),
            looks: Mutex::default(),
        })
    }

    /// Attaches a sink.
    #[must_use]
    pub fn attach(self: &Arc<Self>, sink: Arc<dyn Sink>) -> AttachedSink {
        let mut sinks = self.sinks.write().unwrap_or_else(PoisonError::into_inner);
        let number = sinks.next;
        sinks.next += 1;
        sinks.attached.push((number, sink));
        AttachedSink { hub: Arc::downgrade(self), number }
    }

    /// A sink that answered answers no longer, or answers again.
    pub fn attendance_changed(&self) {
        self.attendance.notify_waiters();
    }

    /// The questions that are open now.
    #[must_use]
    pub fn open_questions(&self) -> Vec<Arc<Question>> {
        self.questions().all()
    }

    /// The questions that were put to answerers and are open.
    #[must_use]
    pub(crate) fn put_questions(&self) -> Vec<Arc<Question>> {
        self.questions().all_put()
    }

    /// Completes when another question is open.
    pub(crate) async fn question_opened(&self) {
        self.opened.notified().await;
    }

    /// Takes over the inbox: every request that arrives wants it looked into, and is confirmed afterwards.
    pub(crate) fn serve_inbox(&self) -> mpsc::UnboundedReceiver<oneshot::Sender<()>> {
        let (sender, looks) = mpsc::unbounded_channel();
        *self.looks.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        looks
    }

    /// Answers an open question; the future resolves to whether the answer counts.
    ///
    /// Without an agent in `action` the call of an agent is meant when no other open question has its id.
    pub fn answer(
        &self,
        action: &ActionId,
        answer: Answer,
        receipt: Receipt,
    ) -> BoxFuture<'static, Result<(), AnswerError>> {
        let asking = {
            let questions = self.questions();
            match questions.find(action) {
                Ok(asking) => asking,
                Err(refusal) => return std::future::ready(Err(refusal)).boxed(),
            }
        };
        asking.answers.answer(&action.tool_use_id, answer, receipt)
    }

    /// Nothing follows: what sinks held back is given.
    ///
    /// # Errors
    /// When it cannot be passed on.
    pub fn end(&self) -> std::io::Result<()> {
        self.attached().iter().try_for_each(|sink| sink.end())
    }

    /// Puts notices onto the stream when it begins. The caller has printed them on stderr already.
    pub(crate) fn hold(&self, notices: impl IntoIterator<Item = Notice>) {
        self.notices().waiting.extend(notices);
    }

    fn notices(&self) -> std::sync::MutexGuard<'_, Notices> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> std::sync::MutexGuard<'_, Questions> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attached(&self) -> Vec<Arc<dyn Sink>> {
        let sinks = self.sinks.read().unwrap_or_else(PoisonError::into_inner);
        sinks.attached.iter().map(|(_, sink)| Arc::clone(sink)).collect()
    }

    /// Gives an event to every sink that wants it. Each gets it; the first failure is reported.
    fn publish(&self, event: Event<'_>) -> std::io::Result<()> {
        let mut outcome = Ok(());
        for sink in self.attached() {
            if is_wanted(&event, sink.wants()) {
                let taken = sink.take(event);
                outcome = outcome.and(taken);
            }
        }
        outcome
    }

    /// Emits what waits, unless the stream has not begun.
    fn emit_notices(&self) -> std::io::Result<()> {
        let (session_id, notices) = {
            let mut state = self.notices();
            let Some(session_id) = state.session_id.clone() else { return Ok(()) };
            (session_id, std::mem::take(&mut state.waiting))
        };
        notices.iter().try_for_each(|notice| {
            let clean = |text: &str| self.redactor.text(text).into_owned();
            let message = SystemMessage::Notice {
                level: "warning".to_owned(),
                kind: notice.kind.as_str().to_owned(),
                message: clean(&notice.text),
                files: notice.files.iter().map(|path| clean(&path.display().to_string())).collect(),
                uuid: new_id(),
                session_id: session_id.clone(),
            };
            self.publish(Event::Message(&StreamMessage::System(message)))
        })
    }
}

/// True when a sink with these wants gets the event.
fn is_wanted(event: &Event<'_>, wants: Wants) -> bool {
    match event {
        Event::Partial { .. } => wants.partial,
        Event::ToolOutput { .. } => wants.tool_output,
        Event::Message(StreamMessage::System(message)) => match message {
            SystemMessage::SessionStateChanged { .. } => wants.session_state,
            SystemMessage::HookStarted { hook_event, .. }
            | SystemMessage::HookProgress { hook_event, .. }
            | SystemMessage::HookResponse { hook_event, .. } => {
                wants.hook_events || hook_event == "SessionStart"
            }
            SystemMessage::Init(_)
            | SystemMessage::ApiRetry { .. }
            | SystemMessage::CompactBoundary { .. }
            | SystemMessage::ConversationCut { .. }
            | SystemMessage::Status { .. }
            | SystemMessage::LocalCommandOutput { .. }
            | SystemMessage::PermissionDenied { .. }
            | SystemMessage::Notice { .. }
            | SystemMessage::McpStatusChange { .. }
            | SystemMessage::TaskStarted { .. }
            | SystemMessage::TaskProgress { .. }
            | SystemMessage::TaskNotification { .. } => true,
        },
        Event::Message(_) | Event::Warning(_) | Event::Asked(_) | Event::Resolved { .. } => true,
    }
}

impl Outlet for Hub {
    fn wants(&self) -> Wants {
        let sinks = self.sinks.read().unwrap_or_else(PoisonError::into_inner);
        sinks.attached.iter().fold(Wants::default(), |wants, (_, sink)| wants.or(sink.wants()))
    }

    fn ready(&self) -> BoxFuture<'static, ()> {
        let behind: Vec<_> =
            self.attached().iter().filter(|sink| !sink.is_ready()).map(|sink| sink.ready()).collect();
        async move { drop(join_all(behind).await) }.boxed()
    }

    fn is_ready(&self) -> bool {
        let sinks = self.sinks.read().unwrap_or_else(PoisonError::into_inner);
        sinks.attached.iter().all(|(_, sink)| sink.is_ready())
    }

    fn emit(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Warning(text) => {
                let text = self.redactor.text(text);
                self.publish(Event::Warning(&text))?;
                self.hold([Notice::from(text.into_owned())]);
                self.emit_notices()
            }
            Event::Message(message @ StreamMessage::System(SystemMessage::Init(init))) => {
                self.publish(Event::Message(message))?;
                self.notices().session_id = Some(init.session_id.clone());
                self.emit_notices()
            }
            Event::Message(StreamMessage::System(SystemMessage::McpStatusChange {
                servers,
                uuid,
                session_id,
            })) => {
                let mut servers = servers.clone();
                for row in &mut servers {
                    self.redactor.json(row, Secrets::All);
                }
                let (uuid, session_id) = (uuid.clone(), session_id.clone());
                let message = SystemMessage::McpStatusChange { servers, uuid, session_id };
                self.publish(Event::Message(&StreamMessage::System(message)))
            }
            event @ (Event::Message(_)
            | Event::Partial { .. }
            | Event::ToolOutput { .. }
            | Event::Asked(_)
            | Event::Resolved { .. }) => self.publish(event),
        }
    }

    fn has_answerer(&self) -> bool {
        self.attached().iter().any(|sink| sink.answers())
    }

    fn unattended(&self) -> BoxFuture<'static, ()> {
        let attendance = Arc::clone(&self.attendance);
        let sinks = Arc::clone(&self.sinks);
        async move {
            loop {
                let changed = attendance.notified();
                tokio::pin!(changed);
                // From here on a change counts, also one before the wait begins.
                changed.as_mut().enable();
                let answers = |(_, sink): &(u64, Arc<dyn Sink>)| sink.answers();
                if !sinks.read().unwrap_or_else(PoisonError::into_inner).attached.iter().any(answers) {
                    return;
                }
                changed.await;
            }
        }
        .boxed()
    }

    fn open(&self, questions: Vec<Question>, arrivals: &mpsc::UnboundedSender<ArrivedAnswer>) {
        let mut open = self.questions();
        questions.into_iter().for_each(|question| open.open(question, arrivals));
        drop(open);
        self.opened.notify_waiters();
    }

    fn take_left_answers(&self) -> BoxFuture<'static, ()> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        async move {
            let (done, looked) = oneshot::channel();
            // Without anyone who serves an inbox there is nothing to wait for.
            if looks.is_some_and(|looks| looks.send(done).is_ok()) {
                let _ = looked.await;
            }
        }
        .boxed()
    }

    fn ask(&self, action: ActionId) -> std::io::Result<()> {
        let Some(asking) = self.questions().put(&action) else { return Ok(()) };
        self.publish(Event::Asked(&asking))
    }

    fn resolve(&self, action: ActionId, resolution: Resolution) -> std::io::Result<()> {
        if !self.questions().close(&action, resolution.clone()) {
            return Ok(());
        }
        self.publish(Event::Resolved { action: &action, resolution: &resolution })
    }

    fn refuse(&self, action: ActionId, late: ArrivedAnswer) {
        let error = self.questions().refusal(&action);
        late.refused(error);
    }
}
