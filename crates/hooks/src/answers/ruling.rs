//! What the verdict of hooks makes of a ruling of the gate. A hook may always tighten. It may answer a question that the
//! mode alone puts; what a rule denies or wants to be asked about, a safety check and a question for a person stay what
//! they are.

use qoder_policy::Ruling;
use qoder_types::{
    Actor, Behavior, Considered, Decision, DecisionLayer, HookVerdict, Hooked, PermissionMode,
};

/// The ruling with what the hooks before the call said about it. An allowance was given for the place where the hooks saw
/// the call: it does not hold after the session `moved`.
#[must_use]
pub fn with_hooks(ruling: Ruling, hooked: Option<&Hooked>, moved: bool) -> Ruling {
    let Some((hooked, verdict)) = hooked.and_then(|hooked| Some((hooked, hooked.verdict?))) else {
        return ruling;
    };
    let name = hooked.by.as_deref().unwrap_or("unknown");
    let said = || hooked.reason.clone();
    let gate = &ruling.decision;
    match (verdict, gate.behavior) {
        (HookVerdict::Deny, _) => {
            let reason = said().unwrap_or_else(|| format!("the hook {name} denied it"));
            by_hook(ruling, Behavior::Deny, reason, name)
        }
        (HookVerdict::Ask, Behavior::Allow) => {
            let reason = said().unwrap_or_else(|| format!("the hook {name} wants somebody to be asked"));
            match gate.mode {
                PermissionMode::DontAsk | PermissionMode::Auto => {
                    let mode = gate.mode.as_str();
                    let reason = format!("{reason}, and {mode} mode never asks");
                    by_hook(ruling, Behavior::Deny, reason, name)
                }
                PermissionMode::Default
                | PermissionMode::AcceptEdits
                | PermissionMode::BypassPermissions
                | PermissionMode::Plan => by_hook(ruling, Behavior::Ask, reason, name),
            }
        }
        (HookVerdict::Ask, Behavior::Ask) => match said() {
            Some(reason) if may_be_answered_by_hook(gate) => by_hook(ruling, Behavior::Ask, reason, name),
            // The question stays the gate's, in the hook's words as well.
            Some(reason) => {
                let mut ruling = ruling;
                ruling.decision.reason = format!("{reason}; {}", ruling.decision.reason);
                ruling
            }
            None => ruling,
        },
        (HookVerdict::Allow, Behavior::Ask) if may_be_answered_by_hook(gate) && !moved => {
            let reason = format!("{}; the hook {name} allowed it", gate.reason);
            by_hook(ruling, Behavior::Allow, reason, name)
        }
        // A mode that never asks has denied it, and the hook does not mean the judge of auto mode.
        (HookVerdict::Ask, Behavior::Deny) => Ruling { classifiable: false, ..ruling },
        (HookVerdict::Allow | HookVerdict::Defer, _) => ruling,
    }
}

/// True for a question that nothing but the mode puts.
#[must_use]
pub fn may_be_answered_by_hook(decision: &Decision) -> bool {
    decision.behavior == Behavior::Ask && decision.layer == DecisionLayer::Mode
}

/// What the failure of a hook left open: which hook it was, and its error. `None` when none failed, or when the failure has
/// no effect.
#[must_use]
pub fn failure_of(hooked: &Hooked) -> Option<String> {
    let failed = hooked.runs.iter().any(|run| run.problem.is_some());
    hooked.reason.clone().filter(|_| failed)
}

/// A question that a hook should have answered and did not: the person or host that decides reads why.
#[must_use]
pub fn with_failure(mut decision: Decision, failure: Option<&str>) -> Decision {
    if let Some(failure) = failure {
        decision.reason = format!("{}; {failure}", decision.reason);
    }
    decision
}

fn by_hook(ruling: Ruling, behavior: Behavior, reason: String, name: &str) -> Ruling {
    let mut gate = ruling.decision;
    let outranked = Considered {
        layer: gate.layer,
        behavior: Some(gate.behavior),
        rule: gate.rule.take(),
        origin: gate.origin.take(),
        note: gate.reason,
    };
    gate.considered.insert(0, outranked);
    let decision = Decision {
        behavior,
        layer: DecisionLayer::Hook,
        reason,
        answered_by: Some(Actor::Hook(name.to_owned())),
        rule: None,
        origin: None,
        mode: gate.mode,
        considered: gate.considered,
    };
    Ruling { decision, suggestions: Vec::new(), classifiable: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [PermissionMode; 6] = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::BypassPermissions,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::Auto,
    ];
    const LAYERS: [DecisionLayer; 5] = [
        DecisionLayer::Rule,
        DecisionLayer::BuiltIn,
        DecisionLayer::SafetyCheck,
        DecisionLayer::Mode,
        DecisionLayer::Sandbox,
    ];

    fn ruling(behavior: Behavior, layer: DecisionLayer, mode: PermissionMode) -> Ruling {
        let decision = Decision {
            behavior,
            layer,
            rule: None,
            origin: None,
            mode,
            reason: "the gate says so".to_owned(),
            considered: Vec::new(),
            answered_by: None,
        };
        Ruling { decision, suggestions: Vec::new(), classifiable: false }
    }

    fn hooked(verdict: HookVerdict) -> Hooked {
        Hooked {
            event: "PreToolUse".to_owned(),
            tool_use_id: None,
            runs: Vec::new(),
            verdict: Some(verdict),
            reason: None,
            by: Some("guard".to_owned()),
            updated_input: None,
            updated_input_by: None,
            additional_context: None,
            stop: None,
        }
    }

    #[test]
    fn no_verdict_loosens_more_than_a_question_of_the_mode() {
        for layer in LAYERS {
            for mode in MODES {
                for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
                    for verdict in
                        [HookVerdict::Allow, HookVerdict::Defer, HookVerdict::Ask, HookVerdict::Deny]
                    {
                        let made = with_hooks(ruling(behavior, layer, mode), Some(&hooked(verdict)), false);
                        let made = made.decision.behavior;
                        let opened = made == Behavior::Allow && behavior != Behavior::Allow;
                        let may = behavior == Behavior::Ask
                            && layer == DecisionLayer::Mode
                            && verdict == HookVerdict::Allow;
                        assert_eq!(opened, may, "{behavior:?} by {layer:?} in {mode:?}, hook {verdict:?}");
                        if behavior == Behavior::Deny || verdict == HookVerdict::Deny {
                            assert_eq!(made, Behavior::Deny);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn modes_that_never_ask_deny_what_a_hook_wants_to_be_asked_about() {
        for mode in MODES {
            let made = with_hooks(
                ruling(Behavior::Allow, DecisionLayer::Rule, mode),
                Some(&hooked(HookVerdict::Ask)),
                false,
            );
            let never = matches!(mode, PermissionMode::DontAsk | PermissionMode::Auto);
            assert_eq!(made.decision.behavior, if never { Behavior::Deny } else { Behavior::Ask });
            assert_eq!(made.decision.layer, DecisionLayer::Hook);
        }
    }

    #[test]
    fn what_a_hook_wants_to_be_asked_about_is_not_put_to_the_judge_of_auto_mode() {
        let denied = || Ruling {
            classifiable: true,
            ..ruling(Behavior::Deny, DecisionLayer::Mode, PermissionMode::Auto)
        };
        assert!(!with_hooks(denied(), Some(&hooked(HookVerdict::Ask)), false).classifiable);
        assert!(!with_hooks(denied(), Some(&hooked(HookVerdict::Deny)), false).classifiable);
        assert!(with_hooks(denied(), Some(&hooked(HookVerdict::Allow)), false).classifiable);
    }

    #[test]
    fn an_allowance_does_not_move_with_the_session() {
        let asks = || ruling(Behavior::Ask, DecisionLayer::Mode, PermissionMode::Default);
        assert_eq!(
            with_hooks(asks(), Some(&hooked(HookVerdict::Allow)), true).decision.behavior,
            Behavior::Ask
        );
        assert_eq!(
            with_hooks(asks(), Some(&hooked(HookVerdict::Deny)), true).decision.behavior,
            Behavior::Deny
        );
    }

    #[test]
    fn what_the_gate_would_have_said_is_kept() {
        let made = with_hooks(
            ruling(Behavior::Allow, DecisionLayer::BuiltIn, PermissionMode::Default),
            Some(&hooked(HookVerdict::Deny)),
            false,
        );
        assert_eq!(made.decision.considered[0].layer, DecisionLayer::BuiltIn);
        assert_eq!(made.decision.considered[0].behavior, Some(Behavior::Allow));
        assert_eq!(made.decision.answered_by, Some(Actor::Hook("guard".to_owned())));
        assert_eq!(made.decision.reason, "the hook guard denied it");
    }
}
