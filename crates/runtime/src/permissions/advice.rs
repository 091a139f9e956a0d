//! What a person can do about a call that is denied because no one is attached to answer. Every advice about rules, modes
//! and directories is put to the gate before it is given: what would not let the call run is not advised.

use qoder_core::ports::{Access, Tool};
use qoder_policy::FileSystem;
use qoder_types::{Behavior, Decision, DecisionLayer, PermissionUpdate, RuleValue, UpdateDestination};
use serde_json::Value;

use super::{CallInPlace, Gate, LocalFiles};

/// A call whose question no one answers.
pub(crate) struct OpenQuestion<'a> {
    /// The decision to ask.
    pub(crate) asked: Decision,
    /// What would make the question unnecessary, as it is offered to people.
    pub(crate) suggestions: &'a [PermissionUpdate],
    /// True when a hook failed, and that is why the question is open.
    pub(crate) hook_failed: bool,
}

impl Gate {
    /// The denial that an ask becomes where no one can answer, with what a person can do about it.
    pub(crate) fn nobody_answers(
        &self,
        question: OpenQuestion<'_>,
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> Decision {
        let way = self.way(&question, tool, input, call);
        let asked = question.asked;
        Decision {
            behavior: Behavior::Deny,
            layer: DecisionLayer::Unattended,
            reason: format!(
                "{}; nobody can be asked here, so it is denied. A person can {way}",
                asked.reason
            ),
            ..asked
        }
    }

    fn way(
        &self,
        question: &OpenQuestion<'_>,
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> String {
        let asked = &question.asked;
        if asked.layer == DecisionLayer::Hook {
            let hook =
                if question.hook_failed { "repair the hook" } else { "run it by hand, or change the hook" };
            // Behind the hook's question there may be one of the gate.
            return match self.decide(tool, input, call) {
                Ok(ruling) if ruling.decision.behavior == Behavior::Ask => {
                    let gate = OpenQuestion {
                        asked: ruling.decision,
                        suggestions: &ruling.suggestions,
                        hook_failed: false,
                    };
                    format!("{hook}, and {}", self.way(&gate, tool, input, call))
                }
                Ok(_) | Err(_) => hook.to_owned(),
            };
        }
        if let (DecisionLayer::Rule, Some(rule)) = (asked.layer, &asked.rule) {
            return format!("run it by hand, or change the ask rule `{rule}`");
        }
        if tool.accesses(input).iter().any(|access| matches!(access, Access::Person)) {
            return "answer it in a program that asks people, or let it wait with the setting \
                    permissions.unattended: \"park\""
                .to_owned();
        }
        let advice = self
            .by_suggestions(question.suggestions, tool, input, call)
            .or_else(|| self.by_naming_the_file(tool, input, call))
            .or_else(|| self.by_whole_tool(tool, input, call))
            .or_else(|| self.by_naming_the_command(tool, input, call));
        advice.unwrap_or_else(|| "run it by hand".to_owned())
    }

    /// The changes that are offered with the question.
    fn by_suggestions(
        &self,
        suggestions: &[PermissionUpdate],
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> Option<String> {
        if suggestions.is_empty() || !self.helps(suggestions, tool, input, call) {
            return None;
        }
        let mut ways = Vec::new();
        for update in suggestions {
            match update {
                PermissionUpdate::AddRules { rules, .. } => {
                    let texts: Vec<String> = rules.iter().map(RuleValue::text).collect();
                    ways.push(format!("{} or a rule in the settings", self.allowing(&texts)));
                }
                PermissionUpdate::SetMode { mode, .. } => {
                    let name = &tool.definition().name;
                    let mode = self.with_value("permission-mode", mode.as_str());
                    ways.push(match self.helps(&[allow(name, None)], tool, input, call) {
                        true => {
                            format!("allow it with {mode}, or {}", self.allowing(std::slice::from_ref(name)))
                        }
                        false => format!("allow it with {mode}"),
                    });
                }
                PermissionUpdate::AddDirectories { directories, .. } => {
                    let directories = directories.join(", ");
                    ways.push(format!("add the directory with {}", self.with_value("add-dir", &directories)));
                }
                PermissionUpdate::ReplaceRules { .. }
                | PermissionUpdate::RemoveRules { .. }
                | PermissionUpdate::RemoveDirectories { .. } => {}
            }
        }
        (!ways.is_empty()).then(|| ways.join(", and "))
    }

    /// A protected file, and one outside the workspace, is covered by a rule that names it.
    fn by_naming_the_file(&self, tool: &dyn Tool, input: &Value, call: &CallInPlace<'_>) -> Option<String> {
        let accesses = tool.accesses(input);
        let [Access::Edit(path)] = accesses.as_slice() else { return None };
        let file = LocalFiles.real(&call.cwd.join(path)).ok()?;
        let content = format!("/{}", file.display());
        let rule = allow("Edit", Some(content.clone()));
        let text = RuleValue { tool_name: "Edit".to_owned(), rule_content: Some(content) }.text();
        self.helps(&[rule], tool, input, call)
            .then(|| format!("{}, a rule that names the file", self.allowing(&[text])))
    }

    /// What is never automatic for the whole tool may be for this one command.
    fn by_naming_the_command(
        &self,
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> Option<String> {
        let accesses = tool.accesses(input);
        let [Access::Command(command)] = accesses.as_slice() else { return None };
        let name = &tool.definition().name;
        let rule = RuleValue { tool_name: name.clone(), rule_content: Some(command.trim().to_owned()) };
        self.helps(&[allow(name, rule.rule_content.clone())], tool, input, call)
            .then(|| format!("{}, a rule that names exactly this command", self.allowing(&[rule.text()])))
    }

    fn by_whole_tool(&self, tool: &dyn Tool, input: &Value, call: &CallInPlace<'_>) -> Option<String> {
        let name = &tool.definition().name;
        self.helps(&[allow(name, None)], tool, input, call)
            .then(|| format!("{} or a rule in the settings", self.allowing(std::slice::from_ref(name))))
    }

    /// True when the call would run with these changes.
    fn helps(
        &self,
        updates: &[PermissionUpdate],
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> bool {
        let mut permissions = call.permissions.clone();
        permissions.apply(updates);
        let policy = self.compile(&permissions);
        let changed = CallInPlace { permissions: &permissions, ..*call };
        let ruling = self.decide_by(&policy, tool, input, &changed);
        ruling.is_ok_and(|ruling| ruling.decision.behavior == Behavior::Allow)
    }

    fn allowing(&self, rules: &[String]) -> String {
        let text = rules.join(",");
        let flags = self.option_names.name("allowed-tools");
        match self.option_names {
            qoder_core::OptionNames::Flags if is_plain(&text) => format!("allow it with {flags} {text}"),
            qoder_core::OptionNames::Flags => {
                format!("allow it with {flags} '{}'", text.replace('\'', "'\\''"))
            }
            qoder_core::OptionNames::SnakeCase | qoder_core::OptionNames::CamelCase => {
                let listed: Vec<String> =
                    rules.iter().map(|rule| Value::from(rule.as_str()).to_string()).collect();
                format!("allow it with {} in {flags}", listed.join(", "))
            }
        }
    }

    fn with_value(&self, flag: &str, value: &str) -> String {
        format!("{} {value}", self.option_names.name(flag))
    }
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b','))
}

fn allow(tool: &str, content: Option<String>) -> PermissionUpdate {
    PermissionUpdate::AddRules {
        rules: vec![RuleValue { tool_name: tool.to_owned(), rule_content: content }],
        behavior: Behavior::Allow,
        destination: UpdateDestination::CliArg,
    }
}
