//! Fields of a head that skills and commands have in common, each checked and reported with its line.

use qoder_policy::{Rule, split_rules};
use qoder_types::{RuleOrigin, RuleSource, RuleValue};
use serde_json::Value;

use super::{Document, Problem};

/// A text of at most so many characters, without blanks around it; none when it is left out or empty.
pub fn text(document: &Document, field: &str, longest: usize) -> Result<Option<String>, Problem> {
    let text = match document.head.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.trim().to_owned(),
        // `argument-hint: [issue]` is a list to YAML, but its author means a plain hint.
        Some(Value::Array(words)) if words.iter().all(Value::is_string) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            format!("[{}]", words.join(", "))
        }
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(_) | Value::Object(_) | Value::Array(_)) => {
            return Err(document.problem(field, format!("`{field}` has to be text")));
        }
    };
    let length = text.chars().count();
    if length > longest {
        let problem = format!("`{field}` has {length} characters; at most {longest} are accepted");
        return Err(document.problem(field, problem));
    }
    Ok((!text.is_empty()).then_some(text))
}

/// A switch; off when it is left out.
pub fn flag(document: &Document, field: &str) -> Result<bool, Problem> {
    match document.head.get(field) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(_) => Err(document.problem(field, format!("`{field}` has to be true or false"))),
    }
}

/// A list of texts, or one text.
pub fn list(document: &Document, field: &str) -> Result<Vec<String>, Problem> {
    match document.head.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        Some(Value::Array(several)) if several.iter().all(Value::is_string) => {
            Ok(several.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(_) => Err(document.problem(field, format!("`{field}` has to be a list of texts"))),
    }
}

/// The model that the turn is to run with; none when it is left out or `inherit`.
pub fn model(document: &Document) -> Result<Option<String>, Problem> {
    const LONGEST: usize = 200;
    Ok(text(document, "model", LONGEST)?.filter(|model| model != "inherit"))
}

/// The rules of `allowed-tools`.
pub fn allowed_tools(document: &Document) -> Result<Vec<RuleValue>, Problem> {
    const FIELD: &str = "allowed-tools";
    let mut rules = Vec::new();
    for text in list(document, FIELD)?.iter().flat_map(|text| split_rules(text)) {
        let origin = RuleOrigin { source: RuleSource::Command, file: None, line: None };
        let rule = Rule::parse(&text, origin)
            .map_err(|error| document.problem(FIELD, format!("`{FIELD}`: {error}")))?;
        rules.push(RuleValue { tool_name: rule.tool, rule_content: rule.content });
    }
    Ok(rules)
}
