//! Small helpers for writing JSON by hand into byte buffers, where the order of keys and the exact
//! bytes matter. Serialising into memory cannot fail for the types used here; should it ever, `null` is
//! written instead of a panic.
//!
//! Also the lenient readers: endpoints send other types than their protocol says, and one odd field must
//! not cost a reply. A value of a type that makes no sense counts as absent.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// No count that an endpoint can mean is larger, and sums of counts below it cannot overflow.
const LARGEST_COUNT: u64 = 1 << 48;

/// Appends `value` as JSON.
pub(crate) fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Appends `,"name":value`.
pub(crate) fn field<T: Serialize + ?Sized>(out: &mut Vec<u8>, name: &str, value: &T) {
    out.push(b',');
    write(out, name);
    out.push(b':');
    write(out, value);
}

/// Appends `text` as a JSON string to a text.
pub(crate) fn quote_into(out: &mut String, text: &str) {
    // `Value::String` would copy first; `to_string` on `str` only fails on a failing writer, which a `String` is not.
    match serde_json::to_string(text) {
        Ok(quoted) => out.push_str(&quoted),
        Err(_) => out.push_str("\"\""),
    }
}

/// A text that borrows from the input unless it holds escapes; empty when the field is missing. Lists of text parts become
/// one text.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

/// Like [`Text`], but what is no text stays JSON: arguments that came as an object instead of as its text.
#[derive(Debug, Default)]
pub(crate) struct TextOrJson<'a>(pub(crate) Cow<'a, str>);

/// A number of something; `None` when it is not a number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// An object, or nothing when something else came.
#[derive(Debug)]
pub(crate) struct Lenient<T>(pub(crate) Option<T>);

/// The objects of a list; what is no list is an empty one.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Implements the scalar methods of a visitor that have nothing to give.
macro_rules! nothing_from {
    ($nothing:expr; $($method:ident($kind:ty)),*) => {
        $(fn $method<E: Error>(self, _: $kind) -> Result<Self::Value, E> {
            Ok($nothing)
        })*
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("any JSON")
        }
    };
}

fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_fields<'de, A: MapAccess<'de>>(mut fields: A) -> Result<(), A::Error> {
    while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

struct TextVisitor {
    keep_json: bool,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    nothing_from!(Cow::Borrowed(""); visit_bool(bool));

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }

    // Ids are numbers at some endpoints.
    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if self.keep_json {
            let mut all = Vec::new();
            while let Some(value) = list.next_element::<Value>()? {
                all.push(value);
            }
            return Ok(Cow::Owned(Value::Array(all).to_string()));
        }
        let mut joined = String::new();
        while let Some(Text(part)) = list.next_element::<Text<'de>>()? {
            joined.push_str(&part);
        }
        Ok(Cow::Owned(joined))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        if self.keep_json {
            let fields = serde_json::Map::deserialize(MapAccessDeserializer::new(fields))?;
            return Ok(Cow::Owned(Value::Object(fields).to_string()));
        }
        let mut text = Cow::Borrowed("");
        while let Some(Text(name)) = fields.next_key::<Text<'de>>()? {
            if name == "text" {
                text = fields.next_value::<Text<'de>>()?.0;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor { keep_json: false }).map(Text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TextOrJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor { keep_json: true }).map(TextOrJson)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Option<u64>;

    nothing_from!(None; visit_bool(bool));

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.min(LARGEST_COUNT)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number).ok().map(|number| number.min(LARGEST_COUNT)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "clamped to what both types hold before the cast"
    )]
    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok((number.is_finite() && number >= 0.0).then(|| number.min(LARGEST_COUNT as f64) as u64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.trim().parse::<u64>().ok().map(|number| number.min(LARGEST_COUNT)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        skip_list(list).map(|()| None)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        skip_fields(fields).map(|()| None)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor).map(Count)
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = Option<T>;

    nothing_from!(None; visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64), visit_str(&str));

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        skip_list(list).map(|()| None)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData)).map(Lenient)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    nothing_from!(Vec::new(); visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64), visit_str(&str));

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Lenient(item)) = list.next_element::<Lenient<T>>()? {
            all.extend(item);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        skip_fields(fields).map(|()| Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData)).map(List)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_in_many_shapes() {
        for (input, expected) in [
            (r#""plain""#, "plain"),
            (r#""esc\n""#, "esc\n"),
            ("null", ""),
            ("true", ""),
            ("17", "17"),
            (r#"[{"type":"text","text":"a"},"b",{"type":"image"},null]"#, "ab"),
            (r#"{"type":"text","text":"a"}"#, "a"),
        ] {
            assert_eq!(serde_json::from_str::<Text<'_>>(input).unwrap().0, expected, "{input}");
        }
        let plain: Text<'_> = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(plain.0, Cow::Borrowed(_)), "no copy without need");
        let arguments: TextOrJson<'_> = serde_json::from_str(r#"{"b":1,"a":{"c":[2]}}"#).unwrap();
        assert_eq!(arguments.0, r#"{"b":1,"a":{"c":[2]}}"#);
    }

    #[test]
    fn counts_are_numbers_or_nothing() {
        for (input, expected) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("-1", None),
            ("null", None),
            (r#""7""#, Some(7)),
            ("[1]", None),
            ("{}", None),
            ("1e300", Some(LARGEST_COUNT)),
            ("18446744073709551615", Some(LARGEST_COUNT)),
        ] {
            assert_eq!(serde_json::from_str::<Count>(input).unwrap().0, expected, "{input}");
        }
    }

    #[test]
    fn objects_and_lists_of_another_type_are_absent() {
        type Object = std::collections::BTreeMap<String, u8>;
        for input in ["1", "-1", "1.5", "null", "true", r#""x""#] {
            assert!(serde_json::from_str::<Lenient<Object>>(input).unwrap().0.is_none(), "{input}");
            assert!(serde_json::from_str::<List<Object>>(input).unwrap().0.is_empty(), "{input}");
        }
        assert!(serde_json::from_str::<Lenient<Object>>("[{}]").unwrap().0.is_none());
        assert!(serde_json::from_str::<List<Object>>(r#"{"a":1}"#).unwrap().0.is_empty());
        assert_eq!(serde_json::from_str::<List<Object>>(r#"[{"a":1},2,null]"#).unwrap().0.len(), 1);
    }
}
