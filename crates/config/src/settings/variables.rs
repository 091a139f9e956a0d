//! Variables in files of a project. `${NAME}` there would carry the user's environment to a model, a server or an address
//! that the project's author chose, so only the names that the user lists in `security.projectEnvironment` have a value;
//! every other one stays as it is written, with a warning.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The user's list.
pub const PROJECT_ENVIRONMENT: &str = "security.projectEnvironment";

/// The variables that a project's files may name.
pub fn listed(environment: &BTreeMap<String, String>, names: &[String]) -> BTreeMap<String, String> {
    let is_listed = |name: &String| names.iter().any(|listed| listed == name);
    environment
        .iter()
        .filter(|(name, _)| is_listed(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The variables that a description names: those that a project's files may have with their values, the others as they are
/// written. Also the names of the latter that have a value.
pub fn for_description(
    value: &Value,
    environment: &BTreeMap<String, String>,
    names: &[String],
) -> (BTreeMap<String, String>, Vec<String>) {
    let mut variables = listed(environment, names);
    let mut kept_back = Vec::new();
    for (name, has_default) in named(value) {
        if !environment.contains_key(&name) || variables.contains_key(&name) {
            continue;
        }
        if !has_default {
            variables.insert(name.clone(), format!("${{{name}}}"));
        }
        kept_back.push(name);
    }
    (variables, kept_back)
}

/// The warning about a variable that keeps its place.
pub fn warning(place: &str, name: &str) -> String {
    format!(
        "{place}: `${{{name}}}` is not expanded: a project's file gets only the variables that `{PROJECT_ENVIRONMENT}` in your \
         own settings lists"
    )
}

/// The names in `${NAME}` and `${NAME:-default}`, and whether all uses of a name have a default.
pub fn named(value: &Value) -> Vec<(String, bool)> {
    let mut found: BTreeSet<(String, bool)> = BTreeSet::new();
    collect(value, &mut found);
    let mut names: BTreeMap<String, bool> = BTreeMap::new();
    for (name, has_default) in found {
        names.entry(name).and_modify(|all| *all &= has_default).or_insert(has_default);
    }
    names.into_iter().collect()
}

fn collect(value: &Value, found: &mut BTreeSet<(String, bool)>) {
    match value {
        Value::String(text) => {
            for part in text.split("${").skip(1) {
                let Some((inside, _)) = part.split_once('}') else { continue };
                let (name, default) =
                    inside.split_once(":-").map_or((inside, false), |(name, _)| (name, true));
                found.insert((name.to_owned(), default));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => map.values().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_listed_names_have_a_value() {
        let environment = [("A", "1"), ("B", "2"), ("C", "3")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let value = json!({ "args": ["${A}", "${B}/${B:-x}", "${C:-y}", "${D}", "$A", "${"] });
        let (variables, kept_back) = for_description(&value, &environment, &["A".to_owned()]);
        assert_eq!(variables.get("A").map(String::as_str), Some("1"));
        assert_eq!(variables.get("B").map(String::as_str), Some("${B}"));
        assert!(!variables.contains_key("C") && !variables.contains_key("D"));
        assert_eq!(kept_back, ["B", "C"]);
    }
}
