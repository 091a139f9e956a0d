//! May this call run? Shown are the whole command or change, why it is asked and by which agent; the choices are exactly those
//! that the gate offers, with the text of the rule that each would write.

use std::sync::Arc;

use qoder_protocol::{ActionId, Answer, Question};
use qoder_types::{Actor, PermissionUpdate, RuleValue, UpdateDestination};
use serde_json::Value;

use crate::text::{one_line, plain_lines};

/// Where rules can be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsFiles {
    /// The user's settings file.
    pub user: String,
    /// The project's shared settings file.
    pub project: String,
    /// The project's private settings file.
    pub local: String,
    /// False in a folder that is not trusted: its files are not written.
    pub trusted: bool,
}

/// The file that keeps a rule for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// This project and person.
    Local,
    /// This project, shared.
    Project,
    /// This person, every project.
    User,
}

impl Scope {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }

    fn destination(self) -> UpdateDestination {
        match self {
            Self::Local => UpdateDestination::LocalSettings,
            Self::Project => UpdateDestination::ProjectSettings,
            Self::User => UpdateDestination::UserSettings,
        }
    }
}

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionChoice {
    /// Yes, this time.
    Once,
    /// Yes, and the suggested change for this session.
    Session,
    /// Yes, and the suggested rule for good.
    Always,
    /// No.
    No,
    /// No, and what to do instead.
    NoWithWords,
    /// No, and the turn stops.
    Stop,
}

impl PermissionChoice {
    /// The key that stands for it.
    pub(crate) fn number(self) -> char {
        match self {
            Self::Once => '1',
            Self::Session => '2',
            Self::Always => '3',
            Self::No => '4',
            Self::NoWithWords => '5',
            Self::Stop => '6',
        }
    }
}

/// A line of what would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyLine {
    /// As it is.
    Text(String),
    /// A field of the input.
    Field(String, String),
    /// A line that is added.
    Added(String),
    /// A line that is removed.
    Removed(String),
}

/// An input that was edited and is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the edited input is not JSON: {0}; nothing was answered")]
pub(crate) struct EditError(String);

/// A call that needs permission.
#[derive(Debug, Clone)]
pub(crate) struct Permission {
    question: Arc<Question>,
    files: SettingsFiles,
    scope: usize,
    /// What the agent that asks is to do, where that is known.
    agent: Option<String>,
}

impl Permission {
    pub(super) fn new(question: &Arc<Question>, files: &SettingsFiles) -> Self {
        Self { question: Arc::clone(question), files: files.clone(), scope: 0, agent: None }
    }

    /// The same, for a question of the agent that this describes.
    pub(super) fn asked_by(self, agent: Option<String>) -> Self {
        Self { agent, ..self }
    }

    /// What answers name.
    pub(crate) fn action(&self) -> ActionId {
        self.question.action()
    }

    /// The tool and the file, host or first words, on one line.
    pub(crate) fn headline(&self) -> String {
        format!("{} needs permission", one_line(&self.question.tool_name))
    }

    /// What a person edits: the command, or the input as JSON.
    pub(crate) fn editable(&self) -> String {
        match (self.question.tool_name.as_str(), self.question.input.get("command").and_then(Value::as_str)) {
            ("Bash", Some(command)) => command.to_owned(),
            _ => serde_json::to_string_pretty(&self.question.input).unwrap_or_default(),
        }
    }

    /// What a person writes to change the call.
    pub(crate) fn editable_words(&self) -> &'static str {
        if self.question.tool_name == "Bash" { "the command" } else { "the input as JSON" }
    }

    /// The answer that lets the call run with what a person made of its input. It is judged again.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn edited(&self, text: &str, by: &Actor) -> Result<Answer, EditError> {
        let input = match self.question.tool_name.as_str() {
            "Bash" => {
                let mut input = self.question.input.clone();
                input["command"] = Value::from(text.trim_end_matches('\n'));
                input
            }
            _ => serde_json::from_str(text).map_err(|error| EditError(error.to_string()))?,
        };
        Ok(Answer { allow: true, updated_input: Some(input), by: by.clone(), ..Answer::default() })
    }

    /// Why it is asked, and by whom: one fact a line.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let decision = &self.question.decision;
        let mut reasons = vec![one_line(&decision.reason)];
        // Some reasons say no more than the headline.
        reasons.retain(|reason| *reason != self.headline());
        if let Some(rule) = &decision.rule {
            let place = decision.origin.as_ref().map(|origin| {
                let file = origin.file.as_deref().unwrap_or_default();
                match (file, origin.line) {
                    ("", _) => String::new(),
                    (file, Some(line)) => format!(" ({file}:{line})"),
                    (file, None) => format!(" ({file})"),
                }
            });
            reasons.push(one_line(&format!("rule {rule}{}", place.unwrap_or_default())));
        }
        if let Some(place) = &self.question.place {
            let sandbox = if place.sandboxed { "in the sandbox" } else { "not sandboxed" };
            reasons.push(one_line(&format!("in {}, {sandbox}", place.directory)));
        }
        if let Some(agent) = &self.question.agent_id {
            let name = self.agent.as_ref().unwrap_or(agent);
            reasons.push(one_line(&format!("asked by agent {name}")));
        }
        if self.question.input["dangerouslyDisableSandbox"].as_bool() == Some(true) {
            reasons.push("it would run outside the sandbox".to_owned());
        }
        reasons
    }

    /// What would run, whole.
    pub(crate) fn body(&self) -> Vec<BodyLine> {
        let input = &self.question.input;
        let text = |field: &str| input.get(field).and_then(Value::as_str);
        let lines = |text: &str| plain_lines(text).into_iter();
        match self.question.tool_name.as_str() {
            "Bash" => {
                let mut body: Vec<BodyLine> =
                    lines(text("command").unwrap_or_default()).map(BodyLine::Text).collect();
                body.extend(others(input, &["command"]));
                body
            }
            "Edit" => {
                let mut body = others(input, &["old_string", "new_string"]);
                body.extend(lines(text("old_string").unwrap_or_default()).map(BodyLine::Removed));
                body.extend(lines(text("new_string").unwrap_or_default()).map(BodyLine::Added));
                body
            }
            "Write" | "NotebookEdit" => {
                let content = if self.question.tool_name == "Write" { "content" } else { "new_source" };
                let mut body = others(input, &[content]);
                body.extend(lines(text(content).unwrap_or_default()).map(BodyLine::Added));
                body
            }
            _ => others(input, &[]),
        }
    }

    /// What a person can answer here, in order.
    pub(crate) fn choices(&self) -> Vec<PermissionChoice> {
        let mut choices = vec![PermissionChoice::Once];
        if !self.question.suggestions.is_empty() {
            choices.push(PermissionChoice::Session);
        }
        if self.kept_rules().is_some() {
            choices.push(PermissionChoice::Always);
        }
        choices.extend([PermissionChoice::No, PermissionChoice::NoWithWords]);
        choices
    }

    /// The words of a choice.
    pub(crate) fn label(&self, choice: PermissionChoice) -> String {
        match choice {
            PermissionChoice::Once => "Yes, once".to_owned(),
            PermissionChoice::Session => {
                let changes: Vec<String> = self.question.suggestions.iter().map(in_words).collect();
                format!("Yes, for this session: {}", changes.join("; "))
            }
            PermissionChoice::Always => {
                let rules = self.kept_rules().unwrap_or_default();
                format!("Yes, always: {} → {}", texts(&rules), one_line(self.file()))
            }
            PermissionChoice::No => "No".to_owned(),
            PermissionChoice::NoWithWords => "No, and say what to do".to_owned(),
            PermissionChoice::Stop => "No, and stop the turn".to_owned(),
        }
    }

    /// Chooses the next or previous file for a rule that is kept.
    pub(crate) fn turn_scope(&mut self, forward: bool) {
        let count = self.scopes().len();
        self.scope = if forward { (self.scope + 1) % count } else { (self.scope + count - 1) % count };
    }

    /// Chooses the file for a rule that is kept. False when rules cannot be kept there.
    pub(crate) fn set_scope(&mut self, word: &str) -> bool {
        match self.scopes().iter().position(|scope| scope.word() == word) {
            Some(place) => {
                self.scope = place;
                true
            }
            None => false,
        }
    }

    /// The files that can keep a rule.
    pub(crate) fn scopes(&self) -> &'static [Scope] {
        if self.files.trusted { &[Scope::Local, Scope::Project, Scope::User] } else { &[Scope::User] }
    }

    /// The chosen one.
    pub(crate) fn scope(&self) -> Scope {
        self.scopes().get(self.scope).copied().unwrap_or(Scope::User)
    }

    fn file(&self) -> &str {
        match self.scope() {
            Scope::Local => &self.files.local,
            Scope::Project => &self.files.project,
            Scope::User => &self.files.user,
        }
    }

    /// The rules that can be kept for good; `None` when the gate suggests none, or something besides.
    fn kept_rules(&self) -> Option<Vec<RuleValue>> {
        let mut kept = Vec::new();
        for update in &self.question.suggestions {
            match update {
                PermissionUpdate::AddRules { rules, .. } => kept.extend(rules.iter().cloned()),
                PermissionUpdate::ReplaceRules { .. }
                | PermissionUpdate::RemoveRules { .. }
                | PermissionUpdate::SetMode { .. }
                | PermissionUpdate::AddDirectories { .. }
                | PermissionUpdate::RemoveDirectories { .. } => return None,
            }
        }
        (!kept.is_empty()).then_some(kept)
    }

    /// The answer that a choice comes to.
    pub(crate) fn answer(&self, choice: PermissionChoice, words: Option<&str>, by: &Actor) -> Answer {
        let answer = Answer { by: by.clone(), ..Answer::default() };
        let yes = |destination: Option<UpdateDestination>| Answer {
            allow: true,
            updated_permissions: destination.map(|place| self.updates_to(place)).unwrap_or_default(),
            ..answer.clone()
        };
        let words = words.map(str::trim).filter(|words| !words.is_empty()).map(str::to_owned);
        match choice {
            PermissionChoice::Once => yes(None),
            PermissionChoice::Session => yes(Some(UpdateDestination::Session)),
            PermissionChoice::Always => yes(Some(self.scope().destination())),
            PermissionChoice::No => Answer { message: words, ..answer },
            PermissionChoice::NoWithWords => Answer { message: words, ..answer },
            PermissionChoice::Stop => Answer { message: words, interrupt: true, ..answer },
        }
    }

    /// The suggested changes, kept at a place.
    fn updates_to(&self, place: UpdateDestination) -> Vec<PermissionUpdate> {
        let moved = |update: &PermissionUpdate| match update {
            PermissionUpdate::AddRules { rules, behavior, .. } => {
                PermissionUpdate::AddRules { rules: rules.clone(), behavior: *behavior, destination: place }
            }
            other @ (PermissionUpdate::ReplaceRules { .. }
            | PermissionUpdate::RemoveRules { .. }
            | PermissionUpdate::SetMode { .. }
            | PermissionUpdate::AddDirectories { .. }
            | PermissionUpdate::RemoveDirectories { .. }) => other.clone(),
        };
        self.question.suggestions.iter().map(moved).collect()
    }
}

/// The fields of an input but these.
fn others(input: &Value, but: &[&str]) -> Vec<BodyLine> {
    let Some(fields) = input.as_object() else { return vec![BodyLine::Text(one_line(&input.to_string()))] };
    let mut body = Vec::new();
    for (field, value) in fields.iter().filter(|(field, _)| !but.contains(&field.as_str())) {
        match value {
            Value::String(text) if text.contains('\n') => {
                body.push(BodyLine::Field(one_line(field), String::new()));
                body.extend(plain_lines(text).into_iter().map(|line| BodyLine::Text(format!("  {line}"))));
            }
            Value::String(text) => body.push(BodyLine::Field(one_line(field), one_line(text))),
            other => body.push(BodyLine::Field(one_line(field), one_line(&other.to_string()))),
        }
    }
    body
}

fn texts(rules: &[RuleValue]) -> String {
    one_line(&rules.iter().map(RuleValue::text).collect::<Vec<_>>().join(", "))
}

/// A change of permissions in words.
pub(crate) fn in_words(update: &PermissionUpdate) -> String {
    match update {
        PermissionUpdate::AddRules { rules, .. } | PermissionUpdate::ReplaceRules { rules, .. } => {
            texts(rules)
        }
        PermissionUpdate::RemoveRules { rules, .. } => format!("without {}", texts(rules)),
        PermissionUpdate::SetMode { mode, .. } => format!("mode {}", mode.as_str()),
        PermissionUpdate::AddDirectories { directories, .. } => {
            format!("work in {}", one_line(&directories.join(", ")))
        }
        PermissionUpdate::RemoveDirectories { directories, .. } => {
            format!("no longer work in {}", one_line(&directories.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qoder_types::{AskKind, Behavior, Decision, DecisionLayer, PermissionMode};
    use serde_json::json;

    fn question(tool: &str, input: Value, suggestions: Vec<PermissionUpdate>) -> Arc<Question> {
        Arc::new(Question {
            tool_use_id: "t".to_owned(),
            tool_name: tool.to_owned(),
            kind: AskKind::Permission,
            input,
            decision: Decision {
                behavior: Behavior::Ask,
                layer: DecisionLayer::Mode,
                rule: None,
                origin: None,
                mode: PermissionMode::Default,
                reason: "the mode asks".to_owned(),
                considered: Vec::new(),
                answered_by: None,
            },
            suggestions,
            agent_id: None,
            place: None,
        })
    }

    fn files(trusted: bool) -> SettingsFiles {
        SettingsFiles { user: "u.json".into(), project: "p.json".into(), local: "l.json".into(), trusted }
    }

    fn rule() -> PermissionUpdate {
        PermissionUpdate::AddRules {
            rules: vec![RuleValue { tool_name: "Bash".into(), rule_content: Some("touch one".into()) }],
            behavior: Behavior::Allow,
            destination: UpdateDestination::LocalSettings,
        }
    }

    #[test]
    fn each_scope_keeps_the_shown_rule_in_the_shown_file() {
        let asked = question("Bash", json!({ "command": "touch one" }), vec![rule()]);
        let mut permission = Permission::new(&asked, &files(true));
        let by = Actor::Host;
        for (word, file, destination) in [
            ("local", "l.json", UpdateDestination::LocalSettings),
            ("project", "p.json", UpdateDestination::ProjectSettings),
            ("user", "u.json", UpdateDestination::UserSettings),
        ] {
            assert!(permission.set_scope(word));
            let label = permission.label(PermissionChoice::Always);
            assert_eq!(label, format!("Yes, always: Bash(touch one) → {file}"));
            let answer = permission.answer(PermissionChoice::Always, None, &by);
            assert!(answer.allow);
            assert_eq!(answer.updated_permissions[0].destination(), destination);
        }
        let session = permission.answer(PermissionChoice::Session, None, &by);
        assert_eq!(session.updated_permissions[0].destination(), UpdateDestination::Session);
        assert_eq!(permission.answer(PermissionChoice::Once, None, &by).updated_permissions, []);
    }

    #[test]
    fn a_folder_without_trust_keeps_rules_with_the_user_alone() {
        let asked = question("Bash", json!({ "command": "x" }), vec![rule()]);
        let mut permission = Permission::new(&asked, &files(false));
        assert_eq!(permission.scopes(), [Scope::User]);
        assert!(!permission.set_scope("local"));
    }

    #[test]
    fn what_is_never_automatic_offers_no_rule() {
        let permission =
            Permission::new(&question("Bash", json!({ "command": "rm -rf /" }), Vec::new()), &files(true));
        assert_eq!(
            permission.choices(),
            [PermissionChoice::Once, PermissionChoice::No, PermissionChoice::NoWithWords]
        );
    }

    #[test]
    fn the_whole_command_is_shown_escaped() {
        let command = format!("echo {}\nrm\u{202e} -rf \u{1b}[2J", "x".repeat(500));
        let permission =
            Permission::new(&question("Bash", json!({ "command": command }), Vec::new()), &files(true));
        let body = permission.body();
        assert_eq!(body.len(), 2);
        assert!(matches!(&body[0], BodyLine::Text(line) if line.len() == 505));
        assert_eq!(body[1], BodyLine::Text("rm\\u{202e} -rf \\u{1b}[2J".to_owned()));
    }

    #[test]
    fn words_go_with_a_no() {
        let permission = Permission::new(&question("Bash", json!({}), Vec::new()), &files(true));
        let answer = permission.answer(PermissionChoice::NoWithWords, Some(" use cargo "), &Actor::Host);
        assert_eq!((answer.allow, answer.message.as_deref()), (false, Some("use cargo")));
        assert!(permission.answer(PermissionChoice::Stop, None, &Actor::Host).interrupt);
    }
}
