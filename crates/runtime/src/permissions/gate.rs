//! Takes a call to the gate: rules and places as the session's records have changed them, the policy's decision, and
//! what an open question means here. No answer is ever an allowance.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use qoder_core::OptionNames;
use qoder_core::permissions::SessionPermissions;
use qoder_core::ports::{Hidden, Tool};
use qoder_policy::{Confinement, PlaceError, Policy, Question, RuleSet, Ruling, Workspace, decide};
use qoder_types::server::ToolPolicies;
use qoder_types::{PermissionMode, RuleValue};
use serde_json::Value;

use super::local_files::LocalFiles;
use super::tool_policies::tighten;

/// What an ask means when no one can answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unattended {
    /// The call is denied.
    #[default]
    Deny,
    /// The call is pending in the log until it gets an answer; the process ends meanwhile.
    Park,
}

/// Everything the gate needs apart from the call.
#[derive(Debug, Default)]
pub struct Gate {
    /// The rules the session was started with, or those that took their place.
    pub rules: RwLock<RuleSet>,
    /// The mode the session was started in.
    pub mode: PermissionMode,
    /// True when a person chose the mode for this very run.
    pub mode_is_explicit: bool,
    /// True when the mode holds in a folder that is not trusted, because a person chose it for this run.
    pub mode_holds_anywhere: bool,
    /// The mode after an approved plan, for a session that was started for planning.
    pub mode_after_plan: PermissionMode,
    /// True when someone vouched for the folder.
    pub trusted: bool,
    /// The places the session was started with.
    pub workspace: Workspace,
    /// What an ask means without anyone.
    pub unattended: Unattended,
    /// What is decided about each tool, beside rules and mode.
    pub policies: ToolPolicies,
    /// How advice names options.
    pub option_names: OptionNames,
    /// The compiled rules, and the version of the session's changes they were compiled for.
    pub compiled: Mutex<Option<(u64, Arc<Policy>)>>,
}

/// A call on its way through the gate.
#[derive(Debug, Clone, Copy)]
pub struct CallInPlace<'a> {
    /// Its relative paths start here.
    pub cwd: &'a Path,
    /// What the session changed about its permissions.
    pub permissions: &'a SessionPermissions,
    /// Whether a command of it would run in the sandbox.
    pub confinement: Confinement,
}

impl Gate {
    /// The rules and places in force, compiled once per change.
    pub fn policy(&self, permissions: &SessionPermissions) -> Arc<Policy> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        match &*compiled {
            Some((version, policy)) if *version == permissions.version => Arc::clone(policy),
            _ => {
                let policy = Arc::new(self.compile(permissions));
                *compiled = Some((permissions.version, Arc::clone(&policy)));
                policy
            }
        }
    }

    pub(super) fn compile(&self, permissions: &SessionPermissions) -> Policy {
        let rules = self
            .rules
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .with_updates(permissions.updates(), permissions.turn_rules());
        Policy::new(&rules, permissions.workspace(&self.workspace))
    }

    /// True when a rule keeps the model from seeing a tool.
    #[must_use]
    pub fn hides(&self, tool: &str) -> bool {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).hides(tool)
    }

    /// True when a rule denies a whole tool or wants to be asked about it.
    #[must_use]
    pub fn guards(&self, tool: &str) -> bool {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.deny.iter().chain(&rules.ask).any(|rule| rule.covers_whole(tool))
    }

    /// Other rules in place of those the session was started with. What the session changed by itself stays on top.
    pub fn replace_rules(&self, rules: RuleSet) {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        *compiled = None;
    }

    /// The gate of a child session: the same rules and places, and the mode that the parent has now, whatever mode the
    /// run was started in. Compiled rules are its own, because each session counts its changes by itself. `may_park` is
    /// false for a child to which no process can come back later: a question of it cannot wait.
    #[must_use]
    pub fn of_child(&self, mode: PermissionMode, may_park: bool) -> Self {
        Self {
            rules: RwLock::new(self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()),
            mode,
            mode_is_explicit: false,
            mode_holds_anywhere: self.mode_holds_anywhere,
            mode_after_plan: self.mode_after_plan,
            trusted: self.trusted,
            workspace: self.workspace.clone(),
            unattended: if may_park { self.unattended } else { Unattended::Deny },
            policies: self.policies.clone(),
            option_names: self.option_names,
            compiled: Mutex::default(),
        }
    }

    /// The same with policies of its own, where it has some.
    #[must_use]
    pub(crate) fn with_policies(self, policies: Option<&ToolPolicies>) -> Self {
        Self { policies: policies.cloned().unwrap_or(self.policies), ..self }
    }

    /// The same with one more place to work in.
    #[must_use]
    pub(crate) fn reaching(mut self, folder: PathBuf) -> Self {
        self.workspace.roots.push(folder);
        self
    }

    /// The mode in force.
    #[must_use]
    pub fn mode(&self, permissions: &SessionPermissions) -> PermissionMode {
        permissions.mode.unwrap_or(self.mode)
    }

    /// The mode to which an approved plan returns.
    #[must_use]
    pub fn mode_before_plan(&self, permissions: &SessionPermissions) -> PermissionMode {
        let started = if self.mode == PermissionMode::Plan { self.mode_after_plan } else { self.mode };
        permissions.before_plan.unwrap_or(started)
    }

    /// Decides about one call. Rules keep their anchors wherever a command moved the session to: otherwise `cd` would
    /// lift a denial.
    ///
    /// # Errors
    /// When the input names a place that cannot exist.
    pub fn decide(
        &self,
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> Result<Ruling, PlaceError> {
        self.decide_by(&self.policy(call.permissions), tool, input, call)
    }

    /// Decides about a call of a command, whose rules count beside those in force. They are not kept: the turn that they
    /// are for has not begun.
    ///
    /// # Errors
    /// When the input names a place that cannot exist.
    pub fn decide_allowing(
        &self,
        rules: &[RuleValue],
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> Result<Ruling, PlaceError> {
        if rules.is_empty() {
            return self.decide(tool, input, call);
        }
        let mut permissions = call.permissions.clone();
        permissions.allow_for_turn(rules);
        self.decide_by(&self.compile(&permissions), tool, input, call)
    }

    pub(super) fn decide_by(
        &self,
        policy: &Policy,
        tool: &dyn Tool,
        input: &Value,
        call: &CallInPlace<'_>,
    ) -> Result<Ruling, PlaceError> {
        let name = &tool.definition().name;
        let ruling = decide(&Question {
            tool: name,
            accesses: &tool.accesses(input),
            mode: self.mode(call.permissions),
            trusted: self.trusted,
            // What a person or host chose for this session counts like a choice for this run.
            mode_is_explicit: self.mode_holds_anywhere || call.permissions.mode.is_some(),
            policy,
            cwd: call.cwd,
            confinement: call.confinement,
            files: &LocalFiles,
        })?;
        Ok(tighten(ruling, name, self.policies.of(name)))
    }

    /// True when a rule in force names this very host. The compiled rules are those of the last decision, so a rule that
    /// came with an answer counts too.
    #[must_use]
    pub fn names_host(&self, host: &str) -> bool {
        let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        match &*compiled {
            Some((_, policy)) => policy.names_host(host),
            None => false,
        }
    }

    /// True when a rule in force keeps this host from being fetched from without a question.
    #[must_use]
    pub fn guards_host(&self, host: &str) -> bool {
        let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.as_ref().is_some_and(|(_, policy)| policy.guards_host(host))
    }

    /// What searches must pass over.
    #[must_use]
    pub fn hidden(&self, permissions: &SessionPermissions) -> Option<Hidden> {
        let policy = self.policy(permissions);
        policy.hides_something().then(|| Arc::new(move |path: &Path| policy.is_hidden(path)) as Hidden)
    }
}
