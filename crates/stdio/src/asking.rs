//! The sink of a program that answers questions: messages go out as lines, and what the gate leaves open goes out as a
//! `can_use_tool` request. An error and an answer that cannot be read are denials; when the program closes its side, no one is
//! attached any longer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_protocol::control::RuntimeRequest;
use qoder_protocol::messages::StreamMessage;
use qoder_protocol::{Answer, Question};
use qoder_runtime::events::{Answering, Asking, Event, Sink, Wants};
use qoder_runtime::sessions::{PermissionTool, SessionHandle};
use qoder_types::AskKind;

use crate::console::Console;
use crate::control::Channel;
use crate::output::{ChangedCut, JsonLines, Shown};

/// Who answers what the gate leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    /// No one: what would ask is unattended.
    Nobody,
    /// The program that started us.
    Program,
    /// A tool of an MCP server.
    Tool(String),
}

/// A sink that can ask.
pub(crate) struct AskingSink {
    lines: Arc<JsonLines>,
    console: Arc<dyn Console>,
    channel: Arc<Channel>,
    asks: Asks,
    answering: Answering,
    /// The tool that answers, once there is a session.
    tool: OnceLock<PermissionTool>,
    /// True while the last that happened was a line that cannot be used.
    refused: Arc<AtomicBool>,
}

impl AskingSink {
    /// Puts questions to the program that `asks` names; without one, what would ask is unattended.
    pub(crate) fn new(
        (lines, console): (Arc<JsonLines>, Arc<dyn Console>),
        channel: Arc<Channel>,
        asks: Asks,
        refused: Arc<AtomicBool>,
    ) -> Self {
        let answering = Answering::default();
        Self { lines, console, channel, asks, answering, tool: OnceLock::new(), refused }
    }

    /// Makes the session known, whose servers may have the tool that answers.
    pub(crate) fn know_session(&self, session: &SessionHandle) {
        if let Asks::Tool(tool) = &self.asks {
            // There is one session.
            let _ = self.tool.set(session.permission_tool(tool));
        }
    }

    fn ask(&self, asking: &Asking) {
        // The result of a call that runs outside comes from the program that declared its tool.
        if asking.question.kind == AskKind::External {
            return;
        }
        let question = Arc::clone(&asking.question);
        let answer = match &self.asks {
            Asks::Nobody => return,
            Asks::Program => self.ask_program(question),
            Asks::Tool(_) => self.ask_tool(question),
        };
        self.answering.begin(asking, answer);
    }

    fn ask_program(&self, question: Arc<Question>) -> BoxFuture<'static, Option<Answer>> {
        let mut request = question.to_request();
        let shown = Shown::new(std::mem::take(&mut request.input));
        request.input = shown.sent().clone();
        let asked = self.channel.request(RuntimeRequest::CanUseTool(Box::new(request)));
        let (channel, console) = (Arc::clone(&self.channel), Arc::clone(&self.console));
        async move {
            let (answer, problems) = match asked.await {
                Ok(answer) => Answer::read(&answer),
                // The program is gone: the posture decides, which the session applies, and withdraws the question.
                Err(_) if !channel.is_open() => std::future::pending().await,
                Err(problem) => (Answer::denial(problem), Vec::new()),
            };
            problems.iter().for_each(|problem| console.print_note(&format!("warning: {problem}")));
            let answer =
                restored(answer, &shown).unwrap_or_else(|changed| Answer::denial(changed.to_string()));
            Some(answer.keep_original(&question.input))
        }
        .boxed()
    }

    fn ask_tool(&self, question: Arc<Question>) -> BoxFuture<'static, Option<Answer>> {
        let asked = self.tool.get().map(|ask| ask(question));
        let console = Arc::clone(&self.console);
        async move {
            let (answer, problems) = asked?.await?;
            problems.iter().for_each(|problem| console.print_note(&format!("warning: {problem}")));
            Some(answer)
        }
        .boxed()
    }
}

/// The answer with the input that it stands for.
fn restored(answer: Answer, shown: &Shown) -> Result<Answer, ChangedCut> {
    let updated_input = answer.updated_input.map(|input| shown.restore(input)).transpose()?;
    Ok(Answer { updated_input, ..answer })
}

impl Sink for AskingSink {
    fn wants(&self) -> Wants {
        self.lines.wants()
    }

    fn take(&self, event: Event<'_>) -> std::io::Result<()> {
        match event {
            Event::Asked(asking) => self.ask(asking),
            Event::Resolved { action, .. } => self.answering.resolved(action),
            Event::Message(message) => {
                if matches!(message, StreamMessage::Result(_)) {
                    // The last result decides, and this one is newer than lines that were refused before.
                    self.refused.store(false, Ordering::Relaxed);
                }
                return self.lines.take(event);
            }
            Event::Partial { .. } | Event::ToolOutput { .. } | Event::Warning(_) => {
                return self.lines.take(event);
            }
        }
        Ok(())
    }

    fn answers(&self) -> bool {
        self.asks != Asks::Nobody && self.channel.is_open()
    }
}
