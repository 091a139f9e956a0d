//! A stage for one session: a folder, a playbook for the model, hooks that note what they got, and a host that keeps
//! what it read and answers questions if the test says how.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use qoder_config::hooks::{Action, Hook, HookCall, HookFunction, OnFailure, Traits};
use qoder_config::servers::Flags;
use qoder_protocol::{Answer, Question};
use qoder_runtime::Interrupt;
use qoder_runtime::callbacks::Callbacks;
use qoder_runtime::error::DriveError;
use qoder_runtime::events::{Answering, Event, Sink, Wants};
use qoder_runtime::layout::SessionPaths;
use qoder_runtime::sessions::SessionChoice;
use qoder_runtime::sessions::new_id;
use qoder_runtime::sessions::{Finished, FirstPrompt, OpenRequest, OpenedSession, Sessions};
use qoder_runtime::setup::{Options, Setup};
use qoder_runtime::store::jsonl::Durability;
use qoder_runtime::store::{SessionKey, SessionLocation, SessionStore};
use qoder_types::Message;
use qoder_types::record::{InputAdmitted, TurnEnded};
use serde_json::{Value, json};

pub const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// What a host read.
#[derive(Default)]
pub struct Heard {
    pub messages: Mutex<Vec<Value>>,
    pub warnings: Mutex<Vec<String>>,
    pub questions: Mutex<Vec<Question>>,
    /// How questions are answered; `None` when no one answers.
    allow: Option<bool>,
    hook_events: bool,
    answering: Answering,
}

impl Sink for Heard {
    fn wants(&self) -> Wants {
        Wants { hook_events: self.hook_events, ..Wants::default() }
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Message(message) => {
                self.messages.lock().unwrap().push(serde_json::to_value(message).unwrap());
            }
            Event::Warning(text) => self.warnings.lock().unwrap().push(text.to_owned()),
            Event::Asked(asking) => {
                self.questions.lock().unwrap().push((*asking.question).clone());
                let answer = |allow| Answer { allow, by: "tester".into(), ..Answer::default() };
                self.answering.begin(asking, std::future::ready(self.allow.map(answer)).boxed());
            }
            Event::Resolved { action, .. } => self.answering.resolved(action),
            Event::Partial { .. } | Event::ToolOutput { .. } => {}
        }
        Ok(())
    }

    fn answers(&self) -> bool {
        self.allow.is_some()
    }
}

/// What a hook got, one entry per call.
pub type Received = Arc<Mutex<Vec<Value>>>;

pub struct Stage {
    folder: tempfile::TempDir,
    hooks: Vec<Hook>,
    pub options: Options,
    allow: Option<bool>,
    hook_events: bool,
    pub interrupt: Interrupt,
    /// Keeps the session in place of files.
    pub store: Option<Arc<dyn SessionStore>>,
}

/// What became of a run.
pub struct Ran {
    pub end: Option<TurnEnded>,
    pub heard: Arc<Heard>,
    /// The lines of the log.
    pub records: Vec<Value>,
    /// The conversation as the model reads it, one text a message.
    pub conversation: Vec<String>,
}

impl Stage {
    /// A session whose model answers with these replies, in order.
    pub fn new(replies: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir(&project).unwrap();
        let playbook = folder.path().join("playbook.json");
        let replies = Value::Object([("replies".to_owned(), replies)].into_iter().collect());
        std::fs::write(&playbook, replies.to_string()).unwrap();
        let home = folder.path().display().to_string();
        let options = Options {
            cwd: project,
            environment: BTreeMap::from([("HOME".to_owned(), home)]),
            model: Some(format!("scripted:{}", playbook.display())),
            trust: true,
            ..Options::default()
        };
        let interrupt = Interrupt::default();
        Self { folder, hooks: Vec::new(), options, allow: None, hook_events: false, interrupt, store: None }
    }

    /// Questions are answered like this.
    pub fn answering(mut self, allow: bool) -> Self {
        self.allow = Some(allow);
        self
    }

    /// The host wants the events of every hook.
    pub fn with_hook_events(mut self) -> Self {
        self.hook_events = true;
        self
    }

    pub fn rules(mut self, allowed: &[&str], denied: &[&str]) -> Self {
        self.options.allowed_tools = allowed.iter().map(|rule| (*rule).to_owned()).collect();
        self.options.disallowed_tools = denied.iter().map(|rule| (*rule).to_owned()).collect();
        self
    }

    /// A hook that always answers like this.
    pub fn hook(&mut self, event: &str, matcher: Option<&str>, output: Value) -> Received {
        self.hook_by(event, matcher, move |_| Ok(output.clone()))
    }

    pub fn hook_by(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        answer: impl Fn(&Value) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Received {
        let told = Received::default();
        let notes = Arc::clone(&told);
        let function: HookFunction = Arc::new(move |call: HookCall| {
            let answer = answer(&call.input);
            notes.lock().unwrap().push(call.input);
            std::future::ready(answer).boxed()
        });
        self.register(event, matcher, None, Duration::from_secs(60), function);
        told
    }

    /// A hook that never answers.
    pub fn silent_hook(&mut self, event: &str, timeout: Duration) {
        let function: HookFunction = Arc::new(|_| std::future::pending().boxed());
        self.register(event, None, None, timeout, function);
    }

    pub fn register(
        &mut self,
        event: &str,
        matcher: Option<&str>,
        on_failure: Option<OnFailure>,
        timeout: Duration,
        function: HookFunction,
    ) {
        let name = format!("{event} {}", self.hooks.len() + 1);
        let matcher = matcher.map(str::to_owned);
        let (action, traits) = (Action::Function(function), Traits::default());
        self.hooks.push(Hook { event: event.to_owned(), matcher, name, timeout, on_failure, action, traits });
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.options.cwd.join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The folder with the log.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn paths(&self) -> SessionPaths {
        SessionPaths::new(self.folder.path(), SESSION)
    }

    /// Where the log is.
    pub fn log(&self) -> String {
        self.paths().log.display().to_string()
    }

    /// Opens the session, takes the prompts, drives until nothing is left to do, and ends.
    pub async fn run(&self, prompts: &[&str]) -> Ran {
        self.run_in(self.location(), prompts).await
    }

    /// Opens the session and leaves the rest to the test.
    pub fn open(&self, first: FirstPrompt) -> (OpenedSession, Arc<Heard>) {
        self.open_in(self.location(), first)
    }

    fn location(&self) -> SessionLocation {
        match &self.store {
            Some(store) => SessionLocation::new(
                Arc::clone(store),
                SessionKey::main(SESSION),
                self.folder.path().join("outputs"),
            ),
            None => SessionLocation::in_files(&self.paths(), Durability::Process),
        }
    }

    fn open_in(&self, location: SessionLocation, first: FirstPrompt) -> (OpenedSession, Arc<Heard>) {
        let heard = Arc::new(Heard { allow: self.allow, hook_events: self.hook_events, ..Heard::default() });
        let setup = Setup::prepare(self.options.clone()).unwrap();
        let callbacks = Callbacks { hooks: self.hooks.clone(), ..Callbacks::default() };
        let opened = Sessions::default().open(OpenRequest {
            setup,
            callbacks,
            agent: None,
            servers: Flags::default(),
            answers_own_servers: false,
            choice: SessionChoice::default(),
            kept: Some(location),
            first,
            sink: Arc::clone(&heard) as Arc<dyn Sink>,
            mirror: None,
            report: Arc::new(|_| ()),
        });
        (opened.map_err(|error| error.to_string()).unwrap(), heard)
    }

    /// The same with a session that is kept here; its log is where that of any other would be.
    pub async fn run_in(&self, location: SessionLocation, prompts: &[&str]) -> Ran {
        let first = if prompts.is_empty() { FirstPrompt::Continue } else { FirstPrompt::FromHost };
        let (OpenedSession { handle, attachment }, heard) = self.open_in(location, first);
        for text in prompts {
            handle.submit(InputAdmitted::user(new_id(), Message::user(*text))).unwrap();
        }
        let (stop, wanted) = (handle.stopper(), self.interrupt.cancelled());
        let interrupting = tokio::spawn(async move {
            wanted.await;
            stop.interrupt();
        });
        let finished = handle.finished();
        drop(handle);
        let finished = finished.await;
        interrupting.abort();
        drop(attachment);
        match finished.take_error() {
            // Another process has to answer.
            None | Some(DriveError::Waiting(_)) => {}
            Some(error) => panic!("{error}"),
        }
        self.ran(&finished, heard)
    }

    /// What became of a run that has ended.
    pub fn ran(&self, finished: &Finished, heard: Arc<Heard>) -> Ran {
        let (state, end) = (&finished.state, finished.last.clone());
        let conversation = state.prompt.iter().map(|message| text_of(&message.message)).collect();
        let log = std::fs::read_to_string(self.log()).unwrap();
        let records = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Ran { end, heard, records, conversation }
    }
}

fn text_of(message: &Message) -> String {
    serde_json::to_string(&message.content).unwrap()
}

impl Ran {
    /// The records of hooks for an event.
    pub fn hooked(&self, event: &str) -> Vec<&Value> {
        self.of_type("hook").into_iter().filter(|record| record["event"] == event).collect()
    }

    pub fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.records.iter().filter(|record| record["type"] == kind).collect()
    }

    /// The decision about the only call.
    pub fn decision(&self) -> Value {
        let decisions = self.of_type("decision");
        assert_eq!(decisions.len(), 1, "{decisions:?}");
        decisions[0]["decision"].clone()
    }

    /// The outcomes of calls, in order.
    pub fn outcomes(&self) -> Vec<String> {
        let results = self.of_type("user").into_iter().filter(|record| record["origin"] == "tool_result");
        results.map(|record| record["outcome"].as_str().unwrap().to_owned()).collect()
    }

    /// What the model reads of the results.
    pub fn results(&self) -> String {
        self.conversation.iter().filter(|text| text.contains("tool_result")).cloned().collect()
    }

    pub fn said(&self, text: &str) -> bool {
        self.conversation.iter().any(|message| message.contains(text))
    }

    pub fn warned(&self, text: &str) -> bool {
        self.heard.warnings.lock().unwrap().iter().any(|warning| warning.contains(text))
    }

    /// The messages of the host with this subtype.
    pub fn system(&self, subtype: &str) -> Vec<Value> {
        let messages = self.heard.messages.lock().unwrap();
        messages.iter().filter(|message| message["subtype"] == subtype).cloned().collect()
    }

    /// The last result message.
    pub fn result(&self) -> Value {
        let messages = self.heard.messages.lock().unwrap();
        messages.iter().rev().find(|message| message["type"] == "result").cloned().unwrap()
    }
}

/// A reply with one call.
pub fn call(name: &str, input: Value) -> Value {
    let mut call = json!({ "id": "call_1", "name": name });
    call["input"] = input;
    json!({ "toolCalls": [call] })
}

/// A reply with words.
pub fn text(words: &str) -> Value {
    json!({ "text": words })
}

/// The part of an output for one event.
pub fn specific(event: &str, mut part: Value) -> Value {
    part["hookEventName"] = json!(event);
    json!({ "hookSpecificOutput": part })
}

/// A verdict before a call.
pub fn verdict(word: &str, reason: &str) -> Value {
    specific("PreToolUse", json!({ "permissionDecision": word, "permissionDecisionReason": reason }))
}
