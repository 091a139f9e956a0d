//! The AskUserQuestion tool: questions with ready answers for the person who watches the session.
//!
//! The person answers while the call waits for approval: the answers come back inside the approved input, keyed by the
//! text of the question. The tool checks the questions and hands the answers on; it never asks by itself.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_process::output::first_characters;
use qoder_types::ReplayClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::{Refusal, refusal};
use crate::call::schema::{Flag, is_set};
use crate::output::bounds::{RESULT_CHARACTERS, bounded};

/// How many characters of a header are shown.
const HEADER_CHARACTERS: usize = 12;

/// Asks the person one to four questions and waits for the answers.
///
/// Use it when you cannot go on well without a decision that only the person can make: an unclear requirement, a choice
/// between approaches, a preference. Do not ask what you can find out yourself, and do not ask for permission.
///
/// - Give each question two to four options that exclude each other, the one you recommend first. The person can always
///   answer in own words, so do not add an option like "Other".
/// - Set `multiSelect` when several options may be chosen together.
/// - The result has an answer for each question: the label of the chosen option, several labels joined with ", ", or
///   the person's own words.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct AskUserQuestionInput {
    /// The questions, one to four.
    questions: Option<Vec<Question>>,
    /// Instead of `questions`: the text of a single question.
    question: Option<String>,
    /// With `question`: the answers to choose from.
    options: Option<Vec<String>>,
    /// With `question`: the answer that is suggested.
    default: Option<String>,
    /// Filled in with the person's answers by question text; leave it out.
    answers: Option<Map<String, Value>>,
    /// Filled in with remarks to the answers; leave it out.
    annotations: Option<Map<String, Value>>,
    /// Filled in with a reply in own words to all questions together; leave it out.
    response: Option<String>,
    /// Where the questions come from; leave it out.
    #[serde(rename = "metadata")]
    _metadata: Option<Map<String, Value>>,
}

/// One question.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Question {
    /// The complete question, ending with a question mark.
    question: String,
    /// A very short label for it, at most 12 characters, such as "Database".
    #[serde(default)]
    header: String,
    /// Two to four answers to choose from.
    options: Vec<Choice>,
    /// Whether several options may be chosen together. Default false.
    #[serde(default, rename = "multiSelect", alias = "multi_select", serialize_with = "plain_flag")]
    multi_select: Option<Flag>,
}

/// One answer to choose from.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Choice {
    /// What is chosen, in one to five words.
    label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Something to look at beside the option, such as a piece of code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

#[expect(clippy::ref_option, reason = "the shape that serde calls")]
fn plain_flag<S: serde::Serializer>(flag: &Option<Flag>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(is_set(*flag))
}

/// See [`AskUserQuestionInput`].
#[derive(Debug)]
pub(crate) struct AskUserQuestionTool;

impl BuiltIn for AskUserQuestionTool {
    const NAME: &'static str = "AskUserQuestion";
    const FACTS: Facts =
        Facts { read_only: false, destructive: false, open_world: false, replay: ReplayClass::Pure };
    type Input = AskUserQuestionInput;

    fn accesses(&self, _: &Value) -> Vec<Access> {
        vec![Access::Person]
    }

    async fn run(self: Arc<Self>, input: AskUserQuestionInput, context: ToolContext) -> ToolOutcome {
        answered(input, &context).unwrap_or_else(|refusal| *refusal)
    }
}

/// What was asked, in the one shape that everything behind works with.
struct Asked {
    questions: Vec<Question>,
    simple: bool,
}

fn answered(input: AskUserQuestionInput, context: &ToolContext) -> Result<ToolOutcome, Refusal> {
    let answers = input.answers.clone().unwrap_or_default();
    let (annotations, response) = (input.annotations.clone(), input.response.clone());
    let asked = read_questions(input)?;
    let mut given = BTreeMap::new();
    for question in &asked.questions {
        if let Some(answer) = answers.get(&question.question).and_then(answer_text) {
            given.insert(question.question.as_str(), answer);
        }
    }
    let response = response.filter(|response| !response.trim().is_empty());
    if given.is_empty() && response.is_none() {
        return Err(refusal(
            "Nobody answered: no person is there who could. Decide by yourself what is most sensible, say which \
             assumption you made, and go on.",
        ));
    }
    let mut text = "The person answered:\n".to_owned();
    for question in &asked.questions {
        let answer = given.get(question.question.as_str()).map_or("(no answer)", String::as_str);
        text.push_str(&format!("- {} → {answer}\n", question.question));
    }
    let mut structured = json!({ "questions": asked.questions, "answers": given });
    if asked.simple
        && let Some(answer) = given.values().next()
    {
        structured["answer"] = json!(answer);
    }
    if let Some(response) = response {
        text.push_str(&format!("In own words: {response}\n"));
        structured["response"] = json!(response);
    }
    if let Some(annotations) = annotations {
        text.push_str(&format!("Remarks: {}\n", Value::Object(annotations.clone())));
        structured["annotations"] = Value::Object(annotations);
    }
    let (text, _) = bounded(text, RESULT_CHARACTERS, &context.outputs, "answers");
    Ok(ToolOutcome::completed(text, structured))
}

/// An answer is a text; hosts that keep several choices apart send a list of texts.
fn answer_text(answer: &Value) -> Option<String> {
    let text = match answer {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Bool(_) | Value::Number(_) => answer.to_string(),
        Value::Null | Value::Object(_) => String::new(),
    };
    (!text.trim().is_empty()).then_some(text)
}

fn read_questions(input: AskUserQuestionInput) -> Result<Asked, Refusal> {
    let bad = |text: String| refusal(format!("Invalid input for {}: {text}", AskUserQuestionTool::NAME));
    let asked = match (input.questions, input.question) {
        (Some(questions), None) => Asked { questions, simple: false },
        (None, Some(question)) => Asked {
            questions: vec![simple_question(question, input.options.unwrap_or_default(), input.default)],
            simple: true,
        },
        (Some(_), Some(_)) => return Err(bad("give `questions` or `question`, not both.".to_owned())),
        (None, None) => return Err(bad("field `questions` is missing.".to_owned())),
    };
    if !(1..=4).contains(&asked.questions.len()) {
        return Err(bad(format!(
            "field `questions` has {} entries; ask one to four questions.",
            asked.questions.len()
        )));
    }
    let mut texts = HashSet::new();
    let mut questions = Vec::with_capacity(asked.questions.len());
    for (index, mut question) in asked.questions.into_iter().enumerate() {
        check_question(&question, asked.simple)
            .map_err(|problem| bad(format!("field `questions[{index}]`: {problem}")))?;
        if !texts.insert(question.question.clone()) {
            return Err(bad(format!("field `questions[{index}]`: the same question occurs twice.")));
        }
        question.header = first_characters(question.header.trim(), HEADER_CHARACTERS).0.to_owned();
        questions.push(question);
    }
    Ok(Asked { questions, simple: asked.simple })
}

/// The older shape has texts for options, or none at all for a free answer.
fn simple_question(question: String, options: Vec<String>, default: Option<String>) -> Question {
    let mut labels = options;
    if let Some(default) = default.filter(|default| !labels.contains(default)) {
        labels.insert(0, default);
    }
    let options =
        labels.into_iter().map(|label| Choice { label, description: None, preview: None }).collect();
    Question { question, header: String::new(), options, multi_select: None }
}

fn check_question(question: &Question, simple: bool) -> Result<(), String> {
    if question.question.trim().is_empty() {
        return Err("`question` is empty.".to_owned());
    }
    let count = question.options.len();
    // A free answer needs no options, and the older shape knew no limits.
    if !simple && !(2..=4).contains(&count) {
        return Err(format!("it has {count} options; give two to four."));
    }
    let mut labels = HashSet::new();
    for choice in &question.options {
        if choice.label.trim().is_empty() {
            return Err("an option has no label.".to_owned());
        }
        if !labels.insert(choice.label.as_str()) {
            return Err(format!("the label {:?} occurs twice.", choice.label));
        }
    }
    Ok(())
}
