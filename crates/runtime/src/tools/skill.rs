//! The Skill tool: brings the text of a skill to the model. The list of skills follows its description and is
//! looked up anew each time, because they may be read again while the session runs.

use std::sync::{Arc, OnceLock};

use futures::FutureExt;
use futures::future::BoxFuture;
use qoder_core::ports::{Access, Tool, ToolContext, ToolOutcome};
use qoder_tools::{parse_input, tool_definition};
use qoder_types::{ReplayClass, ToolAnnotations, ToolDefinition};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use qoder_config::commands::Arguments;
use qoder_config::extensions::Extensions;
use qoder_config::skills::{SkillList, check_name};

/// The tool's name.
pub const NAME: &str = "Skill";

/// Loads the instructions of a skill: how a certain kind of work is done here.
///
/// When the description of a skill fits what you are asked for, load it before you begin, and follow it. Its text names
/// other files of the skill where there are any: read those with Read when you need them.
///
/// - Do not load a skill that is loaded already, and none that is not in the list.
/// - A line of the person that begins with `/name` has loaded the skill of that name.
#[derive(Debug, Deserialize, JsonSchema)]
struct SkillInput {
    /// The name of the skill, such as `pdf` or `plugin:name`.
    #[serde(default)]
    skill: Option<String>,
    /// Another name of `skill`.
    #[serde(default)]
    name: Option<String>,
    /// Another name of `skill`.
    #[serde(default)]
    command: Option<String>,
    /// What the skill is to be used for, where it takes arguments.
    #[serde(default)]
    args: Option<String>,
}

/// The skill that an input names.
#[must_use]
pub fn named(input: &Value) -> String {
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    text("skill").or_else(|| text("name")).or_else(|| text("command")).unwrap_or_default().to_owned()
}

/// The tool itself.
pub struct SkillTool {
    extensions: Arc<Extensions>,
}

impl SkillTool {
    /// Brings the skills among what files define.
    #[must_use]
    pub fn new(extensions: Arc<Extensions>) -> Self {
        Self { extensions }
    }
}

impl Tool for SkillTool {
    fn definition(&self) -> &ToolDefinition {
        static CELL: OnceLock<ToolDefinition> = OnceLock::new();
        tool_definition::<SkillInput>(&CELL, NAME)
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations { read_only_hint: true, destructive_hint: false, open_world_hint: false }
    }

    fn replay(&self) -> ReplayClass {
        ReplayClass::Pure
    }

    fn is_read_only(&self, _: &Value) -> bool {
        true
    }

    fn is_offered(&self) -> bool {
        self.extensions.current().skills.for_model().next().is_some()
    }

    fn addition(&self) -> Option<String> {
        self.extensions.current().skills.prompt_text()
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        let name = named(input);
        let loaded = self.extensions.current();
        let only_text = loaded.skills.get(&name).is_none_or(|skill| skill.allowed.is_empty());
        vec![Access::Skill { name, only_text }]
    }

    fn run(&self, input: Value, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let skills = Arc::clone(&self.extensions.current().skills);
        async move {
            let input: SkillInput = match parse_input(NAME, input) {
                Ok(input) => input,
                Err(refusal) => return *refusal,
            };
            let name = input.skill.or(input.name).or(input.command).unwrap_or_default();
            load(&skills, &name, input.args.as_deref().unwrap_or_default())
        }
        .boxed()
    }
}

fn load(skills: &SkillList, name: &str, args: &str) -> ToolOutcome {
    if let Err(problem) = check_name(name) {
        return ToolOutcome::failed(format!("{problem}."));
    }
    let Some(skill) = skills.get(name).filter(|skill| skill.by_model) else {
        let known: Vec<&str> = skills.for_model().map(|skill| skill.name.as_str()).take(50).collect();
        let why = match skills.get(name) {
            Some(_) => format!("The skill {name} is for the person to call for, with /{name}."),
            None => format!("There is no skill named {name}."),
        };
        return ToolOutcome::failed(format!("{why} The skills are: {}.", known.join(", ")));
    };
    match skill.text() {
        Ok(text) => ToolOutcome {
            turn_rules: skill.allowed.clone(),
            permission_updates: skill.reading().into_iter().collect(),
            ..ToolOutcome::completed(
                Arguments::new(args).put_into(&text),
                json!({ "skill": skill.name, "folder": skill.folder, "source": skill.origin.as_str() }),
            )
        },
        Err(problem) => ToolOutcome::failed(format!("The skill {name} cannot be loaded: {problem}.")),
    }
}
