//! A form of an MCP server: fields from its schema, each checked before anything is sent. To decline and to cancel are
//! different answers.

use std::sync::Arc;

use qoder_protocol::{Elicitation, ElicitationAction, ElicitationAnswer};
use serde_json::{Map, Number, Value};

use crate::text::one_line;

/// What a field takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// Text; the format it has to have, if the schema names one, and how long it may be.
    Text {
        /// `email`, `uri`, `date` or `date-time`.
        format: Option<String>,
        /// The fewest and the most characters.
        length: (usize, Option<usize>),
    },
    /// A number, whole or not.
    Number {
        /// True for whole numbers.
        whole: bool,
    },
    /// Yes or no.
    YesNo,
    /// One of these values, each with a name.
    OneOf(Vec<(String, String)>),
}

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Its name in the content.
    pub(crate) name: String,
    /// What it is called.
    pub(crate) title: String,
    /// What it is for.
    pub(crate) description: String,
    /// What it takes.
    pub(crate) kind: FieldKind,
    /// True when it must be filled in.
    pub(crate) required: bool,
    /// What was entered.
    pub(crate) text: String,
    range: (Option<f64>, Option<f64>),
}

/// A form.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    elicitation: Arc<Elicitation>,
    /// Its fields.
    pub(crate) fields: Vec<Field>,
}

impl Form {
    pub(super) fn new(elicitation: &Arc<Elicitation>) -> Self {
        let schema = elicitation.requested_schema.as_ref();
        let required: Vec<&str> = schema
            .and_then(|schema| schema["required"].as_array())
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.and_then(|schema| schema["properties"].as_object());
        let fields = properties
            .map(|fields| {
                fields.iter().map(|(name, field)| read(name, field, required.contains(&name.as_str())))
            })
            .map(Iterator::collect)
            .unwrap_or_default();
        Self { elicitation: Arc::clone(elicitation), fields }
    }

    /// Identifies the question.
    pub(crate) fn id(&self) -> &str {
        &self.elicitation.elicitation_id
    }

    /// The server.
    pub(crate) fn server(&self) -> String {
        one_line(&self.elicitation.server_name)
    }

    /// What the server says.
    pub(crate) fn message(&self) -> &str {
        &self.elicitation.message
    }

    /// A heading.
    pub(crate) fn title(&self) -> Option<&str> {
        self.elicitation.title.as_deref()
    }

    /// What is wrong with a field, if something is.
    pub(crate) fn problem(&self, place: usize) -> Option<String> {
        self.fields.get(place).and_then(|field| field.value().err())
    }

    /// The answer with what was entered.
    ///
    /// # Errors
    /// The first field that cannot be sent, and why.
    pub(crate) fn accept(&self) -> Result<ElicitationAnswer, (usize, String)> {
        let mut content = Map::new();
        for (place, field) in self.fields.iter().enumerate() {
            match field.value() {
                Ok(Some(value)) => {
                    content.insert(field.name.clone(), value);
                }
                Ok(None) => {}
                Err(problem) => return Err((place, problem)),
            }
        }
        Ok(ElicitationAnswer { action: ElicitationAction::Accept, content: Some(content) })
    }

    /// The person says no.
    pub(crate) fn decline() -> ElicitationAnswer {
        ElicitationAnswer { action: ElicitationAction::Decline, content: None }
    }

    /// The person does not answer.
    pub(crate) fn cancel() -> ElicitationAnswer {
        ElicitationAnswer { action: ElicitationAction::Cancel, content: None }
    }
}

impl Field {
    /// What is entered, as the server gets it; none for a field that may be left out and is.
    fn value(&self) -> Result<Option<Value>, String> {
        let text = self.text.trim();
        if text.is_empty() {
            return if self.required { Err("this field is required".to_owned()) } else { Ok(None) };
        }
        match &self.kind {
            FieldKind::Text { format, length } => {
                let count = text.chars().count();
                if count < length.0 {
                    return Err(format!("enter at least {} characters", length.0));
                }
                if let Some(most) = length.1.filter(|most| count > *most) {
                    return Err(format!("enter at most {most} characters"));
                }
                check_format(text, format.as_deref())?;
                Ok(Some(Value::String(text.to_owned())))
            }
            FieldKind::Number { whole } => self.number(text, *whole).map(Some),
            FieldKind::YesNo => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" | "1" => Ok(Some(Value::Bool(true))),
                "n" | "no" | "false" | "0" => Ok(Some(Value::Bool(false))),
                _ => Err("enter yes or no".to_owned()),
            },
            FieldKind::OneOf(options) => {
                let by_number =
                    text.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
                let by_name = || options.iter().find(|(value, name)| value == text || name == text);
                let found = by_number.or_else(by_name).map(|(value, _)| Value::String(value.clone()));
                found.map(Some).ok_or_else(|| "choose one of the values".to_owned())
            }
        }
    }

    fn number(&self, text: &str, whole: bool) -> Result<Value, String> {
        let number: f64 = text.parse().map_err(|_| "enter a number".to_owned())?;
        if !number.is_finite() || (whole && number.fract() != 0.0) {
            return Err("enter a whole number".to_owned());
        }
        if let Some(least) = self.range.0.filter(|least| number < *least) {
            return Err(format!("enter at least {least}"));
        }
        if let Some(most) = self.range.1.filter(|most| number > *most) {
            return Err(format!("enter at most {most}"));
        }
        let exact = text.parse::<i64>().ok().map(Number::from);
        exact
            .or_else(|| Number::from_f64(number))
            .map(Value::Number)
            .ok_or_else(|| "enter a number".to_owned())
    }
}

fn check_format(text: &str, format: Option<&str>) -> Result<(), String> {
    let is_right = match format {
        Some("email") => {
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'))
        }
        Some("uri") => text.split_once(':').is_some_and(|(scheme, rest)| {
            !scheme.is_empty() && scheme.chars().all(|sign| sign.is_ascii_alphanumeric()) && !rest.is_empty()
        }),
        Some("date") => is_date(text),
        Some("date-time") => text.get(..10).is_some_and(is_date) && text.get(10..11) == Some("T"),
        Some(_) | None => true,
    };
    match (is_right, format) {
        (false, Some(format)) => Err(format!("this is not a valid {format}")),
        _ => Ok(()),
    }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits =
        |part: &&str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day] if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

fn read(name: &str, field: &Value, required: bool) -> Field {
    let text = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
    let size = |key: &str| field[key].as_u64().and_then(|number| usize::try_from(number).ok());
    let kind = match (field["enum"].as_array(), field["type"].as_str()) {
        (Some(values), _) => {
            let names = field["enumNames"].as_array();
            let name = |at: usize, value: &str| {
                names.and_then(|names| names.get(at)).and_then(Value::as_str).unwrap_or(value).to_owned()
            };
            let values = values.iter().filter_map(Value::as_str).enumerate();
            FieldKind::OneOf(values.map(|(at, value)| (value.to_owned(), name(at, value))).collect())
        }
        (None, Some("boolean")) => FieldKind::YesNo,
        (None, Some("integer")) => FieldKind::Number { whole: true },
        (None, Some("number")) => FieldKind::Number { whole: false },
        (None, Some(_) | None) => FieldKind::Text {
            format: field["format"].as_str().map(str::to_owned),
            length: (size("minLength").unwrap_or(0), size("maxLength")),
        },
    };
    let entered = match &field["default"] {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    };
    let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| name.to_owned());
    Field {
        name: name.to_owned(),
        title,
        description: text("description"),
        kind,
        required,
        text: entered,
        range: (field["minimum"].as_f64(), field["maximum"].as_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form() -> Form {
        Form::new(&Arc::new(Elicitation {
            elicitation_id: "e".to_owned(),
            server_name: "s".to_owned(),
            message: "m".to_owned(),
            requested_schema: Some(json!({ "type": "object", "required": ["name"], "properties": {
                "name": { "type": "string", "minLength": 2, "title": "Your name" },
                "mail": { "type": "string", "format": "email" },
                "age": { "type": "integer", "minimum": 18 },
                "news": { "type": "boolean", "default": false },
                "color": { "type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"] },
            } })),
            title: None,
        }))
    }

    #[test]
    fn a_form_is_checked_before_it_is_sent() {
        let mut form = form();
        assert_eq!(form.accept(), Err((0, "this field is required".to_owned())));
        for (place, text, problem) in [
            (0, "x", "enter at least 2 characters"),
            (1, "someone", "this is not a valid email"),
            (2, "17", "enter at least 18"),
            (2, "18.5", "enter a whole number"),
            (3, "perhaps", "enter yes or no"),
            (4, "green", "choose one of the values"),
        ] {
            let before = std::mem::replace(&mut form.fields[place].text, text.to_owned());
            assert_eq!(form.problem(place).as_deref(), Some(problem), "{text}");
            form.fields[place].text = before;
        }
    }

    #[test]
    fn what_was_entered_has_the_types_of_the_schema() {
        let mut form = form();
        for (place, text) in [(0, "Ana"), (2, "42"), (3, "yes"), (4, "2")] {
            text.clone_into(&mut form.fields[place].text);
        }
        let content = form.accept().unwrap().content.unwrap();
        assert_eq!(Value::Object(content), json!({ "name": "Ana", "age": 42, "news": true, "color": "b" }));
    }
}
