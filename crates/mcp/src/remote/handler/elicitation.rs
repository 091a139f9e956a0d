//! Input of a person for a server: forms only. What comes back is checked against the schema that the server asked with; an
//! answer that does not fit is as good as none.

use jsonschema::PatternOptions;
use serde_json::{Map, Value, json};

use crate::questions::{Elicitation, ElicitationAction, ElicitationAnswer};
use crate::remote::events::{Events, shortened};

/// Characters of what a server says to the person.
const LONGEST_MESSAGE: usize = 10_000;

/// Whether a server asks in the way that is refused.
pub(super) fn is_url_mode(params: &Value) -> bool {
    params.get("mode").and_then(Value::as_str) == Some("url") || params.get("url").is_some()
}

/// The question in our terms.
pub(super) fn question(server: &str, display_name: Option<String>, params: &Value) -> Elicitation {
    let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
    let schema = params.get("requestedSchema").filter(|schema| schema.is_object()).cloned();
    let title =
        schema.as_ref().and_then(|schema| schema.get("title")).and_then(Value::as_str).map(str::to_owned);
    Elicitation {
        server_name: server.to_owned(),
        message: shortened(&text("message").unwrap_or_default(), LONGEST_MESSAGE),
        mode: "form".to_owned(),
        elicitation_id: text("elicitationId"),
        requested_schema: schema,
        title: title.map(|title| shortened(&title, LONGEST_MESSAGE)),
        display_name,
    }
}

/// The answer in the protocol's terms. Content that does not fit becomes a cancellation, and the log says so.
pub(super) fn answer(question: &Elicitation, answer: ElicitationAnswer, events: &Events) -> Value {
    match answer.action {
        ElicitationAction::Decline => json!({ "action": "decline" }),
        ElicitationAction::Cancel => json!({ "action": "cancel" }),
        ElicitationAction::Accept => {
            let content = answer.content.unwrap_or_default();
            match misfit(question.requested_schema.as_ref(), &content) {
                None => json!({ "action": "accept", "content": content }),
                Some(problem) => {
                    events.log("warning", &format!("an answer to the server's form was not sent: {problem}"));
                    json!({ "action": "cancel" })
                }
            }
        }
    }
}

/// Why `content` does not fit; names no entered value.
fn misfit(schema: Option<&Value>, content: &Map<String, Value>) -> Option<String> {
    let schema = schema?;
    // A server's patterns must not be able to keep us busy.
    let built = jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(true)
        .build(schema);
    let validator = match built {
        Ok(validator) => validator,
        Err(error) => return Some(format!("the server's schema cannot be used: {}", error.masked())),
    };
    let content = Value::Object(content.clone());
    let problem = validator.validate(&content).err()?;
    Some(format!("at `{}`: {}", problem.instance_path(), problem.masked()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn accepted(content: &Value, schema: &Value) -> (Value, usize) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let events = Events::new(Arc::new(move |event| sink.lock().unwrap().push(event)));
        let question = question("s", None, &json!({ "message": "m", "requestedSchema": schema }));
        let given =
            ElicitationAnswer { action: ElicitationAction::Accept, content: content.as_object().cloned() };
        let sent = answer(&question, given, &events);
        let told = heard.lock().unwrap().len();
        (sent, told)
    }

    #[test]
    fn content_must_fit_the_schema() {
        let schema = json!({ "type": "object", "required": ["name"],
            "properties": { "name": { "type": "string", "minLength": 2 }, "age": { "type": "integer" },
                "mail": { "type": "string", "format": "email" } } });
        let (sent, told) = accepted(&json!({ "name": "Ada", "age": 36 }), &schema);
        assert_eq!((sent, told), (json!({ "action": "accept", "content": { "name": "Ada", "age": 36 } }), 0));
        let misfits = [
            json!({}),
            json!({ "name": "A" }),
            json!({ "name": "Ada", "age": "x" }),
            json!({ "name": "Ada", "mail": "nowhere" }),
        ];
        for content in misfits {
            assert_eq!(accepted(&content, &schema), (json!({ "action": "cancel" }), 1));
        }
    }

    #[test]
    fn a_schema_that_is_none_cancels() {
        let (sent, told) = accepted(&json!({ "a": 1 }), &json!({ "type": 5 }));
        assert_eq!((sent, told), (json!({ "action": "cancel" }), 1));
        let (sent, _) =
            accepted(&json!({ "a": "x" }), &json!({ "properties": { "a": { "pattern": "(a+)+$\\1" } } }));
        assert_eq!(sent, json!({ "action": "cancel" }));
    }

    #[test]
    fn the_entered_values_are_not_logged() {
        let schema = json!({ "properties": { "pin": { "type": "integer" } } });
        let content = json!({ "pin": "hunter2" });
        let problem = misfit(Some(&schema), content.as_object().unwrap()).unwrap();
        assert!(problem.contains("/pin") && !problem.contains("hunter2"), "{problem}");
    }
}
