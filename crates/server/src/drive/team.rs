//! The agents that a session may start, as the runtime knows them. Each has its own prompt, model, tools and policies; they share
//! the session's workspace, servers and credentials.

use std::collections::BTreeMap;

use qoder_runtime::config::agents::AgentDefinition;
use qoder_runtime::config::sources::Origin;

use super::options::{RuntimeSettings, offered, policies};
use crate::model::agent::AgentBody;
use crate::model::roster::{Role, team, tools_together};
use crate::model::session::SessionBody;
use crate::model::toolset::Toolset;

/// The tools with which an advisor looks for itself.
const READING: [&str; 3] = ["Read", "Glob", "Grep"];
const ADVICE: &str = "You advise another agent. Think about its question thoroughly, look at files where that helps, and answer \
with what you would do and why. You change nothing.";

/// The agents of a session and their tools.
#[derive(Debug, Clone, Default)]
pub(super) struct Team {
    /// The agents, by name.
    pub(super) agents: BTreeMap<String, AgentDefinition>,
    /// The tools of each.
    pub(super) toolsets: BTreeMap<String, Toolset>,
    /// The tools of all of them and of the session's own agent together.
    pub(super) together: Toolset,
}

/// The toolset of an agent; `is_outside` in an environment whose workers run tools.
pub(super) fn toolset(body: &AgentBody, has_team: bool, is_outside: bool) -> Toolset {
    let toolset = Toolset::new(&body.tools).with_skills(!body.skills.is_empty()).with_team(has_team);
    if is_outside { toolset.outside() } else { toolset }
}

impl Team {
    /// The team of a session. `facts` is what every agent reads about the session's places.
    pub(super) fn new(
        body: &SessionBody,
        facts: &[String],
        settings: &RuntimeSettings,
        is_outside: bool,
    ) -> Result<Self, String> {
        let members = team(&body.agent, &body.members);
        let together = tools_together(&body.agent, &body.members).map_err(|problem| problem.message)?;
        let together = if is_outside { together.outside() } else { together };
        let mut all = Self { together: together.with_team(!members.is_empty()), ..Self::default() };
        for member in members {
            let (body, toolset) = match member.role {
                Role::Agent(agent) => (&agent.body, toolset(&agent.body, false, is_outside)),
                Role::Itself => (&body.agent, toolset(&body.agent, false, is_outside)),
                Role::Advisor(model) => {
                    let reading = if is_outside { reading().outside() } else { reading() };
                    let definition = AgentDefinition {
                        tools: Some([offered(&reading), external(&reading)].concat()),
                        model: Some(settings.model_for(model).to_owned()),
                        ..AgentDefinition::new("Gives advice on hard questions.", ADVICE, Origin::Flag)
                    };
                    all.toolsets.insert(member.name.clone(), reading);
                    all.agents.insert(member.name, definition);
                    continue;
                }
            };
            let definition = definition(body, &toolset, &all.together, facts);
            let model = definition.model.as_deref().map(|model| settings.model_for(model).to_owned());
            all.agents.insert(member.name.clone(), AgentDefinition { model, ..definition });
            all.toolsets.insert(member.name, toolset);
        }
        for toolset in all.toolsets.values() {
            // An advisor may be the only one that reads.
            all.together.merge(toolset.clone()).map_err(|problem| problem.message)?;
        }
        Ok(all)
    }

    /// The tools that the session's own agent does not have.
    pub(super) fn tools_of_agents(&self, own: &Toolset) -> Vec<String> {
        let (own, seen) = ([offered(own), external(own)].concat(), hidden(&self.together, own));
        let all = [offered(&self.together), external(&self.together)].concat();
        all.into_iter().filter(|name| !own.contains(name)).chain(seen).collect()
    }
}

/// The tools of an advisor.
fn reading() -> Toolset {
    let entry = serde_json::json!([{ "type": "agent_toolset_20260401", "enabled_tools": READING }]);
    crate::model::tools::read(&entry).map(|entries| Toolset::new(&entries)).unwrap_or_default()
}

/// The tools that do not run here.
fn external(toolset: &Toolset) -> Vec<String> {
    let outside = toolset.outside.iter().map(|(name, _)| (*name).to_owned());
    toolset.external.iter().map(|tool| tool.alias.clone()).chain(outside).collect()
}

/// Tools of servers that the session reaches and an agent does not see.
fn hidden(together: &Toolset, own: &Toolset) -> Vec<String> {
    let mut hidden = Vec::new();
    for server in &together.servers {
        let seen = own.servers.iter().find(|known| known.alias == server.alias);
        for tool in server.tools.keys() {
            let policy = seen.map(|seen| seen.tools.get(tool).copied().unwrap_or(seen.default));
            if policy.flatten().is_none() {
                hidden.push(qoder_mcp::tool_name(&server.alias, tool));
            }
        }
    }
    hidden
}

fn definition(body: &AgentBody, toolset: &Toolset, together: &Toolset, facts: &[String]) -> AgentDefinition {
    let description = body.description.clone().unwrap_or_else(|| body.name.clone());
    let prompt: Vec<&str> =
        body.system.as_deref().into_iter().chain(facts.iter().map(String::as_str)).collect();
    AgentDefinition {
        tools: Some([offered(toolset), external(toolset)].concat()),
        disallowed_tools: hidden(together, toolset),
        model: Some(body.model.id.clone()),
        effort: body.model.effort.clone(),
        policies: Some(policies(toolset)),
        ..AgentDefinition::new(description, prompt.join("\n"), Origin::Flag)
    }
}
