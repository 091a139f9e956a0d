//! A value that another program is shown in a line and may hand back changed: what had to be cut out of the line is put
//! back, and a change of such a part is refused, because no one saw what it replaces.

use serde_json::{Map, Value};

use super::line_length::{LEFT_OUT, cut, is_mark};

/// A value, and how the other program sees it.
pub(crate) struct Shown {
    whole: Value,
    /// `None` when the line has room for the whole value.
    cut: Option<Value>,
}

/// The other program changed what it had not been shown in full.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{field}` was too long for a line of the protocol, which ends at 1 MiB, and came back changed where it was cut. Hand it \
     back as it was sent, or leave `updatedInput` out"
)]
pub(crate) struct ChangedCut {
    field: String,
}

impl Shown {
    /// The value as it fits into a line.
    pub(crate) fn new(whole: Value) -> Self {
        let cut = cut(&whole);
        Self { whole, cut }
    }

    /// What the line says.
    pub(crate) fn sent(&self) -> &Value {
        self.cut.as_ref().unwrap_or(&self.whole)
    }

    /// A part of the value.
    pub(crate) fn part(&self, key: &str) -> Option<Self> {
        let whole = self.whole.get(key)?.clone();
        let cut = self.cut.as_ref().map(|cut| cut.get(key).cloned().unwrap_or(Value::Null));
        Some(Self { cut: cut.filter(|cut| *cut != whole), whole })
    }

    /// What the other program handed back, with everything in it that was cut.
    pub(crate) fn restore(&self, returned: Value) -> Result<Value, ChangedCut> {
        match &self.cut {
            None => Ok(returned),
            Some(cut) => restore(&self.whole, cut, returned, "input"),
        }
    }
}

fn restore(whole: &Value, sent: &Value, returned: Value, name: &str) -> Result<Value, ChangedCut> {
    if *sent == returned {
        return Ok(whole.clone());
    }
    if whole == sent {
        return Ok(returned);
    }
    match (whole, sent, returned) {
        (Value::Object(whole), Value::Object(sent), Value::Object(returned)) => {
            restore_fields(whole, sent, returned)
        }
        (Value::Array(whole), Value::Array(sent), Value::Array(returned)) => {
            restore_entries(whole, sent, returned, name)
        }
        // A value of another kind, or a text without the mark, takes the place of the whole one.
        (_, _, returned) if has_mark(&returned) => Err(ChangedCut { field: name.to_owned() }),
        (_, _, returned) => Ok(returned),
    }
}

/// Keys that were left out come back; keys that were shown and are missing were taken away.
fn restore_fields(
    whole: &Map<String, Value>,
    sent: &Map<String, Value>,
    mut returned: Map<String, Value>,
) -> Result<Value, ChangedCut> {
    let left_some_out = sent.contains_key(LEFT_OUT) && !whole.contains_key(LEFT_OUT);
    if left_some_out {
        returned.remove(LEFT_OUT);
    }
    let mut fields = Map::new();
    for (key, value) in returned {
        let value = match (whole.get(&key), sent.get(&key)) {
            (Some(whole), Some(sent)) => restore(whole, sent, value, &key)?,
            (Some(_), None) => return Err(ChangedCut { field: key }),
            (None, _) => value,
        };
        fields.insert(key, value);
    }
    if left_some_out {
        let missing = whole.iter().filter(|(key, _)| !sent.contains_key(*key));
        fields.extend(missing.map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(Value::Object(fields))
}

/// Entries keep their places as long as there are as many as were sent; in a list of another length, only whole entries
/// can be told apart from new ones.
fn restore_entries(
    whole: &[Value],
    sent: &[Value],
    returned: Vec<Value>,
    name: &str,
) -> Result<Value, ChangedCut> {
    let changed = || ChangedCut { field: name.to_owned() };
    let marked = sent.len() <= whole.len() && sent.last().and_then(Value::as_str).is_some_and(is_mark);
    let shown = if marked { sent.len() - 1 } else { sent.len() };
    if returned.len() == sent.len() {
        if marked && returned.last() != sent.last() {
            return Err(changed());
        }
        let pairs = whole.iter().zip(sent).zip(returned).take(shown);
        let entries = pairs.map(|((whole, sent), returned)| restore(whole, sent, returned, name));
        let rest = whole.iter().skip(shown).cloned().map(Ok);
        return entries.chain(rest).collect::<Result<Vec<Value>, ChangedCut>>().map(Value::Array);
    }
    let complete = whole.len() == shown && whole.iter().zip(sent).all(|(whole, sent)| whole == sent);
    if complete && !returned.iter().any(has_mark) { Ok(Value::Array(returned)) } else { Err(changed()) }
}

fn has_mark(value: &Value) -> bool {
    match value {
        Value::String(text) => is_mark(text),
        Value::Array(items) => items.iter().any(has_mark),
        Value::Object(map) => map.values().any(has_mark),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn long() -> String {
        "x".repeat(3_000_000)
    }

    #[test]
    fn what_comes_back_as_it_was_sent_is_the_whole() {
        let many: Vec<Value> =
            (0..60_000).map(|number| json!({ "content": format!("todo {number}") })).collect();
        let keys: Map<String, Value> =
            (0..90_000).map(|number| (format!("key {number}"), json!(number))).collect();
        for whole in [json!({ "content": long() }), json!({ "todos": many }), json!({ "map": keys, "a": 1 })]
        {
            let shown = Shown::new(whole.clone());
            assert_ne!(*shown.sent(), whole);
            assert_eq!(shown.restore(shown.sent().clone()), Ok(whole));
        }
    }

    #[test]
    fn another_field_may_change() {
        let shown = Shown::new(json!({ "file_path": "a", "content": long(), "gone": 1 }));
        let mut returned = shown.sent().clone();
        returned["file_path"] = json!("b");
        returned["new"] = json!(true);
        returned.as_object_mut().unwrap().remove("gone");
        assert_eq!(shown.restore(returned), Ok(json!({ "file_path": "b", "content": long(), "new": true })));
        let mut replaced = shown.sent().clone();
        replaced["content"] = json!("short");
        assert_eq!(shown.restore(replaced).unwrap()["content"], "short");
    }

    #[test]
    fn a_change_of_what_was_cut_is_refused_and_named() {
        let shown = Shown::new(json!({ "content": long() }));
        let mut returned = shown.sent().clone();
        let text = format!("// head\n{}", returned["content"].as_str().unwrap());
        returned["content"] = json!(text);
        assert!(shown.restore(returned).unwrap_err().to_string().contains("`content`"));

        let many: Vec<Value> =
            (0..60_000).map(|number| json!({ "content": format!("todo {number}") })).collect();
        let shown = Shown::new(json!({ "todos": many }));
        let mut fewer = shown.sent().clone();
        fewer["todos"].as_array_mut().unwrap().remove(7);
        assert!(shown.restore(fewer).unwrap_err().to_string().contains("`todos`"));
        let mut changed = shown.sent().clone();
        changed["todos"][7]["content"] = json!("other");
        let restored = shown.restore(changed).unwrap();
        assert_eq!(restored["todos"].as_array().unwrap().len(), 60_000);
        assert_eq!(restored["todos"][7]["content"], "other");
    }

    #[test]
    fn a_short_value_comes_back_as_it_is_whatever_it_looks_like() {
        let shown = Shown::new(json!({ "content": "a" }));
        let returned = json!({ "content": "b [… 5 bytes left out of this line …]" });
        assert_eq!(shown.restore(returned.clone()), Ok(returned));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            (0..1_200_000_usize).prop_map(|length| json!("y".repeat(length))),
            "[a-z…\\[ ]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map("[a-d…]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
        #[test]
        fn nothing_is_lost_on_the_way(whole in values()) {
            let shown = Shown::new(whole.clone());
            prop_assert_eq!(shown.restore(shown.sent().clone()), Ok(whole));
        }
    }
}
