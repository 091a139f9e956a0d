//! Small helpers for writing JSON by hand into byte buffers, where the order of keys and the exact
//! bytes matter. Serialising into memory cannot fail for the types used here; should it ever, `null` is
//! written instead of a panic.

use serde::Serialize;

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
