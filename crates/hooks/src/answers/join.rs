//! Joins what the hooks of one event said. The strictest verdict counts, of whichever hook; of replacements the last one
//! counts; what is to be added is added in the order in which the hooks were registered.

use qoder_types::{HookRun, HookVerdict, Hooked, PermissionUpdate};
use serde_json::Value;

use crate::answers::event_fields::EventFields;
use crate::answers::output::Said;
use qoder_config::hooks::HookEvent;

/// What the hooks of one event said together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Joined {
    /// The strictest verdict.
    pub verdict: Option<HookVerdict>,
    /// Why, in the words of the hook that gave it.
    pub reason: Option<String>,
    /// The first hook that gave the verdict.
    pub by: Option<String>,
    /// The input that replaces that of the call.
    pub updated_input: Option<Value>,
    /// The hook that gave that input.
    pub updated_input_by: Option<String>,
    /// The output that replaces that of the call.
    pub updated_output: Option<String>,
    /// Changes of permissions that come with an allowance.
    pub updated_permissions: Vec<PermissionUpdate>,
    /// True when the turn is to be interrupted.
    pub interrupt: bool,
    /// Text for the model.
    pub context: Option<String>,
    /// Why the turn ends.
    pub stop: Option<String>,
    /// What single events let hooks say besides.
    pub more: EventFields,
}

/// Joins what each hook said, in the order in which they were registered.
pub(crate) fn join<'a>(all: impl IntoIterator<Item = (&'a str, Said)>) -> Joined {
    let mut joined = Joined::default();
    let mut contexts: Vec<String> = Vec::new();
    for (name, said) in all {
        if said.verdict > joined.verdict {
            joined.verdict = said.verdict;
            joined.reason = said.reason;
            joined.by = Some(name.to_owned());
        }
        if said.updated_input.is_some() {
            joined.updated_input = said.updated_input;
            joined.updated_input_by = Some(name.to_owned());
        }
        joined.updated_output = said.updated_output.or(joined.updated_output);
        joined.updated_permissions.extend(said.updated_permissions);
        joined.interrupt |= said.interrupt;
        joined.stop = joined.stop.or(said.stop);
        contexts.extend(said.context);
        joined.more.add(said.more);
    }
    joined.context = (!contexts.is_empty()).then(|| contexts.join("\n\n"));
    joined
}

impl Joined {
    /// The record of it.
    pub(crate) fn record(&self, event: HookEvent, tool_use_id: Option<&str>, runs: Vec<HookRun>) -> Hooked {
        Hooked {
            event: event.as_str().to_owned(),
            tool_use_id: tool_use_id.map(str::to_owned),
            runs,
            verdict: self.verdict,
            reason: self.reason.clone(),
            by: self.by.clone(),
            updated_input: self.updated_input.clone(),
            updated_input_by: self.updated_input_by.clone(),
            additional_context: self.context.clone(),
            stop: self.stop.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(verdict: HookVerdict) -> Said {
        Said { verdict: Some(verdict), reason: Some(format!("{verdict:?}")), ..Said::default() }
    }

    #[test]
    fn the_strictest_verdict_counts_in_any_order() {
        use HookVerdict::{Allow, Ask, Defer, Deny};
        let all = [Allow, Defer, Ask, Deny];
        for first in all {
            for second in all {
                let joined =
                    join([("one", verdict(first)), ("none", Said::default()), ("two", verdict(second))]);
                let strictest = first.max(second);
                assert_eq!(joined.verdict, Some(strictest));
                assert_eq!(joined.reason, Some(format!("{strictest:?}")));
                assert_eq!(joined.by.as_deref(), Some(if first >= second { "one" } else { "two" }));
            }
        }
    }

    #[test]
    fn the_last_replacement_counts() {
        let said = |output: Option<&str>, input: Option<Value>| Said {
            updated_output: output.map(str::to_owned),
            updated_input: input,
            ..Said::default()
        };
        let joined = join([
            ("a", said(Some("1"), Some(json!({"n": 1})))),
            ("b", said(Some("2"), Some(json!({"n": 2})))),
            ("c", said(None, None)),
        ]);
        assert_eq!(joined.updated_output.as_deref(), Some("2"));
        assert_eq!(joined.updated_input, Some(json!({"n": 2})));
        assert_eq!(joined.updated_input_by.as_deref(), Some("b"));
    }

    #[test]
    fn contexts_stand_in_the_order_of_registration_and_the_first_end_counts() {
        let said = |word: &str| Said {
            context: Some(word.to_owned()),
            stop: Some(word.to_owned()),
            ..Said::default()
        };
        let joined = join([("a", said("one")), ("b", said("two"))]);
        assert_eq!(joined.context.as_deref(), Some("one\n\ntwo"));
        assert_eq!(joined.stop.as_deref(), Some("one"));
    }
}
