//! The gate on its own: one case of rules, mode and call in, one decision out. Nothing is run and no settings are read;
//! what makes no sense is a denial that says why. Cases with equal rules and places share what was compiled for them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qoder_core::ports::{Access, Tool};
use qoder_policy::{Confinement, FileSystem, Policy, Question, Rule, RuleSet, Workspace, decide};
use qoder_types::{Behavior, Decision, PermissionMode, RuleOrigin, RuleSource};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agents;
pub use crate::permissions::LocalFiles;
use crate::tools::config;
use crate::tools::skill;

/// How many different sets of rules and places are kept compiled.
const KEPT: usize = 32;

#[derive(Debug, Deserialize)]
struct Case<'a> {
    #[serde(borrow, default)]
    rules: Option<&'a RawValue>,
    #[serde(default)]
    mode: Option<String>,
    tool: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    project_root: Option<PathBuf>,
    #[serde(default)]
    home: Option<PathBuf>,
    #[serde(default)]
    trusted: Option<bool>,
    #[serde(default)]
    additional_directories: Vec<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
struct Rules {
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
}

/// Answers cases.
pub struct Checker {
    tools: Vec<Arc<dyn Tool>>,
    policies: HashMap<String, (Arc<Policy>, Vec<String>)>,
    cwd: PathBuf,
    home: PathBuf,
}

/// The answer to a case.
#[derive(Debug)]
pub struct Checked {
    /// One line of JSON.
    pub line: String,
    /// True when the case itself could not be used.
    pub is_error: bool,
}

impl Checker {
    /// `cwd` and `home` are for cases that name none.
    #[must_use]
    pub fn new(cwd: PathBuf, home: PathBuf) -> Self {
        let tools = qoder_tools::built_in(&qoder_tools::ToolSettings::default());
        Self { tools, policies: HashMap::new(), cwd, home }
    }

    /// Answers one case.
    pub fn check(&mut self, case: &str) -> Checked {
        match self.decide(case) {
            Ok((decision, warnings)) => {
                let mut reason = explanation(&decision);
                if !warnings.is_empty() {
                    reason["warnings"] = json!(warnings);
                }
                Checked {
                    line: json!({"decision": decision.behavior, "reason": reason}).to_string(),
                    is_error: false,
                }
            }
            Err(problem) => {
                let reason = json!({"type": "error", "message": problem});
                Checked { line: json!({"decision": "deny", "reason": reason}).to_string(), is_error: true }
            }
        }
    }

    fn decide(&mut self, case: &str) -> Result<(Decision, Vec<String>), String> {
        let case: Case<'_> =
            serde_json::from_str(case).map_err(|error| format!("the case cannot be read: {error}"))?;
        let mode = match case.mode.as_deref() {
            None => PermissionMode::Default,
            Some(word) => PermissionMode::parse(word).ok_or_else(|| {
                format!("there is no mode `{word}`; the modes are {}", PermissionMode::ACCEPTED)
            })?,
        };
        let trusted = case.trusted.unwrap_or(true);
        let cwd = LocalFiles.real(&self.cwd.join(case.cwd.as_deref().unwrap_or(Path::new("."))))?;
        let (policy, warnings) = self.policy(&case, &cwd, trusted)?;
        let accesses = self.accesses(&case.tool, &case.input);
        let ruling = decide(&Question {
            tool: &case.tool,
            accesses: &accesses,
            mode,
            trusted,
            mode_is_explicit: false,
            policy: &policy,
            cwd: &cwd,
            confinement: Confinement::None,
            files: &LocalFiles,
        })?;
        Ok((ruling.decision, warnings))
    }

    fn accesses(&self, tool: &str, input: &Value) -> Vec<Access> {
        if tool == agents::NAME {
            return vec![Access::Agent(agents::named(input))];
        }
        if tool == skill::NAME {
            // Which skills there are is not known here, nor what they bring.
            return vec![Access::Skill { name: skill::named(input), only_text: false }];
        }
        if tool == config::NAME {
            return config::accesses(input);
        }
        match self.tools.iter().find(|known| known.definition().name == tool) {
            Some(tool) => tool.accesses(input),
            None => vec![Access::Other],
        }
    }

    fn policy(
        &mut self,
        case: &Case<'_>,
        cwd: &Path,
        trusted: bool,
    ) -> Result<(Arc<Policy>, Vec<String>), String> {
        let rules = case.rules.map_or("{}", RawValue::get);
        let key = format!(
            "{rules}\0{}\0{:?}\0{:?}\0{:?}\0{trusted}",
            cwd.display(),
            case.project_root,
            case.home,
            case.additional_directories
        );
        if let Some((policy, warnings)) = self.policies.get(&key) {
            return Ok((Arc::clone(policy), warnings.clone()));
        }
        let (rules, warnings) = read_rules(rules)?;
        let home = case.home.clone().unwrap_or_else(|| self.home.clone());
        let real = |path: &Path| LocalFiles.real(&cwd.join(path));
        let project_root = case.project_root.as_deref().map_or_else(|| Ok(cwd.to_path_buf()), real)?;
        let mut roots = vec![cwd.to_path_buf()];
        if trusted && project_root != cwd {
            roots.push(project_root.clone());
        }
        for directory in &case.additional_directories {
            roots.push(real(directory)?);
        }
        let home = LocalFiles.real(&home)?;
        let config_dir = home.join(".qoder");
        let cwd = cwd.to_path_buf();
        let protected = Vec::new();
        let workspace = Workspace { cwd, project_root, home, roots, config_dir, protected, isolation: None };
        let policy = Arc::new(Policy::new(&rules, workspace));
        if self.policies.len() >= KEPT {
            self.policies.clear();
        }
        self.policies.insert(key, (Arc::clone(&policy), warnings.clone()));
        Ok((policy, warnings))
    }
}

/// A deny or ask rule that cannot be read stops everything; an allow rule is left out with a word about it.
fn read_rules(text: &str) -> Result<(RuleSet, Vec<String>), String> {
    if !text.starts_with('{') {
        return Err("`rules` is not an object with the lists `allow`, `ask` and `deny`".to_owned());
    }
    let lists: Rules =
        serde_json::from_str(text).map_err(|error| format!("`rules` cannot be read: {error}"))?;
    let mut rules = RuleSet::default();
    let mut warnings = Vec::new();
    let origin = RuleOrigin { source: RuleSource::FlagSettings, file: None, line: None };
    for (behavior, texts) in
        [(Behavior::Deny, lists.deny), (Behavior::Ask, lists.ask), (Behavior::Allow, lists.allow)]
    {
        for text in texts {
            match Rule::parse(&text, origin.clone()) {
                Ok(rule) => rules.add(behavior, rule),
                Err(error) if behavior == Behavior::Allow => warnings.push(format!("{error}; it is ignored")),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    Ok((rules, warnings))
}

/// A decision as people and programs read it.
#[must_use]
pub fn explanation(decision: &Decision) -> Value {
    let mut reason = json!({
        "type": decision.layer, "message": decision.reason, "mode": decision.mode.as_str(),
    });
    if let Some(rule) = &decision.rule {
        reason["rule"] = json!(rule);
    }
    if let Some(origin) = &decision.origin {
        reason["origin"] = json!(origin);
    }
    if let Some(by) = &decision.answered_by {
        reason["answeredBy"] = json!(by);
    }
    if !decision.considered.is_empty() {
        reason["considered"] = json!(decision.considered);
    }
    reason
}
