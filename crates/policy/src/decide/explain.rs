//! What a decision reports besides itself: the rules that spoke of the call and were outranked, and how many rules there
//! were at all. For people who ask later why something ran or did not.

use qoder_types::{Behavior, Considered, DecisionLayer};

use crate::accesses::find::ResolvedAccess;
use crate::decide::judge::Judge;
use crate::rules::compiled::{Compiled, Content};

impl Judge<'_> {
    /// What else was looked at: rules that were outranked, and how many rules had nothing to say.
    pub(crate) fn considered(&self, behavior: Behavior, asked: Option<&Compiled>) -> Vec<Considered> {
        let policy = self.policy();
        let mut considered = Vec::new();
        let outranked = |rule: &Compiled, behavior: Behavior| Considered {
            layer: DecisionLayer::Rule,
            behavior: Some(behavior),
            rule: Some(rule.rule.text.clone()),
            origin: Some(rule.rule.origin.clone()),
            note: "matched, and was outranked".to_owned(),
        };
        considered.extend(asked.map(|rule| outranked(rule, Behavior::Ask)));
        if behavior != Behavior::Allow {
            considered.extend(self.would_allow().map(|rule| outranked(rule, Behavior::Allow)));
        }
        considered.push(Considered {
            layer: DecisionLayer::Rule,
            behavior: None,
            rule: None,
            origin: None,
            note: policy.counts.clone(),
        });
        considered
    }

    /// The first allow rule that names the call or a command of it.
    fn would_allow(&self) -> Option<&Compiled> {
        let allow = &self.policy().allow;
        let whole = allow.whole().find(|rule| rule.rule.covers_whole(self.tool()));
        let others = allow.general().find(|rule| match &rule.content {
            Content::Path(_) => !self.touched.is_empty() && self.speaks(rule),
            Content::Domain(_) | Content::Names(_) => self.speaks(rule),
            Content::Whole | Content::Command(_) => false,
        });
        let commands = self.lines().flat_map(|line| &line.reading.commands);
        let named = commands.filter_map(|command| {
            let mut rules = allow.commands(command.name());
            rules.find(|(_, pattern)| pattern.allows(&command.words)).map(|(rule, _)| rule)
        });
        whole.into_iter().chain(others).chain(named).min_by_key(|rule| rule.position)
    }
}

/// What a call does that needs no rule.
pub(crate) fn what_it_does(found: &[ResolvedAccess]) -> &'static str {
    match found {
        [ResolvedAccess::Skill { .. }, ..] => "brings text",
        [ResolvedAccess::Resource { .. }, ..] => "asks servers what they offer",
        _ => "reads inside the workspace",
    }
}
