//! Takes a call to the gate: resolves the paths it would touch, asks the policy, and says what an open question means
//! when nobody can be asked. No answer is ever an allowance.

use std::path::Path;

use qoder_core::policy::{
    Question, ResolvedAccess, RuleSet, Workspace, decide, hidden_from_search, is_protected,
};
use qoder_core::ports::{Access, Hidden, Tool};
use qoder_types::{Behavior, Decision, DecisionLayer, PermissionMode};
use serde_json::Value;

/// Everything the gate needs apart from the call.
#[derive(Debug)]
pub struct Gate {
    /// The rules in force.
    pub rules: RuleSet,
    /// The mode the session is in.
    pub mode: PermissionMode,
    /// True when someone vouched for the folder.
    pub trusted: bool,
    /// The places.
    pub workspace: Workspace,
}

impl Gate {
    /// Decides about one call; its relative paths start at `cwd`. Rules keep their anchors wherever a command moved the
    /// session to: otherwise `cd` would lift a denial. The error is for the model: the input names a place that cannot
    /// exist.
    pub fn decide(&self, tool: &dyn Tool, input: &Value, cwd: &Path) -> Result<Decision, String> {
        let name = &tool.definition().name;
        let mut accesses = Vec::new();
        for access in tool.accesses(input) {
            accesses.push(resolve(access, cwd)?);
        }
        let decision = decide(&Question {
            tool: name,
            accesses: &accesses,
            mode: self.mode,
            trusted: self.trusted,
            rules: &self.rules,
            workspace: &self.workspace,
            cwd,
        });
        Ok(match decision.behavior {
            Behavior::Allow | Behavior::Deny => decision,
            Behavior::Ask => self.nobody_answers(decision, name, &accesses),
        })
    }

    /// What searches must pass over.
    #[must_use]
    pub fn hidden(&self) -> Option<Hidden> {
        let hidden = hidden_from_search(&self.rules, &self.workspace)?;
        Some(std::sync::Arc::new(hidden))
    }

    /// In print mode without a host nobody can answer, and absence of a decision is a denial.
    fn nobody_answers(&self, asked: Decision, tool: &str, accesses: &[ResolvedAccess]) -> Decision {
        let way = match accesses.first() {
            _ if asked.layer == DecisionLayer::SafetyCheck => {
                "run it by hand, or allow it by a rule that names exactly this where one can".to_owned()
            }
            Some(ResolvedAccess::Edit { real, .. }) if is_protected(real, &self.workspace) => {
                format!("allow it by a rule that names the file: --allowed-tools 'Edit(/{})'", real.display())
            }
            Some(ResolvedAccess::Edit { real, .. } | ResolvedAccess::Read { real, .. })
                if !self.workspace.roots.iter().any(|root| real.starts_with(root)) =>
            {
                "add the directory with --add-dir".to_owned()
            }
            Some(ResolvedAccess::Command(_)) => {
                "allow it with --allowed-tools 'Bash(COMMAND)' or a rule in the settings".to_owned()
            }
            Some(ResolvedAccess::Edit { .. }) if self.trusted => {
                "allow it with --permission-mode acceptEdits or --allowed-tools Edit".to_owned()
            }
            _ => format!("allow it with --allowed-tools {tool} or a rule in the settings"),
        };
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
}

fn resolve(access: Access, cwd: &Path) -> Result<ResolvedAccess, String> {
    let place = |path: &Path| {
        qoder_tools::paths::resolve(cwd, &path.to_string_lossy())
            .map(|resolved| (resolved.lexical, resolved.real))
            .map_err(|error| error.to_string())
    };
    Ok(match access {
        Access::Read(path) => {
            let (lexical, real) = place(&path)?;
            ResolvedAccess::Read { lexical, real }
        }
        Access::Edit(path) => {
            let (lexical, real) = place(&path)?;
            ResolvedAccess::Edit { lexical, real }
        }
        Access::Command(command) => ResolvedAccess::Command(command),
        Access::Fetch(url) => ResolvedAccess::Fetch(url),
        Access::Person => ResolvedAccess::Person,
        Access::Internal => ResolvedAccess::Internal,
        Access::Other => ResolvedAccess::Other,
    })
}
