//! Commands: a user's message that begins with `/name` is replaced by what the command stands for, or answered by the
//! program itself. For one that cannot be made the person reads why, and no model is asked.

mod calls;
mod files;
mod local;
mod shell_line;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qoder_core::next::{EndReason, turn_end};
use qoder_types::record::{
    InputAdmitted, InputOrigin, PermissionDenial, RecordBody, TurnEnded, TurnSubtype, UserOrigin,
};
use qoder_types::{
    Behavior, ContentBlock, DecisionLayer, Message, MessageContent, PermissionUpdate, RuleValue,
};
use serde_json::json;

use crate::driver::Driver;
use crate::engine::command_rows;
use crate::error::DriveError;
use crate::mcp::prompts::COMMAND_START;
use crate::permissions::CallInPlace;
use crate::tools::skill::SkillTool;
use qoder_config::commands::{self, Arguments, Local};
use qoder_config::skills::Skill;

/// How long the start of a turn waits for lists of prompts; those that come later are reported with the next turn.
const LIST_PATIENCE: Duration = Duration::from_secs(1);

/// What became of a message that may be a command.
pub(in crate::driver) enum Expanded {
    /// It goes to the model.
    Message(Box<InputAdmitted>, Brought),
    /// The program answers by itself; this follows the name of the command.
    Local(Local, String),
    /// The user's command for the shell runs.
    Shell(String),
    /// It cannot be made, and why.
    Refused(Refusal),
    /// A person interrupted.
    Interrupted,
}

/// What comes with the message of a command.
#[derive(Debug, Default)]
pub(in crate::driver) struct Brought {
    /// What the person wrote.
    pub(in crate::driver) typed: Option<String>,
    /// Calls that are allowed until the end of the turn.
    pub(in crate::driver) turn_rules: Vec<RuleValue>,
    /// The model of the turn.
    pub(in crate::driver) model: Option<String>,
    /// Changes of permissions.
    pub(in crate::driver) updates: Vec<PermissionUpdate>,
}

/// Why a command cannot be made.
#[derive(Debug, Default)]
pub(in crate::driver) struct Refusal {
    pub(in crate::driver) problem: String,
    /// The call that was not allowed.
    pub(in crate::driver) denial: Option<Box<PermissionDenial>>,
}

impl From<String> for Refusal {
    fn from(problem: String) -> Self {
        Self { problem, denial: None }
    }
}

/// True for a message that has the shape of a command.
#[must_use]
pub fn is_command(text: &str) -> bool {
    text.starts_with(COMMAND_START) || commands::split(text).is_some()
}

impl Driver<'_> {
    /// Learns which commands there are, as far as servers answer soon.
    pub(in crate::driver) async fn learn_commands(&mut self) {
        if let Some(prompts) = self.engine.toolbox.prompts().filter(|_| !self.engine.no_commands) {
            prompts.gather(LIST_PATIENCE).await;
        }
        self.engine.toolbox.learn(&self.session.id).await;
    }

    /// The commands, without their slash.
    pub(in crate::driver) fn command_names(&self) -> Vec<String> {
        command_rows::rows(self.engine).into_iter().map(|row| row.name).collect()
    }

    /// Opens the turn of an input, with what it stands for when it is a command; a command that the program answers by
    /// itself, or that cannot be made, is a turn that is over at once.
    pub(in crate::driver) async fn open_expanded(
        &mut self,
        input: InputAdmitted,
        bodies: Vec<RecordBody>,
        context: Option<String>,
    ) -> Result<Option<TurnEnded>, DriveError> {
        let (id, original) = (input.input_id.clone(), input.clone());
        self.promoting = true;
        let expanded = self.expand_command(input).await;
        self.promoting = false;
        let expanded = expanded?;
        // The sender may have withdrawn it meanwhile.
        if !self.session.state.inputs.iter().any(|waiting| waiting.input_id == id) {
            return Ok(None);
        }
        match expanded {
            Expanded::Message(input, brought) => {
                self.open_turn(*input, bodies, context, brought)?;
                Ok(None)
            }
            Expanded::Local(local, rest) => {
                self.promoting = true;
                let ended = self.run_local(original, bodies, local, &rest).await;
                self.promoting = false;
                ended.map(Some)
            }
            Expanded::Shell(line) => {
                self.promoting = true;
                let ended = self.run_shell_line(original, bodies, &line).await;
                self.promoting = false;
                ended.map(Some)
            }
            Expanded::Refused(refusal) => {
                let end = self.command_refused(refusal);
                self.refuse_with(original, "command", bodies, end)
            }
            // The prompt waits for the next process.
            Expanded::Interrupted if self.ended_by().is_some() => Ok(None),
            Expanded::Interrupted => {
                self.refuse_prompt(original, "interrupt", bodies, &EndReason::AbortedStreaming)
            }
        }
    }

    /// Puts what a command stands for in its place. What arrives meanwhile is taken.
    async fn expand_command(&mut self, input: InputAdmitted) -> Result<Expanded, DriveError> {
        if input.origin == InputOrigin::Shell {
            return Ok(Expanded::Shell(input.message.content.to_text()));
        }
        if self.engine.no_commands {
            return Ok(Expanded::Message(Box::new(input), Brought::default()));
        }
        let text = match &input.message.content {
            MessageContent::Text(text) => text.clone(),
            MessageContent::Blocks(blocks) => match blocks.first() {
                Some(ContentBlock::Text { text }) => text.clone(),
                Some(_) | None => String::new(),
            },
        };
        if text.starts_with(COMMAND_START) {
            return self.expand_prompt(input, text).await;
        }
        let Some((name, rest)) = commands::split(&text) else {
            return Ok(Expanded::Message(Box::new(input), Brought::default()));
        };
        if let Some(local) = Local::named(name) {
            return Ok(Expanded::Local(local, rest.to_owned()));
        }
        let loaded = self.engine.common.extensions.current();
        let arguments = Arguments::new(rest);
        let expanded = if let Some(skill) = loaded.skills.get(name) {
            self.expand_skill(skill, &arguments)
        } else if let Some(command) = loaded.commands.get(name) {
            self.expand_file((&input.input_id, text.trim()), command, &arguments).await?
        } else if Path::new("/").join(name).exists() {
            // `/tmp is full` names a folder.
            return Ok(Expanded::Message(Box::new(input), Brought::default()));
        } else {
            Err(Some(format!("There is no command /{name}. /help lists the commands.").into()))
        };
        Ok(match expanded {
            Ok((blocks, brought)) => {
                let typed = Some(text.trim().to_owned());
                replaced(input, blocks, Brought { typed, ..brought })
            }
            Err(Some(refusal)) => Expanded::Refused(refusal),
            Err(None) => Expanded::Interrupted,
        })
    }

    async fn expand_prompt(&mut self, input: InputAdmitted, text: String) -> Result<Expanded, DriveError> {
        let Some(prompts) = self.engine.toolbox.prompts().cloned() else {
            return Ok(Expanded::Message(Box::new(input), Brought::default()));
        };
        let typed = Some(text.trim().to_owned());
        let mut expanding = Box::pin(async move { prompts.expand(text.trim()).await });
        let mut cancelled = self.stopping.wanted();
        let expanded = loop {
            tokio::select! {
                biased;
                () = &mut cancelled => return Ok(Expanded::Interrupted),
                expanded = &mut expanding => break expanded,
                () = self.session.task_events.arrival() => self.forward_task_events()?,
                arrival = self.arrivals.next() => self.take_now(arrival).await?,
            }
        };
        Ok(match expanded {
            Ok(blocks) => replaced(input, blocks, Brought { typed, ..Brought::default() }),
            Err(problem) => Expanded::Refused(problem.to_string().into()),
        })
    }

    /// A skill that a person called for needs no permission: their word is one. A rule that denies it holds all the same.
    fn expand_skill(
        &self,
        skill: &Skill,
        arguments: &Arguments,
    ) -> Result<(Vec<ContentBlock>, Brought), Option<Refusal>> {
        let tool = SkillTool::new(Arc::clone(&self.engine.common.extensions));
        let call = CallInPlace {
            cwd: Path::new(&self.session.state.cwd),
            permissions: &self.session.state.permissions,
            confinement: qoder_policy::Confinement::None,
        };
        let ruling = self.engine.gate.decide(&tool, &json!({ "skill": skill.name }), &call);
        let decision = ruling.map_err(|problem| Some(problem.to_string().into()))?.decision;
        if decision.behavior == Behavior::Deny && decision.layer == DecisionLayer::Rule {
            return Err(Some(format!("/{} cannot be used: {}.", skill.name, decision.reason).into()));
        }
        let text = skill.text().map_err(|problem| Some(format!("/{}: {problem}", skill.name).into()))?;
        let brought = Brought {
            typed: None,
            turn_rules: skill.allowed.clone(),
            model: self
                .usable_model(skill.model.as_deref())
                .map_err(|problem| Some(format!("/{}: {problem}", skill.name).into()))?,
            updates: skill.reading().into_iter().collect(),
        };
        Ok((vec![ContentBlock::Text { text: arguments.put_into(&text) }], brought))
    }

    /// The end of a turn whose command cannot be made.
    fn command_refused(&self, refusal: Refusal) -> TurnEnded {
        let end = turn_end(&self.session.state, &self.limits, &EndReason::Completed, 0);
        TurnEnded {
            subtype: TurnSubtype::ErrorDuringExecution,
            is_error: true,
            result: None,
            errors: vec![refusal.problem],
            permission_denials: refusal.denial.into_iter().map(|denial| *denial).collect(),
            ..end
        }
    }

    /// Names the skills to the model that are about files it has worked on since its last reply, each once. False when there
    /// are none.
    pub(in crate::driver) fn bring_skills(&mut self, files: &[PathBuf]) -> Result<bool, DriveError> {
        if files.is_empty() || self.engine.toolbox.get(crate::tools::skill::NAME).is_none() {
            return Ok(false);
        }
        let loaded = self.engine.common.extensions.current();
        let root = &self.engine.gate.workspace.project_root;
        let told = &self.session.state.memory;
        let meant = |skill: &&Arc<Skill>| {
            files.iter().any(|file| skill.is_about(file, root)) && !told.contains(&mark(&skill.name))
        };
        let skills: Vec<&Arc<Skill>> = loaded.skills.for_model().filter(meant).collect();
        if skills.is_empty() {
            return Ok(false);
        }
        let mut text =
            "Skills for the files you are working on; load one with Skill when it fits:".to_owned();
        for skill in &skills {
            text.push_str(&format!("\n- `{}`: {}", skill.name, skill.description));
        }
        let mut entry = self.session.user_entry(UserOrigin::Notice, Message::user(text));
        entry.memory = skills.iter().map(|skill| mark(&skill.name)).collect();
        self.session.append(RecordBody::User(Box::new(entry)))?;
        Ok(true)
    }
}

/// How memory files list a skill that the model has read of.
fn mark(skill: &str) -> String {
    format!("skill:{skill}")
}

/// The input with the content of a command. What came with it, such as a picture, stays with it.
fn replaced(mut input: InputAdmitted, mut blocks: Vec<ContentBlock>, brought: Brought) -> Expanded {
    blocks.extend(input.message.content.into_blocks().into_iter().skip(1));
    input.message.content = match blocks.as_slice() {
        [ContentBlock::Text { text }] => MessageContent::Text(text.clone()),
        _ => MessageContent::Blocks(blocks),
    };
    Expanded::Message(Box::new(input), brought)
}
