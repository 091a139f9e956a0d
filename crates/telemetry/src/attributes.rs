//! Attributes of spans and measurements: names with values, and the words that stand for our own enums in them.

use qoder_types::{Behavior, CallOutcome, DecisionLayer, HookOutcome, HookVerdict, ModelFailure, Purpose};
use serde_json::Value;

use crate::otlp::{Field, Node, each, message, one};

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attribute {
    Text(String),
    Whole(i64),
    Number(f64),
    Texts(Vec<String>),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Attribute {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// Names with values, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attributes(Vec<(&'static str, Attribute)>);

impl Attributes {
    /// One more.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Attribute>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    /// One more, if there is a value.
    pub(crate) fn maybe(self, name: &'static str, value: Option<impl Into<Attribute>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The fields of a message, under this number.
    pub(crate) fn fields(&self, number: u32) -> impl Iterator<Item = Field> {
        self.0.iter().map(move |(name, value)| each(number, "attributes", Node::Message(pair(name, value))))
    }

    /// A text that is equal for equal attributes.
    pub(crate) fn key(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The fields of a name with its value.
pub(crate) fn pair(name: &str, value: &Attribute) -> Vec<Field> {
    vec![one(1, "key", Node::Text(name.to_owned())), message(2, "value", vec![any(value)])]
}

fn any(value: &Attribute) -> Field {
    match value {
        Attribute::Text(text) => one(1, "stringValue", Node::Text(text.clone())),
        Attribute::Whole(number) => one(3, "intValue", Node::Integer(*number)),
        Attribute::Number(number) => one(4, "doubleValue", Node::Double(*number)),
        Attribute::Texts(texts) => {
            let item = |text: &String| {
                each(1, "values", Node::Message(vec![one(1, "stringValue", Node::Text(text.clone()))]))
            };
            message(5, "arrayValue", texts.iter().map(item).collect())
        }
    }
}

/// The word for how a call ended.
pub(crate) fn outcome(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Completed => "completed",
        CallOutcome::Failed => "failed",
        CallOutcome::Denied => "denied",
        CallOutcome::Interrupted => "interrupted",
        CallOutcome::NotRun => "not_run",
        CallOutcome::Unknown => "unknown",
    }
}

/// The word for a decision.
pub(crate) fn behavior(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask",
        Behavior::Deny => "deny",
    }
}

/// The word for what decided.
pub(crate) fn layer(layer: DecisionLayer) -> &'static str {
    match layer {
        DecisionLayer::Rule => "rule",
        DecisionLayer::BuiltIn => "built_in",
        DecisionLayer::SafetyCheck => "safety_check",
        DecisionLayer::Mode => "mode",
        DecisionLayer::Unattended => "unattended",
        DecisionLayer::Person => "person",
        DecisionLayer::Classifier => "classifier",
        DecisionLayer::Sandbox => "sandbox",
        DecisionLayer::Hook => "hook",
    }
}

/// The word for what hooks say.
pub(crate) fn verdict(verdict: HookVerdict) -> &'static str {
    match verdict {
        HookVerdict::Allow => "allow",
        HookVerdict::Defer => "defer",
        HookVerdict::Ask => "ask",
        HookVerdict::Deny => "deny",
    }
}

/// The word for how a hook ended.
pub(crate) fn hook_outcome(outcome: HookOutcome) -> &'static str {
    match outcome {
        HookOutcome::Success => "success",
        HookOutcome::Error => "error",
        HookOutcome::Timeout => "timeout",
        HookOutcome::Background => "background",
    }
}

/// The word for a purpose, as the log has it.
pub(crate) fn purpose(purpose: Purpose) -> String {
    text_of(serde_json::to_value(purpose))
}

/// What went wrong with a model call: the endpoint's status, or our own class of failures.
pub(crate) fn failure(failure: &ModelFailure) -> String {
    match failure.status {
        Some(status) => status.to_string(),
        None => text_of(serde_json::to_value(failure.class)),
    }
}

/// The word that an enum has in JSON.
pub(crate) fn text_of(value: Result<Value, serde_json::Error>) -> String {
    value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_else(|| "_OTHER".to_owned())
}
