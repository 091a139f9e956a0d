//! What somebody answers to a question about a call, as it travels: read from JSON, and put through a tool of an MCP server
//! where one is named for it. Anything but a clear allowance is a denial.

use futures::FutureExt;
use qoder_types::PermissionUpdate;
use serde_json::{Value, json};

use crate::events::{Answer, PermissionQuestion};
use crate::mcp::McpServers;

impl Answer {
    /// A denial in these words.
    #[must_use]
    pub fn denial(message: String) -> Self {
        Self { message: Some(message), by: "host".to_owned(), ..Self::default() }
    }

    /// Reads an answer. What cannot be read among its changes of permissions comes back in words.
    #[must_use]
    pub fn read(answer: &Value) -> (Self, Vec<String>) {
        let text = |key: &str| answer.get(key).and_then(Value::as_str);
        let by = match text("decisionClassification") {
            Some(word) => format!("host ({word})"),
            None => "host".to_owned(),
        };
        match text("behavior") {
            Some("allow") => {
                let (updated_permissions, problems) = updates(answer.get("updatedPermissions"));
                let updated_input = answer.get("updatedInput").filter(|input| input.is_object()).cloned();
                (Self { allow: true, updated_input, updated_permissions, by, ..Self::default() }, problems)
            }
            Some("deny") => {
                let interrupt = answer.get("interrupt").and_then(Value::as_bool).unwrap_or(false);
                (
                    Self { message: text("message").map(str::to_owned), interrupt, by, ..Self::default() },
                    Vec::new(),
                )
            }
            Some(other) => {
                let problem =
                    format!("the permission callback answered `{other}`; accepted are allow and deny");
                (Self::denial(problem), Vec::new())
            }
            None => {
                (Self::denial("the permission callback answered without a `behavior`".to_owned()), Vec::new())
            }
        }
    }

    /// A callback that hands the input back unchanged changes nothing; neither does one that hands back what had to be
    /// cut to fit into a line, `sent`.
    #[must_use]
    pub fn keep_original(mut self, original: &Value, sent: Option<&Value>) -> Self {
        let same = |input: &Value| input == original || Some(input) == sent;
        if self.updated_input.as_ref().is_some_and(same) {
            self.updated_input = None;
        }
        self
    }
}

fn updates(list: Option<&Value>) -> (Vec<PermissionUpdate>, Vec<String>) {
    let entries = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (mut read, mut problems) = (Vec::new(), Vec::new());
    for entry in entries {
        match serde_json::from_value(entry.clone()) {
            Ok(update) => read.push(update),
            Err(error) => problems
                .push(format!("a change of permissions cannot be read ({error}) and is left out: {entry}")),
        }
    }
    (read, problems)
}

/// Puts a question to the tool `tool` of an MCP server. It answers with a text that holds the documented JSON.
pub async fn ask_tool(
    servers: &McpServers,
    tool: &str,
    question: &PermissionQuestion,
) -> (Answer, Vec<String>) {
    let arguments = json!({
        "tool_name": question.tool_name, "input": question.input, "tool_use_id": question.tool_use_id,
    });
    let never = std::future::pending().boxed().shared();
    let result = match servers.call(tool, arguments, never).await {
        Ok(result) => result,
        Err(problem) => return (Answer::denial(format!("{tool} could not be asked: {problem}")), Vec::new()),
    };
    let texts = result.content.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
    let text = texts.collect::<Vec<_>>().join("\n");
    if result.is_error {
        return (Answer::denial(format!("{tool} failed: {text}")), Vec::new());
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(answer) => {
            let (answer, problems) = Answer::read(&answer);
            (Answer { by: format!("tool {tool}"), ..answer }.keep_original(&question.input, None), problems)
        }
        Err(error) => (Answer::denial(format!("{tool} did not answer with JSON: {error}")), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_allowance_allows() {
        assert!(Answer::read(&json!({ "behavior": "allow" })).0.allow);
        for answer in
            [json!({}), json!({ "behavior": "Allow" }), json!({ "behavior": true }), json!(null), json!([])]
        {
            let (read, _) = Answer::read(&answer);
            assert!(!read.allow && read.message.is_some(), "{answer}");
        }
    }

    #[test]
    fn changes_that_cannot_be_read_are_named_and_left_out() {
        let rule = json!({ "type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{ "toolName": "Read", "ruleContent": null }] });
        let (read, problems) = Answer::read(
            &json!({ "behavior": "allow", "updatedPermissions": [rule, { "type": "addMagic" }] }),
        );
        assert_eq!(read.updated_permissions.len(), 1);
        assert!(problems.len() == 1 && problems[0].contains("addMagic"), "{problems:?}");
    }

    #[test]
    fn an_input_that_comes_back_unchanged_is_no_change() {
        let (original, cut) = (json!({ "content": "long" }), json!({ "content": "l[…]" }));
        let with =
            |input: &Value| Answer { allow: true, updated_input: Some(input.clone()), ..Answer::default() };
        assert_eq!(with(&original).keep_original(&original, None).updated_input, None);
        assert_eq!(with(&cut).keep_original(&original, Some(&cut)).updated_input, None);
        assert_eq!(with(&cut).keep_original(&original, None).updated_input, Some(cut.clone()));
    }
}
