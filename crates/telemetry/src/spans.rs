//! A span as the protocol has it: its place in its trace, what it is called, when it was, and how it ended.

use crate::SpanContext;
use crate::attributes::Attributes;
use crate::otlp::{Field, Node, message, one};

/// What a span is to the one around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// Inside the program.
    Internal,
    /// A request to another program.
    Client,
}

/// A span that is over.
#[derive(Debug, Clone)]
pub(crate) struct FinishedSpan {
    pub(crate) context: SpanContext,
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) began_ms: i64,
    pub(crate) ended_ms: i64,
    pub(crate) attributes: Attributes,
    /// What went wrong, in one word and in words for people.
    pub(crate) error: Option<(String, String)>,
}

impl FinishedSpan {
    /// The fields of its message.
    pub(crate) fn fields(self) -> Vec<Field> {
        let kind = match self.kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        };
        let mut fields = vec![
            one(1, "traceId", Node::Identifier(self.context.trace.to_vec())),
            one(2, "spanId", Node::Identifier(self.context.span.to_vec())),
        ];
        fields.extend(self.parent.map(|parent| one(4, "parentSpanId", Node::Identifier(parent.to_vec()))));
        fields.extend([
            one(5, "name", Node::Text(self.name)),
            one(6, "kind", Node::Enumeration(kind)),
            one(7, "startTimeUnixNano", Node::Fixed64(nanos(self.began_ms))),
            one(8, "endTimeUnixNano", Node::Fixed64(nanos(self.ended_ms.max(self.began_ms)))),
        ]);
        let (attributes, status) = match self.error {
            Some((word, text)) => {
                // 2 is the code of an error.
                let status = vec![one(2, "message", Node::Text(text)), one(3, "code", Node::Enumeration(2))];
                (self.attributes.with("error.type", word), Some(status))
            }
            None => (self.attributes, None),
        };
        fields.extend(attributes.fields(9));
        fields.extend(status.map(|status| message(15, "status", status)));
        fields
    }
}

fn nanos(milliseconds: i64) -> u64 {
    u64::try_from(milliseconds).unwrap_or(0).saturating_mul(1_000_000)
}

/// A new id of a span.
pub(crate) fn new_span_id() -> [u8; 8] {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    // Both halves have fixed bits in different places; zero is no id.
    (high ^ low.rotate_left(17)).max(1).to_be_bytes()
}

/// A new id of a trace.
pub(crate) fn new_trace_id() -> [u8; 16] {
    let (first, second) = (new_span_id(), new_span_id());
    let mut trace = [0; 16];
    trace[..8].copy_from_slice(&first);
    trace[8..].copy_from_slice(&second);
    trace
}
