//! The roster of a coordinator: the agents that its sessions may start as threads. Versions are fixed when the coordinator is
//! saved, and a session keeps every member as it was then.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::agent::{AgentBody, read_model_id};
use super::toolset::Toolset;
use crate::model::fields::{Fields, each};
use crate::model::ids::AgentId;
use crate::model::memory_path::slug;
use crate::model::problem::Problem;

/// The most entries of a roster.
const MOST_ENTRIES: usize = 20;
const LONGEST_NAME: usize = 256;

/// An entry of a roster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RosterEntry {
    /// Another agent.
    Agent {
        /// The agent, as clients name it.
        id: String,
        /// Its version, once it is fixed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u64>,
        /// Its name in sessions of the coordinator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The coordinator itself.
    #[serde(rename = "self")]
    Itself,
    /// A model that gives advice.
    Advisor {
        /// The model.
        model: String,
    },
}

/// The roster of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// Its entries.
    pub agents: Vec<RosterEntry>,
}

impl Roster {
    /// Reads `multiagent`.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn read(fields: Fields<'_>) -> Result<Option<Self>, Problem> {
        let Some(roster) = fields.object("multiagent")? else { return Ok(None) };
        let read = || {
            if roster.word("type", &["coordinator"])?.is_none() {
                return Err(Problem::field("type", "is required"));
            }
            let items = roster.items("agents", MOST_ENTRIES)?;
            let agents = each("agents", items, entry)?;
            if agents.is_empty() {
                return Err(Problem::field("agents", "must name at least one agent"));
            }
            let mut seen = BTreeSet::new();
            for (index, entry) in agents.iter().enumerate() {
                let key = match entry {
                    RosterEntry::Agent { id, .. } => id.as_str(),
                    RosterEntry::Itself => "self",
                    RosterEntry::Advisor { .. } => "advisor",
                };
                if !seen.insert(key) {
                    let problem = format!("is a duplicate of `{key}`");
                    return Err(Problem::field(format!("agents[{index}]"), problem));
                }
            }
            Ok(Some(Self { agents }))
        };
        read().map_err(|problem: Problem| problem.inside("multiagent"))
    }

    /// The agents that it names, with their versions where they are fixed.
    pub fn named(&self) -> impl Iterator<Item = (&str, Option<u64>)> {
        self.agents.iter().filter_map(|entry| match entry {
            RosterEntry::Agent { id, version, .. } => Some((id.as_str(), *version)),
            RosterEntry::Itself | RosterEntry::Advisor { .. } => None,
        })
    }

    /// Fixes versions that were left open.
    pub fn pin(&mut self, versions: &HashMap<String, u64>) {
        for entry in &mut self.agents {
            if let RosterEntry::Agent { id, version, .. } = entry {
                *version = version.or_else(|| versions.get(id.as_str()).copied());
            }
        }
    }

    /// As clients read it; `own` is the coordinator.
    #[must_use]
    pub fn view(&self, own: (AgentId, u64)) -> Value {
        let view = |entry: &RosterEntry| match entry {
            RosterEntry::Agent { id, version, name } => {
                let mut view = json!({ "type": "agent", "id": id, "version": version });
                if let Some(name) = name {
                    view["name"] = json!(name);
                }
                view
            }
            RosterEntry::Itself => json!({ "type": "agent", "id": own.0, "version": own.1 }),
            RosterEntry::Advisor { model } => json!({ "type": "advisor", "model": model }),
        };
        json!({ "type": "coordinator", "agents": self.agents.iter().map(view).collect::<Vec<_>>() })
    }
}

fn entry(item: &Value) -> Result<RosterEntry, Problem> {
    let agent = |id: &str, version, name: Option<&str>| match AgentId::parse(id) {
        Some(id) => Ok(RosterEntry::Agent { id: id.to_string(), version, name: name.map(str::to_owned) }),
        None => Err(Problem::field("id", format!("is `{id}`, which is not the ID of an agent"))),
    };
    if let Some(id) = item.as_str() {
        return agent(id, None, None);
    }
    let fields = Fields::of_item(item)?;
    match fields.word("type", &["agent", "self", "advisor"])? {
        Some("self") => Ok(RosterEntry::Itself),
        Some("advisor") => {
            Ok(RosterEntry::Advisor { model: read_model_id(fields.text("model", 1..=256)?, "model")? })
        }
        Some(_) | None => {
            let version = fields.number("version", 0..=u64::MAX)?.filter(|version| *version > 0);
            agent(fields.text("id", 1..=256)?, version, fields.optional_text("name", 1..=LONGEST_NAME)?)
        }
    }
}

/// An agent of a roster as a session keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The agent, as clients name it.
    pub id: String,
    /// Its version.
    pub version: u64,
    /// What it is made of.
    pub body: AgentBody,
}

/// What a member of a team is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Role<'a> {
    /// Another agent.
    Agent(&'a Member),
    /// The coordinator itself.
    Itself,
    /// A model that gives advice.
    Advisor(&'a str),
}

/// A member of a session's team under the name by which the coordinator starts it.
#[derive(Debug, Clone, PartialEq)]
pub struct TeamMember<'a> {
    /// The name.
    pub name: String,
    /// What it is.
    pub role: Role<'a>,
}

/// The team of a coordinator, in the order of its roster.
#[must_use]
pub fn team<'a>(coordinator: &'a AgentBody, members: &'a [Member]) -> Vec<TeamMember<'a>> {
    let mut team: Vec<TeamMember<'_>> = Vec::new();
    for entry in coordinator.multiagent.iter().flat_map(|roster| &roster.agents) {
        let (wanted, role) = match entry {
            RosterEntry::Agent { id, name, .. } => {
                let Some(member) = members.iter().find(|member| member.id == *id) else { continue };
                (slug(name.as_ref().unwrap_or(&member.body.name)), Role::Agent(member))
            }
            RosterEntry::Itself => (slug(&coordinator.name), Role::Itself),
            RosterEntry::Advisor { model } => ("advisor".to_owned(), Role::Advisor(model)),
        };
        let others = (2..).map(|number| format!("{wanted}-{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(others);
        let is_free = |name: &String| team.iter().all(|member| member.name != *name);
        let name = names.find(is_free).unwrap_or(wanted);
        team.push(TeamMember { name, role });
    }
    team
}

/// The tools of every agent of a session together. What the agents of one session share must be the same for all.
///
/// # Errors
/// When two agents have different tools or servers of one name, or may reach different domains.
pub fn tools_together(coordinator: &AgentBody, members: &[Member]) -> Result<Toolset, Problem> {
    let wrong = |what: String| Err(Problem::field("agent", format!("has a roster whose agents have {what}")));
    let bodies = || std::iter::once(coordinator).chain(members.iter().map(|member| &member.body));
    let mut together = Toolset::default();
    let mut urls: HashMap<&str, &str> = HashMap::new();
    for body in bodies() {
        for server in &body.mcp_servers {
            if *urls.entry(&server.name).or_insert(&server.url) != server.url {
                return wrong(format!("different MCP servers named `{}`", server.name));
            }
        }
        let own = Toolset::new(&body.tools).with_skills(!body.skills.is_empty());
        if let Err(problem) = together.merge(own) {
            return wrong(problem.message);
        }
    }
    Ok(together)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Result<Option<Roster>, Problem> {
        let body = json!({ "multiagent": value });
        Roster::read(Fields::of_body(&body).unwrap())
    }

    fn agent(name: &str, tools: &Value) -> AgentBody {
        AgentBody::create(&json!({ "name": name, "model": "auto", "tools": tools })).unwrap()
    }

    #[test]
    fn a_roster_names_agents_once() {
        let one = AgentId([1; 16]).to_string();
        let roster = read(&json!({ "type": "coordinator", "agents": [one, { "type": "self" },
            { "type": "advisor", "model": "ultimate" }] }));
        let mut roster = roster.unwrap().unwrap();
        roster.pin(&HashMap::from([(one.clone(), 3)]));
        let view = roster.view((AgentId([2; 16]), 7));
        assert_eq!(view["agents"][0], json!({ "type": "agent", "id": one, "version": 3 }));
        assert_eq!(view["agents"][1]["version"], 7, "the coordinator itself");
        assert_eq!(view["agents"][2]["model"], "ultimate");
        let stored = serde_json::to_string(&roster).unwrap();
        assert_eq!(serde_json::from_str::<Roster>(&stored).unwrap(), roster);
        assert_eq!(read(&Value::Null).unwrap(), None);
        for (wrong, field) in [
            (json!({ "agents": [one] }), "multiagent.type"),
            (json!({ "type": "coordinator", "agents": [] }), "multiagent.agents"),
            (json!({ "type": "coordinator", "agents": [one, one] }), "multiagent.agents[1]"),
            (json!({ "type": "coordinator", "agents": ["x"] }), "multiagent.agents[0].id"),
            (
                json!({ "type": "coordinator", "agents": [{ "type": "advisor", "model": "scripted:x" }] }),
                "multiagent.agents[0].model",
            ),
            (json!({ "type": "swarm" }), "multiagent.type"),
        ] {
            assert_eq!(read(&wrong).unwrap_err().field.as_deref(), Some(field), "{wrong}");
        }
    }

    #[test]
    fn members_have_names_of_their_own() {
        let ids = [AgentId([1; 16]).to_string(), AgentId([2; 16]).to_string()];
        let roster = json!({ "type": "coordinator", "agents": [ids[0], ids[1], { "type": "self" }] });
        let coordinator = AgentBody { multiagent: read(&roster).unwrap(), ..agent("Lead", &json!([])) };
        let member =
            |id: &String| Member { id: id.clone(), version: 1, body: agent("Code Reader", &json!([])) };
        let members: Vec<Member> = ids.iter().map(member).collect();
        let names: Vec<String> = team(&coordinator, &members).into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["code-reader", "code-reader-2", "lead"]);
    }

    #[test]
    fn agents_share_tools_that_are_the_same() {
        let custom = |text: &str| {
            json!([{ "type": "custom", "name": "weather", "description": text,
                "input_schema": { "type": "object" } }])
        };
        let member = |body| Member { id: "agent_1".to_owned(), version: 1, body };
        let coordinator = agent("a", &custom("same"));
        let together = tools_together(&coordinator, &[member(agent("b", &custom("same")))]).unwrap();
        assert_eq!(together.external.len(), 1);
        assert!(tools_together(&coordinator, &[member(agent("b", &custom("other")))]).is_err());
        let toolset = json!([{ "type": "agent_toolset_20260401", "enabled_tools": ["Bash"] }]);
        let together = tools_together(&coordinator, &[member(agent("b", &toolset))]).unwrap();
        assert_eq!(together.enabled().map(|(tool, _)| tool.name).collect::<Vec<_>>(), ["Bash"]);
    }
}
