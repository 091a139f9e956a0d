//! The agents of a session, put together from all sources, and the one that the main conversation runs as: its prompt,
//! model, tools and mode become those of the session.

use std::collections::BTreeMap;
use std::sync::Arc;

use qoder_config::skills::SkillList;
use qoder_core::ports::Thinking;

use super::permissions::mode;
use super::{Setup, SetupError, value_error};
use crate::agents::{MemoryPlaces, OwnMemory};
use crate::events::Notice;
use qoder_config::agents::{AgentDefinition, AgentList, apply_overrides, read_place};
use qoder_config::plugins::Plugin;
use qoder_config::sources::{Kind, Origin, Problem};

/// The setting that names the agent of the main conversation.
const MAIN: &str = "agent";
/// Tiers of light models, the lightest first.
const LIGHT: [&str; 2] = ["lite", "efficient"];

impl Setup {
    /// The agents of all sources, as the settings change them. `own` are those of the front.
    ///
    /// # Errors
    /// When the settings about agents cannot be used; what is wrong with files is among the problems.
    pub(super) fn agents(
        &self,
        plugins: &[Plugin],
        own: BTreeMap<String, AgentDefinition>,
        problems: &mut Vec<Problem>,
    ) -> Result<AgentList, SetupError> {
        let mut list = if self.options.only_own_agents {
            AgentList::empty()
        } else {
            AgentList::built_in(self.light_model())
        };
        for place in self.config.places(Kind::Agents, plugins) {
            let inside = self.config.boundary(&place.origin, plugins);
            for (name, definition) in read_place(&place, inside, problems) {
                if let Err(problem) = list.add(name, definition) {
                    problems.push(problem);
                }
            }
        }
        for (name, definition) in own {
            // No list shows what a program defines, so what has no effect is reported at once.
            let note = |text: &String| Problem {
                path: format!("agents.{name}").into(),
                line: None,
                text: text.clone(),
                origin: Origin::Flag,
            };
            problems.extend(definition.notes.iter().map(note));
            if let Err(problem) = list.add(name, definition) {
                problems.push(problem);
            }
        }
        apply_overrides(&mut list, &self.config.settings, problems)?;
        if let Some(main) = &self.options.main_agent {
            list.keep(|name| main.reaches(name));
        }
        Ok(list)
    }

    /// A light model, where the configuration says what that is: a tier that it maps, or a gateway that knows the tiers.
    fn light_model(&self) -> Option<&'static str> {
        let options = self.model_options();
        let mapped = |tier: &&str| options.settings.tiers.contains_key(*tier);
        let local =
            |name: &String| name == "offline" || name.starts_with("scripted:") || name.starts_with("replay:");
        let gateway = options.base_url.is_none()
            && options.settings.providers.is_empty()
            && self.variable("QODER_BASE_URL").is_some_and(|url| !url.is_empty())
            && !options.model.as_ref().is_some_and(local);
        LIGHT.into_iter().find(mapped).or_else(|| gateway.then_some(LIGHT[0]))
    }

    /// True when an agent is the main one: one that is named, or that the settings name.
    #[must_use]
    pub fn has_main(&self, named: Option<&str>) -> bool {
        named.is_some() || self.config.settings.text(MAIN).is_some_and(|name| !name.is_empty())
    }

    /// Makes one of the agents that of the main conversation: the one that the front names, else the one that the
    /// settings name. Answers with the prompt that it begins a new session with.
    ///
    /// # Errors
    /// When there is no agent of this name, or its mode is forbidden.
    pub fn become_main(
        &mut self,
        named: Option<&str>,
        own: &BTreeMap<String, AgentDefinition>,
    ) -> Result<Option<String>, SetupError> {
        let configured = self.config.settings.text(MAIN).filter(|name| !name.is_empty()).map(str::to_owned);
        let Some(name) = named.map(str::to_owned).or(configured) else { return Ok(None) };
        let loaded = self.extensions(own.clone())?;
        let agents = loaded.agents;
        if let Some(definition) = agents.get(&name) {
            let definition = Arc::new(definition.clone());
            self.become_agent(&name, &definition)?;
            self.begin_with_skills(&definition, &loaded.skills);
            self.begin_with_memory(&name, &definition);
            return Ok(definition.initial_prompt.clone());
        }
        // The agent for any task is what a session is anyway.
        if agents.find(&name).is_some() {
            return Ok(None);
        }
        let problem = format!("there is no agent named `{name}`; known are: {}", agents.names().join(", "));
        Err(match named {
            Some(_) => SetupError::Option { option: "--agent", problem },
            None => value_error(&self.config.settings, MAIN, problem).into(),
        })
    }

    /// The main agent knows its skills from the start.
    fn begin_with_skills(&mut self, agent: &AgentDefinition, skills: &SkillList) {
        for name in &agent.skills {
            match skills.body(name) {
                Some(text) => {
                    let prompt = self.options.system_prompt.get_or_insert_default();
                    prompt.push_str("\n\n");
                    prompt.push_str(&text);
                }
                None => self.warnings.push(
                    format!("the main agent's skill `{name}` cannot be used: there is no such skill").into(),
                ),
            }
        }
    }

    /// Adds the memory of the main agent to its prompt, and lets it work there. Without one it works all the same.
    fn begin_with_memory(&mut self, name: &str, definition: &AgentDefinition) {
        let Some(scope) = definition.memory else { return };
        let places = MemoryPlaces {
            config_root: &self.config.config_root,
            project_root: &self.config.project_root,
            trusted: self.config.trust.is_trusted(),
        };
        let writes = ["Write", "Edit"].iter().any(|tool| self.is_wanted(tool));
        match OwnMemory::of(name, scope, places, writes) {
            Ok(Some(memory)) => {
                let prompt = self.options.system_prompt.get_or_insert_default();
                prompt.push_str("\n\n");
                prompt.push_str(&memory.text);
                self.options.main_memory = Some(memory.folder);
            }
            Ok(None) => self.warnings.push(Notice::from(format!(
                "the agent `{name}` works without its memory, which lies in a folder that is not trusted"
            ))),
            Err(problem) => self.warnings.push(Notice::from(problem)),
        }
    }

    fn become_agent(&mut self, name: &str, definition: &Arc<AgentDefinition>) -> Result<(), SetupError> {
        // All of it in the options, because settings that are laid on top later are prepared from them.
        self.options.main_agent = Some(Arc::clone(definition));
        self.options.system_prompt = Some(definition.prompt.clone());
        if let Some(model) = definition.other_model() {
            self.options.model = Some(model.to_owned());
            self.model_options.model = Some(model.to_owned());
        }
        // The user who started this run may allow less than the definition.
        self.options.max_turns = definition.max_turns.into_iter().chain(self.options.max_turns).min();
        self.options.effort = definition.effort.clone().or_else(|| self.options.effort.clone());
        if let (Some(tokens), Thinking::Default) = (definition.thinking_tokens, self.options.thinking) {
            self.options.thinking = Thinking::Budget(tokens);
        }
        (self.mode, self.mode_is_explicit) = mode::choose(&self.options, &self.config.settings)?;
        let without_effect = [
            ("background", definition.background, "there is no conversation that could wait for it"),
            (
                "isolation",
                definition.isolation.is_some(),
                "it works where the person is; start it in a worktree",
            ),
        ];
        for (field, _, why) in without_effect.into_iter().filter(|(_, is_set, _)| *is_set) {
            self.warnings.push(Notice::from(format!(
                "the agent `{name}` is that of the main conversation, where `{field}` has no effect: {why}"
            )));
        }
        Ok(())
    }
}
