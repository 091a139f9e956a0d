//! What the scripted server can answer. A reply says nothing about a wire protocol; the path that was called
//! decides how it is rendered. Half of the variants are faults, because a client is judged by what it does with
//! those.

use serde_json::Value;

/// One answer of the scripted server.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Plain text, then the end of the turn.
    Text(String),
    /// Calls of tools, as name and arguments. Their ids are made from the request, so that the same request gets the
    /// same ids.
    ToolCalls(Vec<(String, Value)>),
    /// Any mixture of blocks.
    Blocks {
        /// Reasoning, as text and signature.
        thinking: Option<(String, String)>,
        /// Text.
        text: Option<String>,
        /// Calls of tools, as id, name and arguments.
        tools: Vec<(String, String, Value)>,
        /// Why the model stops, in the words of the Anthropic protocol; by default `tool_use` after calls and
        /// `end_turn` otherwise.
        stop_reason: Option<String>,
        /// Token counts, in the words of the Anthropic protocol.
        usage: Option<Value>,
    },
    /// An answer with this status instead of a stream.
    HttpError {
        /// The HTTP status.
        status: u16,
        /// Further headers, such as `retry-after`.
        headers: Vec<(String, String)>,
        /// The body, usually JSON.
        body: String,
    },
    /// The connection breaks after some events of the reply.
    CutStream {
        /// How many events arrive.
        after_events: usize,
        /// The reply that is cut.
        reply: Box<Reply>,
    },
    /// The stream falls silent after some events of the reply, and then continues.
    StalledStream {
        /// How many events arrive before the silence.
        after_events: usize,
        /// How long the silence lasts.
        ms: u64,
        /// The reply that stalls.
        reply: Box<Reply>,
    },
    /// The stream is silent for a while after every so many events, as a model that takes its time.
    PacedStream {
        /// How many events arrive together.
        events: usize,
        /// How long each silence lasts.
        ms: u64,
        /// The reply that is paced.
        reply: Box<Reply>,
    },
    /// A stream whose first event is not JSON.
    Malformed,
    /// Nothing arrives for a while, and then the reply.
    SlowFirstByte {
        /// How long nothing arrives.
        ms: u64,
        /// The reply that comes late.
        reply: Box<Reply>,
    },
    /// Status 200 with a web page, as from a captive portal or a wrong address.
    Html(String),
    /// The same piece of text many times, each in an event of its own.
    Deltas {
        /// How many pieces.
        count: usize,
        /// The piece.
        text: String,
    },
}

impl Reply {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// One call of a tool.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::ToolCalls(vec![(name.into(), input)])
    }

    /// True when a client will answer this reply with tool results.
    #[must_use]
    pub fn calls_tools(&self) -> bool {
        match self {
            Self::ToolCalls(calls) => !calls.is_empty(),
            Self::Blocks { tools, .. } => !tools.is_empty(),
            Self::SlowFirstByte { reply, .. }
            | Self::StalledStream { reply, .. }
            | Self::PacedStream { reply, .. } => reply.calls_tools(),
            Self::Text(_)
            | Self::HttpError { .. }
            | Self::CutStream { .. }
            | Self::Malformed
            | Self::Html(_)
            | Self::Deltas { .. } => false,
        }
    }
}
