//! The decision about one call, in a fixed order: deny rules on everything found, limits that nothing lifts, plan
//! mode, ask rules, allow rules with what is known and what the mode accepts, and the mode's last word. Pure but for path
//! metadata; total over any input.

use std::path::Path;

use qoder_types::Access;
use qoder_types::{Behavior, Decision, DecisionLayer, PermissionMode, PermissionUpdate};

use super::explain::what_it_does;
use super::line::{Terms, is_grave};
use super::matching::{Touched, Unknowns, touched};
use super::suggest::suggestions;
use crate::accesses::find::{Line, ResolvedAccess, find};
use crate::hosts::Target;
use crate::places::{FileSystem, PlaceError, is_system};
use crate::rules::compiled::{Compiled, Content, Policy, RuleList};
use crate::shell::{hands_over, is_privilege_wrapper};

/// Whether a command runs in the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confinement {
    /// There is no sandbox.
    #[default]
    None,
    /// The sandbox is enforced, and what runs in it needs no question.
    Enforced,
    /// The sandbox is on, and the call asks to leave it.
    Leaving,
}

/// One call to decide about.
pub struct Question<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Everything the call would touch.
    pub accesses: &'a [Access],
    /// The mode the session is in.
    pub mode: PermissionMode,
    /// False in a folder that is not trusted: modes that loosen do not.
    pub trusted: bool,
    /// True when a person chose the mode for this very run: it then holds in any folder, and trusts none of its files.
    pub mode_is_explicit: bool,
    /// Rules and places.
    pub policy: &'a Policy,
    /// Where relative paths start.
    pub cwd: &'a Path,
    /// Whether a command runs in the sandbox.
    pub confinement: Confinement,
    /// Looks at paths.
    pub files: &'a dyn FileSystem,
}

/// A decision, and what may be done about it.
#[derive(Debug)]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// For an ask: changes that would make it unnecessary the next time.
    pub suggestions: Vec<PermissionUpdate>,
    /// For a denial of auto mode: nothing but the lack of a judgement prevents it.
    pub classifiable: bool,
}

/// Decides.
///
/// # Errors
/// When the input names a place that cannot exist.
pub fn decide(question: &Question<'_>) -> Result<Ruling, PlaceError> {
    let policy = question.policy;
    let mut found = Vec::with_capacity(question.accesses.len());
    for access in question.accesses {
        found.push(find(access, question.cwd, &policy.workspace, question.files, policy.guards_files)?);
    }
    let mode = effective_mode(question.mode, question.trusted || question.mode_is_explicit);
    let judge = Judge { question, mode, found: &found, touched: touched(&found) };
    Ok(judge.rule())
}

fn effective_mode(mode: PermissionMode, trusted: bool) -> PermissionMode {
    match mode {
        PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::BypassPermissions
            if !trusted =>
        {
            PermissionMode::Default
        }
        PermissionMode::Default
        | PermissionMode::AcceptEdits
        | PermissionMode::BypassPermissions
        | PermissionMode::Plan
        | PermissionMode::DontAsk
        | PermissionMode::Auto => mode,
    }
}

/// Why something may run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AllowedBy<'a> {
    pub(crate) rule: Option<&'a Compiled>,
    pub(crate) by_mode: bool,
}

impl<'a> AllowedBy<'a> {
    pub(crate) fn add(&mut self, other: Self) {
        self.rule = other.rule.or(self.rule);
        self.by_mode |= other.by_mode;
    }

    pub(crate) fn rule(rule: &'a Compiled) -> Self {
        Self { rule: Some(rule), by_mode: false }
    }
}

pub(crate) struct Judge<'a> {
    pub(crate) question: &'a Question<'a>,
    pub(crate) mode: PermissionMode,
    pub(crate) found: &'a [ResolvedAccess],
    pub(crate) touched: Vec<Touched<'a>>,
}

impl<'a> Judge<'a> {
    fn rule(self) -> Ruling {
        let policy = self.question.policy;
        let programs = self.programs();
        let denied = policy.deny.about(&programs).find(|rule| self.speaks(rule));
        let asked = policy.ask.about(&programs).find(|rule| self.speaks(rule));
        if let Some(rule) = denied {
            return self.by_rule(Behavior::Deny, rule, asked);
        }
        if let Some(reason) = self.leaves_environment() {
            return self.end(Behavior::Deny, DecisionLayer::SafetyCheck, reason, asked);
        }
        if let Some(reason) = self.refused_target() {
            return self.end(Behavior::Deny, DecisionLayer::SafetyCheck, reason, asked);
        }
        if let Some(reason) = self.never_automatic() {
            return self.closed(DecisionLayer::SafetyCheck, reason, asked);
        }
        // Before questions: a rule that wants to be asked must not open what plan mode closes.
        if self.mode == PermissionMode::Plan
            && let Some(reason) = self.changes_something()
        {
            let reason = format!("plan mode makes no changes, and {reason}");
            return self.end(Behavior::Deny, DecisionLayer::Mode, reason, asked);
        }
        if let Some(rule) = asked {
            let behavior = self.open_question();
            let mut ruling = self.by_rule(behavior, rule, None);
            if behavior == Behavior::Deny {
                let (text, mode) = (&rule.rule.text, self.mode.as_str());
                ruling.decision.reason = format!(
                    "{} is to be asked about by the rule `{text}`, and {mode} mode never asks",
                    self.tool()
                );
            }
            return ruling;
        }
        if self.found.iter().any(|found| matches!(found, ResolvedAccess::Person)) {
            return self.ask_person();
        }
        if let Some(reason) = self.not_unless_named() {
            return self.closed(DecisionLayer::SafetyCheck, reason, None);
        }
        match self.granted() {
            Ok(allowed) => self.allowed(&allowed),
            Err(reason) if self.changes_protected() => self.closed(DecisionLayer::SafetyCheck, reason, None),
            Err(reason) => self.not_granted(reason),
        }
    }

    pub(crate) fn tool(&self) -> &'a str {
        self.question.tool
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.question.trusted
    }

    /// The allow rules, where they count.
    pub(crate) fn allow_rules(&self, terms: Terms) -> Option<&'a RuleList> {
        terms.rules.then_some(&self.question.policy.allow)
    }

    /// The allow rule that covers a whole tool.
    pub(crate) fn whole_rule(&self, tool: &str, terms: Terms) -> Option<&'a Compiled> {
        self.allow_rules(terms)?.whole().find(|rule| rule.rule.covers_whole(tool))
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &Line> {
        self.found.iter().filter_map(|found| match found {
            ResolvedAccess::Line(line) => Some(&**line),
            ResolvedAccess::Read(_)
            | ResolvedAccess::Edit(_)
            | ResolvedAccess::Fetch(_)
            | ResolvedAccess::Agent(_)
            | ResolvedAccess::Skill { .. }
            | ResolvedAccess::Resource { .. }
            | ResolvedAccess::As(_)
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::Other => None,
        })
    }

    /// What no rule and no mode makes automatic.
    fn never_automatic(&self) -> Option<String> {
        let policy = self.question.policy;
        if policy.guards_files && self.found.iter().any(ResolvedAccess::leads_anywhere) {
            let what = "the path leads through /proc, so it cannot be shown that no rule speaks of it";
            return Some(what.to_owned());
        }
        for line in self.lines() {
            let removed = line.known.iter().flat_map(|known| &known.removals);
            let cautious = self.isolation().is_none();
            if cautious && removed.into_iter().any(|path| is_system(path, &policy.workspace)) {
                let what = "removing the root, the home directory or a system directory is never automatic";
                return Some(what.to_owned());
            }
            if let Some(doubt) = line.reading.doubts.iter().find(|doubt| cautious && is_grave(doubt)) {
                return Some(doubt.kind.describe().to_owned());
            }
            if policy.denies_by_content
                && let Some(doubt) = line.reading.doubts.first()
            {
                let why = doubt.kind.describe();
                return Some(format!("{why}, so it cannot be shown that no deny rule speaks of it"));
            }
            let Some(unknowns) = Unknowns::of(line) else { continue };
            let meant =
                policy.deny.iter().chain(policy.ask.iter()).find(|rule| unknowns.may_be_meant_by(rule));
            if let Some(rule) = meant {
                return Some(format!(
                    "it cannot be shown that the rule `{}` does not speak of this",
                    rule.rule.text
                ));
            }
        }
        None
    }

    /// What outside bypass no broad rule and no mode covers.
    fn not_unless_named(&self) -> Option<String> {
        if self.mode == PermissionMode::BypassPermissions || self.isolation().is_some() {
            return None;
        }
        if self.question.confinement == Confinement::Leaving {
            return Some("running a command outside the sandbox is a question of its own".to_owned());
        }
        let roots = &self.question.policy.workspace.roots;
        for line in self.lines() {
            let mut removed = line.known.iter().flat_map(|known| &known.removals);
            if removed.any(|path| roots.iter().any(|root| root.starts_with(path))) {
                return Some("removing the workspace or a folder above it is never automatic".to_owned());
            }
            for command in &line.reading.commands {
                let privileged = command.base_name().is_some_and(is_privilege_wrapper);
                let named = || {
                    let mut rules = self.question.policy.allow.commands(command.name());
                    rules.any(|(_, pattern)| pattern.allows(&command.words))
                };
                let what = match (privileged, hands_over(command)) {
                    (true, _) => "taking privileges",
                    (false, true) if self.question.confinement == Confinement::None => {
                        "handing work to a service that outlives the session"
                    }
                    (false, _) => continue,
                };
                if !named() {
                    return Some(format!("{what} needs a rule that names exactly this command"));
                }
            }
        }
        None
    }

    /// What a call would change, for plan mode.
    fn changes_something(&self) -> Option<String> {
        let terms = Terms { accepts_edits: false, rules: false };
        self.found.iter().find_map(|found| match found {
            ResolvedAccess::Edit(place) => Some(format!("{} would be changed", place.real.display())),
            ResolvedAccess::Line(line) => self.line_granted(line, terms).err(),
            ResolvedAccess::Other | ResolvedAccess::As(_) if self.tool() != "WebSearch" => {
                Some(format!("{} may change something", self.tool()))
            }
            ResolvedAccess::Read(_)
            | ResolvedAccess::Fetch(_)
            | ResolvedAccess::Agent(_)
            | ResolvedAccess::Skill { .. }
            | ResolvedAccess::Resource { .. }
            | ResolvedAccess::Person
            | ResolvedAccess::Internal
            | ResolvedAccess::As(_)
            | ResolvedAccess::Other => None,
        })
    }

    /// What may be granted in this mode.
    pub(crate) fn terms(&self) -> Terms {
        let accepts_edits = matches!(self.mode, PermissionMode::AcceptEdits | PermissionMode::Auto);
        Terms { accepts_edits, rules: true }
    }

    /// Everything that was found, granted by rules, knowledge and what the mode accepts; or what is not.
    fn granted(&self) -> Result<AllowedBy<'a>, String> {
        if let Some(allowed) = self.granted_inside() {
            return Ok(allowed);
        }
        let terms = self.terms();
        let mut allowed = AllowedBy::default();
        if self.found.is_empty() {
            let whole = self.whole_rule(self.tool(), terms);
            return whole.map(AllowedBy::rule).ok_or_else(|| format!("{} needs permission", self.tool()));
        }
        for found in self.found {
            allowed.add(self.found_granted(found, terms)?);
        }
        Ok(allowed)
    }

    pub(crate) fn found_granted(
        &self,
        found: &ResolvedAccess,
        terms: Terms,
    ) -> Result<AllowedBy<'a>, String> {
        let tool = self.tool();
        let whole = || self.whole_rule(tool, terms);
        let by = |rule: Option<&'a Compiled>| {
            rule.map(AllowedBy::rule).ok_or_else(|| format!("{tool} needs permission"))
        };
        match found {
            ResolvedAccess::Internal => Ok(AllowedBy::default()),
            ResolvedAccess::Read(place) => match self.read_rule(place, terms).or_else(whole) {
                Some(rule) => Ok(AllowedBy::rule(rule)),
                None if self.is_readable(place) => Ok(AllowedBy::default()),
                None => Err(format!("{} is outside the workspace", place.real.display())),
            },
            ResolvedAccess::Edit(place) => {
                if let Some(rule) = self.edit_rule(place, terms) {
                    return Ok(AllowedBy::rule(rule));
                }
                // A rule for the whole tool covers ordinary files of the workspace, and no others.
                match whole().filter(|_| self.is_ordinary(place)) {
                    Some(rule) => Ok(AllowedBy::rule(rule)),
                    None if terms.accepts_edits && self.is_ordinary(place) => {
                        Ok(AllowedBy { rule: None, by_mode: true })
                    }
                    None => Err(self.why_not_edit(place)),
                }
            }
            ResolvedAccess::Line(line) => self.line_granted(line, terms),
            ResolvedAccess::Fetch(target) => {
                let mut domains = self.allow_rules(terms).into_iter().flat_map(RuleList::domains);
                let named = domains.find(|rule| match (&rule.content, target) {
                    (Content::Domain(domain), Target::Host { host, .. }) => domain.covers(host),
                    _ => false,
                });
                by(named.or_else(whole))
            }
            ResolvedAccess::Agent(name) => by(self.rule_for_name("Agent", name, terms).or_else(whole)),
            ResolvedAccess::Skill { name, only_text } => {
                match self.rule_for_name("Skill", name, terms).or_else(whole) {
                    Some(rule) => Ok(AllowedBy::rule(rule)),
                    // Text that a person, a trusted project or a plugin wrote for the model does nothing by itself.
                    None if *only_text => Ok(AllowedBy::default()),
                    None => Err(format!("the skill {name} brings rules that allow calls")),
                }
            }
            ResolvedAccess::Resource { server, lists } => {
                match self.resource_rule(server.as_ref(), terms).or_else(whole) {
                    Some(rule) => Ok(AllowedBy::rule(rule)),
                    None if *lists => Ok(AllowedBy::default()),
                    None => Err("reading a resource is a request to its MCP server".to_owned()),
                }
            }
            ResolvedAccess::As(name) => by(self.whole_rule(name, terms)),
            ResolvedAccess::Person => Err(format!("{tool} needs a person's answer")),
            ResolvedAccess::Other => by(whole()),
        }
    }

    /// Asks, or denies in the modes that never ask.
    fn open_question(&self) -> Behavior {
        match self.mode {
            PermissionMode::Auto | PermissionMode::DontAsk => Behavior::Deny,
            PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::Plan
            | PermissionMode::BypassPermissions => Behavior::Ask,
        }
    }

    fn closed(&self, layer: DecisionLayer, reason: String, asked: Option<&Compiled>) -> Ruling {
        // Plan mode only reads: what it may not do needs no question.
        let behavior = if self.mode == PermissionMode::Plan { Behavior::Deny } else { self.open_question() };
        self.end(behavior, layer, reason, asked)
    }

    fn ask_person(&self) -> Ruling {
        let reason = format!("{} needs a person's answer", self.tool());
        self.end(self.open_question(), DecisionLayer::BuiltIn, reason, None)
    }

    fn by_rule(&self, behavior: Behavior, rule: &Compiled, outranked: Option<&Compiled>) -> Ruling {
        let verb = match behavior {
            Behavior::Allow => "allowed",
            Behavior::Ask => "to be asked about",
            Behavior::Deny => "denied",
        };
        let reason = format!("{} is {verb} by the rule `{}`", self.tool(), rule.rule.text);
        let mut ruling = self.end(behavior, DecisionLayer::Rule, reason, outranked);
        ruling.decision.rule = Some(rule.rule.text.clone());
        ruling.decision.origin = Some(rule.rule.origin.clone());
        ruling
    }

    fn allowed(&self, allowed: &AllowedBy<'a>) -> Ruling {
        if allowed.by_mode {
            let reason = format!("{} accepts edits inside the workspace", self.mode.as_str());
            return self.end(Behavior::Allow, DecisionLayer::Mode, reason, None);
        }
        match allowed.rule {
            Some(rule) => self.by_rule(Behavior::Allow, rule, None),
            None => {
                let reason = format!("{} only {}", self.tool(), what_it_does(self.found));
                self.end(Behavior::Allow, DecisionLayer::BuiltIn, reason, None)
            }
        }
    }

    fn not_granted(&self, reason: String) -> Ruling {
        let line = self.found.iter().any(|found| matches!(found, ResolvedAccess::Line(_)));
        let confined = line && self.question.confinement == Confinement::Enforced;
        match self.mode {
            PermissionMode::BypassPermissions => {
                let reason = "bypassPermissions runs everything that is not denied".to_owned();
                self.end(Behavior::Allow, DecisionLayer::Mode, reason, None)
            }
            PermissionMode::Default
            | PermissionMode::AcceptEdits
            | PermissionMode::DontAsk
            | PermissionMode::Auto
                if confined =>
            {
                let reason = "the command runs in the sandbox, which is enforced".to_owned();
                self.end(Behavior::Allow, DecisionLayer::Sandbox, reason, None)
            }
            PermissionMode::Auto => {
                let reason = format!("{reason}, and auto mode never asks");
                let mut ruling = self.end(Behavior::Deny, DecisionLayer::Mode, reason, None);
                ruling.classifiable = true;
                ruling
            }
            PermissionMode::DontAsk => self.end(
                Behavior::Deny,
                DecisionLayer::Mode,
                format!("{reason}, and dontAsk mode never asks"),
                None,
            ),
            PermissionMode::Plan => self.end(Behavior::Ask, DecisionLayer::Mode, reason, None),
            PermissionMode::Default | PermissionMode::AcceptEdits => {
                let mut ruling = self.end(Behavior::Ask, DecisionLayer::Mode, reason, None);
                ruling.suggestions = suggestions(self, self.found);
                ruling
            }
        }
    }

    pub(crate) fn policy(&self) -> &'a Policy {
        self.question.policy
    }

    fn end(
        &self,
        behavior: Behavior,
        layer: DecisionLayer,
        reason: String,
        asked: Option<&Compiled>,
    ) -> Ruling {
        let decision = Decision {
            behavior,
            layer,
            rule: None,
            origin: None,
            mode: self.mode,
            reason,
            considered: self.considered(behavior, asked),
            answered_by: None,
        };
        Ruling { decision, suggestions: Vec::new(), classifiable: false }
    }
}
