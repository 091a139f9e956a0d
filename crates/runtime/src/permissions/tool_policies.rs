//! The policies of tools: the last word of the program that opened the session, after rules, places and mode. They turn an
//! allowance into a question or a denial and never the other way round.

use qoder_policy::Ruling;
use qoder_types::server::ToolPolicy;
use qoder_types::{Behavior, DecisionLayer};

/// Applies the policy of a tool to the ruling about a call of it.
pub(super) fn tighten(mut ruling: Ruling, tool: &str, policy: Option<ToolPolicy>) -> Ruling {
    let (behavior, word) = match (policy, ruling.decision.behavior) {
        (Some(ToolPolicy::AlwaysDeny), Behavior::Allow | Behavior::Ask) => (Behavior::Deny, "always_deny"),
        (Some(ToolPolicy::AlwaysAsk), Behavior::Allow) => (Behavior::Ask, "always_ask"),
        (Some(ToolPolicy::Auto), Behavior::Allow) => {
            ruling.classifiable = true;
            (Behavior::Ask, "auto")
        }
        (None | Some(ToolPolicy::AlwaysAllow), _)
        | (Some(ToolPolicy::AlwaysDeny), Behavior::Deny)
        | (Some(ToolPolicy::AlwaysAsk | ToolPolicy::Auto), Behavior::Ask | Behavior::Deny) => return ruling,
    };
    ruling.decision.behavior = behavior;
    ruling.decision.layer = DecisionLayer::Rule;
    (ruling.decision.rule, ruling.decision.origin) = (None, None);
    ruling.decision.reason = format!("the policy of {tool} is {word}");
    ruling.suggestions.clear();
    ruling
}

#[cfg(test)]
mod tests {
    use qoder_types::{Decision, PermissionMode};

    use super::*;

    fn after(behavior: Behavior, policy: Option<ToolPolicy>) -> (Behavior, bool) {
        let decision = Decision {
            behavior,
            layer: DecisionLayer::BuiltIn,
            rule: None,
            origin: None,
            mode: PermissionMode::Default,
            reason: "because".to_owned(),
            considered: Vec::new(),
            answered_by: None,
        };
        let ruling = Ruling { decision, suggestions: Vec::new(), classifiable: false };
        let ruling = tighten(ruling, "Read", policy);
        (ruling.decision.behavior, ruling.classifiable)
    }

    #[test]
    fn a_policy_never_loosens() {
        use Behavior::{Allow, Ask, Deny};
        use ToolPolicy::{AlwaysAllow, AlwaysAsk, AlwaysDeny, Auto};
        for behavior in [Allow, Ask, Deny] {
            assert_eq!(after(behavior, None), (behavior, false));
            assert_eq!(after(behavior, Some(AlwaysAllow)), (behavior, false));
            assert_eq!(after(behavior, Some(AlwaysDeny)), (Deny, false));
        }
        assert_eq!(after(Allow, Some(AlwaysAsk)), (Ask, false));
        assert_eq!(after(Deny, Some(AlwaysAsk)), (Deny, false));
        assert_eq!(after(Allow, Some(Auto)), (Ask, true));
        assert_eq!(after(Deny, Some(Auto)), (Deny, false));
    }
}
