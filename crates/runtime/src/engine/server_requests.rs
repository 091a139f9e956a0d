//! Who answers the questions of MCP servers: the front's callbacks, with the session in between. A question that waits is a
//! parked action like an approval: on record before it is sent, reported to hooks that observe, and on record again when
//! it is answered, taken back, or lost with the process.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{SideModel, SideQuestion, Spent};
use qoder_types::record::Elicited;
use qoder_types::{Actor, HookVerdict, Purpose};
use serde_json::{Map, Value, json};

use crate::callbacks::{Callbacks, OnElicitation, OnMcpOAuth};
use crate::mcp::questions::{
    Elicitation, ElicitationAction, ElicitationAnswer, OAuthAnswer, OAuthQuestion, SampleError,
    SampleMessage, Sampled, Sampling, ServerQuestions,
};
use crate::session::new_id;
use qoder_config::hooks::HookEvent;
use qoder_hooks::{ElicitationWord, Fired, Firing, Occasion};

/// The servers that wait for credentials.
pub(crate) type SigningIn = Arc<Mutex<BTreeSet<String>>>;

/// What questions of servers need of the session: its log, and its model for sampling.
pub(crate) trait QuestionLog: Send + Sync {
    /// Puts a question on record before it is sent; `None` when the session has ended.
    fn open(&self, question: Elicited, input: Map<String, Value>) -> BoxFuture<'_, Option<OpenedQuestion>>;
    /// Puts an answer on record; `None` when the session has ended.
    fn close(
        &self,
        id: String,
        action: &'static str,
        by: Actor,
        input: Map<String, Value>,
    ) -> BoxFuture<'_, Option<OpenedQuestion>>;
    /// Puts on record that the server gave its question up, without waiting for it.
    fn withdraw(&self, id: String);
    /// Puts on record that hooks ran, without waiting for it.
    fn record_hooks(&self, fired: Fired, spent: Spent);
    /// The session's model for a side question.
    fn side_call(&self, spent: Spent) -> BoxFuture<'_, Result<SideModel, String>>;
    /// Puts on record what a side question cost.
    fn record_spent(&self, spent: Spent) -> BoxFuture<'_, Result<(), String>>;
}

/// Answers the questions of servers.
pub struct ServerRequests {
    elicitation: Option<OnElicitation>,
    oauth: Option<OnMcpOAuth>,
    roots: RwLock<Vec<PathBuf>>,
    session: Arc<OnceLock<Arc<dyn QuestionLog>>>,
    signing_in: SigningIn,
}

/// What the session gives to the task that waits for an answer.
pub(crate) struct OpenedQuestion {
    pub(crate) firing: Firing,
    pub(crate) occasion: Option<Occasion>,
    pub(crate) cancelled: qoder_core::ports::Cancelled,
}

impl ServerRequests {
    /// Questions for these callbacks; the session works in `roots`.
    #[must_use]
    pub fn new(callbacks: &Callbacks, roots: Vec<PathBuf>) -> Self {
        Self {
            elicitation: callbacks.on_elicitation(),
            oauth: callbacks.mcp_oauth.clone(),
            roots: RwLock::new(roots),
            session: Arc::default(),
            signing_in: SigningIn::default(),
        }
    }

    /// The servers that wait for credentials.
    pub(crate) fn signing_in(&self) -> SigningIn {
        Arc::clone(&self.signing_in)
    }

    /// Questions belong to this session from now on.
    pub(crate) fn belong_to(&self, session: Arc<dyn QuestionLog>) {
        // There is one session for one engine.
        let _ = self.session.set(session);
    }

    /// The session works in these directories now. True when they are others than before.
    pub(crate) fn set_roots(&self, roots: &[PathBuf]) -> bool {
        let mut known = self.roots.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != roots;
        if changed {
            *known = roots.to_vec();
        }
        changed
    }
}

impl ServerQuestions for ServerRequests {
    fn elicit(&self, question: Elicitation) -> BoxFuture<'static, ElicitationAnswer> {
        let Some(session) = self.session.get().cloned() else {
            return std::future::ready(ElicitationAnswer::cancel()).boxed();
        };
        let parked = Parked {
            session,
            ask: self.elicitation.clone(),
            id: question.elicitation_id.clone().unwrap_or_else(new_id),
            open: false,
        };
        parked.wait(question).boxed()
    }

    fn roots(&self) -> Vec<PathBuf> {
        self.roots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn can_authorize(&self) -> bool {
        self.oauth.is_some()
    }

    fn authorize(&self, question: OAuthQuestion) -> BoxFuture<'static, OAuthAnswer> {
        let Some(ask) = self.oauth.clone() else {
            return std::future::ready(OAuthAnswer::Rejected).boxed();
        };
        let mut waiting = self.signing_in.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(question.server_name.clone());
        // A host that fails has refused.
        async move { ask(question).await.unwrap_or(OAuthAnswer::Rejected) }.boxed()
    }

    fn sample(&self, question: Sampling) -> BoxFuture<'static, Result<Sampled, SampleError>> {
        let Some(session) = self.session.get().cloned() else {
            return std::future::ready(Err(SampleError::Failed("there is no session".to_owned()))).boxed();
        };
        sample(session, question).boxed()
    }
}

/// Asks the session's model for a server. What it costs is counted and on record like any other side call; a budget that is
/// used up holds for servers too.
async fn sample(session: Arc<dyn QuestionLog>, question: Sampling) -> Result<Sampled, SampleError> {
    let spent = Spent::default();
    let ask = session.side_call(Arc::clone(&spent)).await?;
    let answer = ask(SideQuestion {
        purpose: Purpose::Sampling,
        system: question.system_prompt.clone().unwrap_or_default(),
        prompt: conversation(&question.messages),
        max_output_tokens: question.max_tokens,
    });
    let answer = answer.await;
    let model = spent.lock().unwrap_or_else(PoisonError::into_inner).first().map(|call| call.model.clone());
    session.record_spent(spent).await?;
    Ok(Sampled { model: model.unwrap_or_default(), text: answer? })
}

/// One question stays as it is; a conversation is written out.
fn conversation(messages: &[SampleMessage]) -> String {
    match messages {
        [one] => one.text.clone(),
        several => {
            let turn = |message: &SampleMessage| {
                format!("{}:\n{}", if message.is_reply { "Assistant" } else { "User" }, message.text)
            };
            several.iter().map(turn).collect::<Vec<_>>().join("\n\n")
        }
    }
}

/// A question that waits.
struct Parked {
    session: Arc<dyn QuestionLog>,
    ask: Option<OnElicitation>,
    id: String,
    /// True while the log says that it waits.
    open: bool,
}

impl Parked {
    async fn wait(mut self, question: Elicitation) -> ElicitationAnswer {
        let cancel = ElicitationAnswer::cancel();
        let record = Elicited {
            elicitation_id: self.id.clone(),
            server_name: question.server_name.clone(),
            message: question.message.clone(),
            requested_schema: question.requested_schema.clone(),
        };
        let input = hook_fields(&question);
        let opened = self.session.open(record, input).await;
        let Some(OpenedQuestion { firing, occasion, cancelled }) = opened else { return cancel };
        self.open = true;
        let said = observe(&firing, occasion, &*self.session).await;
        let decided = said.and_then(|said| decided(&said, self.ask.is_some()));
        let (answer, by) = match (decided, self.ask.clone()) {
            (Some(answer), _) => (answer, Actor::Named("hook".to_owned())),
            (None, None) => (cancel, Actor::Nobody),
            (None, Some(ask)) => tokio::select! {
                biased;
                () = cancelled => (cancel, Actor::Interrupt),
                answer = ask(question.clone()) => match answer {
                    Ok(answer) => (answer, Actor::Host),
                    Err(_) => (cancel, Actor::Nobody),
                },
            },
        };
        self.close(&question, answer, by).await
    }

    /// Puts the answer on record and calls hooks, which may still take it back. Answers with what counts.
    async fn close(
        &mut self,
        question: &Elicitation,
        answer: ElicitationAnswer,
        by: Actor,
    ) -> ElicitationAnswer {
        self.open = false;
        let (id, action, input) = (self.id.clone(), word(answer.action), result(question, &answer));
        let closed = self.session.close(id, action, by, input).await;
        let Some(OpenedQuestion { firing, occasion, .. }) = closed else { return answer };
        let said = observe(&firing, occasion, &*self.session).await;
        match (said, answer.action) {
            (Some(said), ElicitationAction::Accept) => revised(answer, &said),
            // What was not accepted stays so.
            (Some(_) | None, _) => answer,
        }
    }
}

impl Drop for Parked {
    /// The server gave its question up, or the connection is gone.
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        self.session.withdraw(self.id.clone());
    }
}

/// Calls hooks and puts on record that they ran. Answers with what those said that may decide.
async fn observe(
    firing: &Firing,
    occasion: Option<Occasion>,
    session: &dyn QuestionLog,
) -> Option<ElicitationWord> {
    // A host that is gone is met again by the turn.
    let fired = firing.fire(occasion?).await.ok()??;
    let denied = fired.joined.verdict == Some(HookVerdict::Deny);
    let word = match denied {
        true => Some(ElicitationWord { action: "decline".to_owned(), content: None }),
        false => fired.joined.more.elicitation.clone(),
    };
    let spent = Arc::clone(&firing.spent);
    session.record_hooks(fired, spent);
    word
}

/// The answer that a hook gives to a question. It may always decline; it accepts only where no one else would answer.
fn decided(said: &ElicitationWord, is_answered: bool) -> Option<ElicitationAnswer> {
    match said.action.as_str() {
        "decline" => Some(ElicitationAnswer { action: ElicitationAction::Decline, content: None }),
        "accept" if is_answered => None,
        "accept" => {
            Some(ElicitationAnswer { action: ElicitationAction::Accept, content: said.content.clone() })
        }
        _ => Some(ElicitationAnswer::cancel()),
    }
}

/// An accepted answer with what a hook makes of it.
fn revised(answer: ElicitationAnswer, said: &ElicitationWord) -> ElicitationAnswer {
    match said.action.as_str() {
        "accept" => ElicitationAnswer { content: said.content.clone().or(answer.content), ..answer },
        "decline" => ElicitationAnswer { action: ElicitationAction::Decline, content: None },
        _ => ElicitationAnswer::cancel(),
    }
}

fn hook_fields(question: &Elicitation) -> Map<String, Value> {
    let mut input = Map::new();
    input.insert("mcp_server_name".to_owned(), json!(question.server_name));
    input.insert("message".to_owned(), json!(question.message));
    input.insert("mode".to_owned(), json!(question.mode));
    for (key, value) in [
        ("elicitation_id", question.elicitation_id.as_ref().map(|id| json!(id))),
        ("requested_schema", question.requested_schema.clone()),
        ("title", question.title.as_ref().map(|title| json!(title))),
    ] {
        if let Some(value) = value {
            input.insert(key.to_owned(), value);
        }
    }
    input
}

fn result(question: &Elicitation, answer: &ElicitationAnswer) -> Map<String, Value> {
    let mut input = Map::new();
    input.insert("mcp_server_name".to_owned(), json!(question.server_name));
    input.insert("action".to_owned(), json!(word(answer.action)));
    input.insert("mode".to_owned(), json!(question.mode));
    if let Some(id) = &question.elicitation_id {
        input.insert("elicitation_id".to_owned(), json!(id));
    }
    if let Some(content) = &answer.content {
        input.insert("content".to_owned(), json!(content));
    }
    input
}

fn word(action: ElicitationAction) -> &'static str {
    match action {
        ElicitationAction::Accept => "accept",
        ElicitationAction::Decline => "decline",
        ElicitationAction::Cancel => "cancel",
    }
}

/// The event that a question's input belongs to.
pub(crate) fn event_of(input: &Map<String, Value>) -> HookEvent {
    if input.contains_key("action") { HookEvent::ElicitationResult } else { HookEvent::Elicitation }
}
