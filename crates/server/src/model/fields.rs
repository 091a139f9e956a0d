//! Reading the fields of a JSON object. A field that is missing and one that is null are the same unless the caller wants to
//! know; a field of another type is a problem that names it. Fields that no one asks for are ignored.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::problem::Problem;

/// The fields of an object.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(&'a Map<String, Value>);

/// A field of an update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change<T> {
    /// It is not in the update.
    Keep,
    /// It is null.
    Clear,
    /// It has a value.
    Set(T),
}

impl<'a> Fields<'a> {
    /// The fields of a request's body.
    ///
    /// # Errors
    /// When the body is not an object.
    pub fn of_body(value: &'a Value) -> Result<Self, Problem> {
        value.as_object().map(Self).ok_or_else(|| Problem::whole("The request body must be a JSON object."))
    }

    /// The fields of a value inside of a body.
    ///
    /// # Errors
    /// When it is not an object.
    pub fn of(value: &'a Value, name: &str) -> Result<Self, Problem> {
        value.as_object().map(Self).ok_or_else(|| Problem::field(name, "must be an object"))
    }

    /// The fields of a value whose place in the body the caller adds with [`Problem::inside`].
    ///
    /// # Errors
    /// When it is not an object.
    pub fn of_item(value: &'a Value) -> Result<Self, Problem> {
        Self::of(value, "")
    }

    /// The fields themselves.
    #[must_use]
    pub fn map(&self) -> &'a Map<String, Value> {
        self.0
    }

    /// A field that is there and not null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// What an update says about a field.
    #[must_use]
    pub fn change(&self, key: &str) -> Change<&'a Value> {
        match self.0.get(key) {
            None => Change::Keep,
            Some(Value::Null) => Change::Clear,
            Some(value) => Change::Set(value),
        }
    }

    /// A text of this many characters, if there is one.
    ///
    /// # Errors
    /// When it is something else.
    pub fn optional_text(
        &self,
        key: &str,
        length: RangeInclusive<usize>,
    ) -> Result<Option<&'a str>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) if length.contains(&text.chars().count()) => Ok(Some(text)),
            Some(Value::String(text)) => {
                let (shortest, longest) = length.into_inner();
                let found = text.chars().count();
                Err(Problem::field(
                    key,
                    format!("has {found} characters; {shortest} to {longest} are accepted"),
                ))
            }
            Some(_) => Err(Problem::field(key, "must be a string")),
        }
    }

    /// A text that has to be there.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub fn text(&self, key: &str, length: RangeInclusive<usize>) -> Result<&'a str, Problem> {
        self.optional_text(key, length)?.ok_or_else(|| Problem::field(key, "is required"))
    }

    /// One of these words, if there is one.
    ///
    /// # Errors
    /// When it is something else.
    pub fn word(&self, key: &str, accepted: &[&str]) -> Result<Option<&'a str>, Problem> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let word = value.as_str().filter(|word| accepted.contains(word));
        word.map(Some).ok_or_else(|| {
            let shown: Vec<String> = accepted.iter().map(|word| format!("`{word}`")).collect();
            Problem::field(key, format!("is {value}; accepted are {}", shown.join(", ")))
        })
    }

    /// A whole number in these bounds, if there is one.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number(&self, key: &str, bounds: RangeInclusive<u64>) -> Result<Option<u64>, Problem> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_u64().filter(|number| bounds.contains(number));
        number.map(Some).ok_or_else(|| {
            let (least, most) = bounds.into_inner();
            let accepted =
                if most == u64::MAX { format!("at least {least}") } else { format!("{least} to {most}") };
            Problem::field(key, format!("must be a whole number, {accepted}"))
        })
    }

    /// True or false, if it is there.
    ///
    /// # Errors
    /// When it is something else.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, Problem> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(Problem::field(key, "must be true or false")),
        }
    }

    /// The items of an array; none when it is missing.
    ///
    /// # Errors
    /// When it is something else, or has more items.
    pub fn items(&self, key: &str, most: usize) -> Result<&'a [Value], Problem> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(items)) if items.len() <= most => Ok(items),
            Some(Value::Array(items)) => {
                Err(Problem::field(key, format!("has {} items; at most {most} are accepted", items.len())))
            }
            Some(_) => Err(Problem::field(key, "must be an array")),
        }
    }

    /// The texts of an array; none when it is missing.
    ///
    /// # Errors
    /// When it is something else.
    pub fn texts(&self, key: &str, most: usize) -> Result<Vec<String>, Problem> {
        let items = self.items(key, most)?.iter();
        let texts = items.map(|item| item.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().ok_or_else(|| Problem::field(key, "must be an array of strings"))
    }

    /// The fields of an object, if there is one.
    ///
    /// # Errors
    /// When it is something else.
    pub fn object(&self, key: &str) -> Result<Option<Self>, Problem> {
        self.get(key).map(|value| Self::of(value, key)).transpose()
    }
}

/// Reads every item of an array; a problem names the item.
///
/// # Errors
/// The first problem.
pub fn each<T>(
    key: &str,
    items: &[Value],
    read: impl Fn(&Value) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    let one = |(index, item): (usize, &Value)| {
        read(item).map_err(|problem| {
            let at = format!("{key}[{index}]");
            if problem.field.is_some() { problem.inside(&at) } else { Problem { field: Some(at), ..problem } }
        })
    };
    items.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_names_the_field_by_its_path() {
        let body = json!({ "tools": [{ "name": 1 }], "count": -1, "word": "b" });
        let fields = Fields::of_body(&body).unwrap();
        let read = |item: &Value| Fields::of(item, "tool")?.text("name", 1..=3).map(drop);
        let problem = each("tools", fields.items("tools", 9).unwrap(), read).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some("tools[0].name"));
        assert_eq!(problem.message, "`tools[0].name` must be a string");
        let problem = fields.number("count", 1..=u64::MAX).unwrap_err();
        assert_eq!(problem.message, "`count` must be a whole number, at least 1");
        assert_eq!(fields.word("word", &["a"]).unwrap_err().message, "`word` is \"b\"; accepted are `a`");
        assert!(fields.text("missing", 1..=9).unwrap_err().message.ends_with("is required"));
        assert!(Fields::of_body(&json!([])).is_err());
        let problem = each("tools", &[json!("Bash")], |item| Fields::of_item(item).map(drop)).unwrap_err();
        assert_eq!(problem.message, "`tools[0]` must be an object");
        assert_eq!(problem.inside("agent").field.as_deref(), Some("agent.tools[0]"));
    }
}
