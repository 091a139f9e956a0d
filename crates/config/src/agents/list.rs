//! The agents of a session, from all sources: which of two with one name wins, what the model reads of them, and the
//! rows that hosts are shown. What a winner hides is kept, so that people can see it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{AgentDefinition, GENERAL_PURPOSE, built_in};
use crate::sources::{Origin, Problem};

/// The most agents that the prompt lists with their purpose.
const MOST_TOLD: usize = 50;
/// The most characters of a purpose in the prompt.
const LONGEST_TOLD: usize = 400;
/// The most characters of a purpose in a row, so that all rows fit into one line of the protocol.
const LONGEST_ROW: usize = 500;

/// What counts of a definition.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It is an agent of the session.
    Active,
    /// Another one of the same name counts.
    Shadowed {
        /// Who defined that one.
        by: Origin,
        /// The file that one is in.
        path: Option<PathBuf>,
    },
    /// The settings switch it off.
    Disabled,
}

/// A definition and what counts of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The definition.
    pub definition: AgentDefinition,
    /// Whether it counts.
    pub standing: Standing,
}

/// The agents of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentList {
    /// By name; the definition that counts first, then those that it hides, the highest first.
    entries: BTreeMap<String, Vec<Listed>>,
}

impl Default for AgentList {
    fn default() -> Self {
        Self::built_in(None)
    }
}

impl AgentList {
    /// No agents.
    #[must_use]
    pub fn empty() -> Self {
        Self { entries: BTreeMap::new() }
    }

    /// The agents that come with the program. `light` is the name of a light model, when the configuration has one.
    #[must_use]
    pub fn built_in(light: Option<&str>) -> Self {
        let mut list = Self::empty();
        for (name, definition) in built_in::all(light) {
            // Each has a name of its own.
            let _ = list.add(name, definition);
        }
        list
    }

    /// Adds a definition over all that were added before. A second one of the same name and source is left out.
    ///
    /// # Errors
    /// When it was left out.
    pub fn add(&mut self, name: String, definition: AgentDefinition) -> Result<(), Problem> {
        let entries = self.entries.entry(name.clone()).or_default();
        if let Some(first) = entries.iter().find(|one| one.definition.origin == definition.origin) {
            let place = first.definition.path.as_ref().map(|path| path.display().to_string());
            let text = format!(
                "the agent `{name}` is defined in {} already, which counts",
                place.unwrap_or_else(|| "this source".to_owned())
            );
            let path = definition.path.clone().unwrap_or_default();
            return Err(Problem { path, line: None, text, origin: definition.origin });
        }
        for one in entries.iter_mut() {
            one.standing =
                Standing::Shadowed { by: definition.origin.clone(), path: definition.path.clone() };
        }
        entries.insert(0, Listed { name, definition, standing: Standing::Active });
        Ok(())
    }

    /// Every definition, those that do not count included.
    pub fn all(&self) -> impl Iterator<Item = &Listed> {
        let order = |name: &String| name != GENERAL_PURPOSE;
        let mut names: Vec<&String> = self.entries.keys().collect();
        names.sort_by_key(|name| order(name));
        names.into_iter().filter_map(|name| self.entries.get(name)).flatten()
    }

    fn active(&self) -> impl Iterator<Item = &Listed> {
        self.all().filter(|one| one.standing == Standing::Active)
    }

    /// The definition that counts for a name, built-in ones included.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&AgentDefinition> {
        let first = self.entries.get(name)?.first()?;
        (first.standing == Standing::Active).then_some(&first.definition)
    }

    /// The definition of a child. The unchanged general-purpose agent has none: it works with the prompt and
    /// the tools of the session itself.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentDefinition> {
        let definition = self.find(name)?;
        let is_plain = name == GENERAL_PURPOSE && *definition == built_in::general_purpose();
        (!is_plain).then_some(definition)
    }

    /// The definition that counts for a name, to be changed; those that are switched off included.
    pub(super) fn winner(&mut self, name: &str) -> Option<&mut Listed> {
        self.entries.get_mut(name)?.first_mut()
    }

    /// Leaves out every agent that does not pass.
    pub fn keep(&mut self, passes: impl Fn(&str) -> bool) {
        self.entries.retain(|name, _| passes(name));
    }

    /// The names that count.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.active().map(|one| one.name.as_str()).collect()
    }

    /// Name, description and model of each, as the documented `AgentInfo`.
    #[must_use]
    pub fn rows(&self) -> Vec<Value> {
        let row = |one: &Listed| {
            let description = cut(&one.definition.description, LONGEST_ROW);
            let mut row = json!({ "name": one.name, "description": description });
            if let Some(model) = one.definition.other_model() {
                row["model"] = json!(model);
            }
            row
        };
        self.active().map(row).collect()
    }

    /// What each takes of the model's context, for the documented `get_context_usage`.
    #[must_use]
    pub fn usage(&self) -> Vec<Value> {
        let row = |one: &Listed| {
            let tokens = line(one).len() / 4;
            json!({ "agentType": one.name, "source": one.definition.origin.as_str(), "tokens": tokens })
        };
        self.active().map(row).collect()
    }

    /// What the prompt says of them, when there is more than the one.
    pub fn prompt_text(&self) -> Option<String> {
        let others: Vec<&Listed> = self.active().filter(|one| one.name != GENERAL_PURPOSE).collect();
        if others.is_empty() {
            return None;
        }
        let mut lines: Vec<String> = others.iter().take(MOST_TOLD).map(|one| line(one)).collect();
        if others.len() > MOST_TOLD {
            lines.push(format!("({} more agents are not described here.)", others.len() - MOST_TOLD));
        }
        let title = match self.find(GENERAL_PURPOSE) {
            Some(_) => format!("The agents besides `{GENERAL_PURPOSE}`:"),
            None => "The agents, one of which `agent` must name:".to_owned(),
        };
        Some(format!("\n\n{title}\n{}", lines.join("\n")))
    }
}

fn line(one: &Listed) -> String {
    format!("- `{}`: {}", one.name, cut(&one.definition.description, LONGEST_TOLD))
}

/// A text on one line, at most this long.
fn cut(text: &str, longest: usize) -> String {
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match whole.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", whole[..end].trim_end()),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(origin: Origin, description: &str) -> AgentDefinition {
        AgentDefinition::new(description, "p", origin)
    }

    #[test]
    fn the_winner_shadows_and_the_shadowed_are_kept() {
        let mut list = AgentList::default();
        for (origin, words) in [
            (Origin::User, "of the user"),
            (Origin::Project, "of the project"),
            (Origin::Flag, "of the flag"),
        ] {
            list.add("r".to_owned(), agent(origin.clone(), words)).unwrap();
            assert_eq!(list.find("r").unwrap().description, words);
        }
        let all: Vec<_> = list.all().filter(|one| one.name == "r").collect();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].standing, Standing::Active);
        assert_eq!(all[1].standing, Standing::Shadowed { by: Origin::Flag, path: None });
        assert_eq!(all[2].standing, Standing::Shadowed { by: Origin::Flag, path: None });
        let problem = list.add("r".to_owned(), agent(Origin::User, "again")).unwrap_err();
        assert!(problem.text.contains("`r` is defined"), "{problem}");
        assert_eq!(list.names(), [GENERAL_PURPOSE, "Explore", "Plan", "r"]);
    }

    #[test]
    fn the_usual_agent_is_the_session_itself_until_somebody_defines_it() {
        let mut list = AgentList::default();
        assert!(list.find(GENERAL_PURPOSE).is_some() && list.get(GENERAL_PURPOSE).is_none());
        assert!(list.get("Explore").is_some_and(|one| !one.has("Bash") && !one.has("Write")));
        list.add(GENERAL_PURPOSE.to_owned(), agent(Origin::User, "mine")).unwrap();
        assert_eq!(list.get(GENERAL_PURPOSE).unwrap().description, "mine");
    }

    #[test]
    fn what_the_model_is_told_is_bounded() {
        let mut list = AgentList::default();
        for number in 0..100 {
            let words = format!("first line\n{}", "word ".repeat(1_000));
            list.add(format!("a{number:03}"), agent(Origin::User, &words)).unwrap();
        }
        let told = list.prompt_text().unwrap();
        assert!(told.len() < 60 * LONGEST_TOLD, "{}", told.len());
        assert!(told.contains("(52 more agents are not described here.)"), "{told}");
        assert!(told.contains("- `a000`: first line word"), "{told}");
        assert!(list.rows()[5]["description"].as_str().unwrap().chars().count() <= LONGEST_ROW + 1);
        assert_eq!(list.usage().len(), 103);
    }

    #[test]
    fn a_light_model_is_that_of_explore_alone() {
        let list = AgentList::built_in(Some("lite"));
        let rows = list.rows();
        assert_eq!((&rows[1]["name"], &rows[1]["model"]), (&json!("Explore"), &json!("lite")));
        assert_eq!(rows[2].get("model"), None);
    }
}
