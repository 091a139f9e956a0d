//! The length of a line. Readers of the protocol stop at 1 MiB, so no line passes that: pieces of replies are split into
//! smaller ones, and a message loses its typed output first, then the middle of its long texts, then the ends of its lists.
//! Each cut leaves a mark. What counts is the line as it is written, with its characters escaped.

use qoder_types::display::escape_json;
use serde_json::{Value, json};

/// The most bytes of a line, without its newline.
pub(super) const LONGEST_LINE: usize = 1024 * 1024 - 1;
/// What is wrapped around a request or a piece of a reply is shorter than this.
const WRAPPING: usize = 1024;
/// The most bytes of text in one piece of a reply. Escaped it has up to six times as many.
const PIECE: usize = 128 * 1024;
/// The limits for texts that are tried, from the longest to the shortest; then lists are cut.
const LONGEST_TEXT: usize = 256 * 1024;
const SHORTEST_TEXT: usize = 64;
/// The longest list when lists are cut.
const LONGEST_LIST: usize = 4096;

/// Escapes a line, and shortens it if it is too long then.
pub(super) fn fit(line: &mut Vec<u8>) {
    escape_json(line);
    if line.len() > LONGEST_LINE
        && let Ok(mut value) = serde_json::from_slice::<Value>(line)
    {
        *line = shortened(&mut value, LONGEST_LINE);
    }
}

/// The value cut so that it fits into a line with something around it; `None` when it fits as it is.
pub(super) fn cut(value: &Value) -> Option<Value> {
    let room = LONGEST_LINE - WRAPPING;
    if escaped(value).len() <= room {
        return None;
    }
    let mut value = value.clone();
    shortened(&mut value, room);
    Some(value)
}

/// True for what is left in the place of something that was cut.
pub(super) fn is_mark(text: &str) -> bool {
    text.strip_suffix(MARK_END)
        .and_then(|text| text.rfind(MARK_START).map(|at| &text[at + MARK_START.len()..]))
        .is_some_and(|inside| {
            inside.split_once(' ').is_some_and(|(count, _)| {
                !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
            })
        })
}

fn mark(count: usize, what: &str) -> String {
    format!("{MARK_START}{count} {what}{MARK_END}")
}

const MARK_START: &str = "[… ";
const MARK_END: &str = " left out of this line …]";
/// The key of an object that lost some of its keys.
pub(super) const LEFT_OUT: &str = "…";

/// A piece of a reply, as pieces that fit into a line each.
pub(super) fn pieces(event: &str) -> Vec<String> {
    let mut line = event.as_bytes().to_vec();
    escape_json(&mut line);
    if line.len() <= LONGEST_LINE - WRAPPING {
        return vec![event.to_owned()];
    }
    let Ok(mut value) = serde_json::from_str::<Value>(event) else { return Vec::new() };
    let index = value["index"].clone();
    let (start, kind, text) = match value["type"].as_str() {
        Some("content_block_delta") => match take_text(&mut value["delta"]) {
            Some((kind, text)) => (None, kind, text),
            None => (Some(value), "", String::new()),
        },
        Some("content_block_start") => match take_text(&mut value["content_block"]) {
            Some((kind, text)) => (Some(value), kind, text),
            None => (Some(value), "", String::new()),
        },
        Some(_) | None => (Some(value), "", String::new()),
    };
    let start = start.map(|mut value| {
        String::from_utf8(shortened(&mut value, LONGEST_LINE - WRAPPING)).unwrap_or_default()
    });
    let field = FIELDS.iter().find(|(_, name)| *name == kind).map_or("text", |(field, _)| *field);
    let deltas = chunks(&text).map(|chunk| {
        json!({ "type": "content_block_delta", "index": index, "delta": { "type": kind, field: chunk } })
            .to_string()
    });
    start.into_iter().filter(|start| !start.is_empty()).chain(deltas).collect()
}

/// The fields that add text to a block, and how pieces of it are called. A signature has to stay whole.
const FIELDS: [(&str, &str); 3] =
    [("text", "text_delta"), ("thinking", "thinking_delta"), ("partial_json", "input_json_delta")];

/// Takes the text out of a delta, or of a block that begins with some.
fn take_text(block: &mut Value) -> Option<(&'static str, String)> {
    for (field, kind) in FIELDS {
        if let Some(Value::String(text)) = block.get_mut(field)
            && !text.is_empty()
        {
            return Some((kind, std::mem::take(text)));
        }
    }
    let input = block.get_mut("input").filter(|input| input.is_object())?;
    let text = std::mem::replace(input, json!({})).to_string();
    Some(("input_json_delta", text))
}

fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut cut = PIECE.min(rest.len());
        while !rest.is_char_boundary(cut) {
            cut -= 1;
        }
        let (chunk, remaining) = rest.split_at(cut);
        rest = remaining;
        (!chunk.is_empty()).then_some(chunk)
    })
}

fn escaped(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec());
    escape_json(&mut text);
    text
}

/// Cuts until the value fits, and returns its text. Each round cuts the whole value anew, so that a mark counts everything
/// that was left out.
fn shortened(value: &mut Value, longest: usize) -> Vec<u8> {
    if let Some(object) = value.as_object_mut() {
        object.remove("tool_use_result");
    }
    let texts = std::iter::successors(Some(LONGEST_TEXT), |limit| {
        Some(limit / 4).filter(|limit| *limit >= SHORTEST_TEXT)
    });
    let lists = std::iter::successors(Some(LONGEST_LIST), |most| Some(most / 8).filter(|most| *most > 0));
    let rounds = texts.map(|limit| (limit, None)).chain(lists.map(|most| (SHORTEST_TEXT, Some(most))));
    let mut text = escaped(value);
    for (limit, most) in rounds {
        if text.len() <= longest {
            return text;
        }
        let mut cut = value.clone();
        cut_strings(&mut cut, limit);
        if let Some(most) = most {
            cut_lists(&mut cut, most, true);
        }
        text = escaped(&cut);
        if text.len() <= longest || most == Some(1) {
            *value = cut;
            return text;
        }
    }
    text
}

fn cut_strings(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) if text.len() > limit => {
            let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let left_out = text.len() - end;
            text.truncate(end);
            text.push_str(&mark(left_out, "bytes"));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_strings(item, limit)),
        Value::Object(map) => map.values_mut().for_each(|item| cut_strings(item, limit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Keeps the first entries of every list and of every object but the message itself. A list of objects of a kind, such
/// as the blocks of a message, gets no mark: its readers expect that kind in every entry.
fn cut_lists(value: &mut Value, most: usize, is_message: bool) {
    match value {
        Value::Array(items) => {
            if items.len() > most {
                let left_out = items.len() - most;
                items.truncate(most);
                if !items.iter().all(|item| item.get("type").is_some_and(Value::is_string)) {
                    items.push(Value::String(mark(left_out, "entries")));
                }
            }
            items.iter_mut().for_each(|item| cut_lists(item, most, false));
        }
        Value::Object(map) => {
            if !is_message && map.len() > most {
                let left_out = map.len() - most;
                *map = std::mem::take(map).into_iter().take(most).collect();
                map.insert(LEFT_OUT.to_owned(), Value::String(mark(left_out, "fields")));
            }
            map.values_mut().for_each(|item| cut_lists(item, most, false));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = LONGEST_LINE - WRAPPING;

    fn length(text: &str) -> usize {
        let mut line = text.as_bytes().to_vec();
        escape_json(&mut line);
        line.len()
    }

    #[test]
    fn pieces_of_any_text_fit_and_come_to_the_same() {
        let letters = ["x", "\u{7f}", "\u{202e}", "\u{e0041}", "\u{1}", "é🦀"];
        let cases =
            letters.into_iter().map(|letter| (letter, FIELDS[0])).chain(FIELDS.map(|field| ("y", field)));
        for (letter, (field, kind)) in cases {
            let text = letter.repeat(LONGEST_LINE.div_ceil(length(&json!(letter).to_string()) - 2));
            let event =
                json!({ "type": "content_block_delta", "index": 3, "delta": { "type": kind, field: text } });
            let events = pieces(&event.to_string());
            assert!(
                events.len() > 1 && events.iter().all(|event| length(event) <= ROOM),
                "{letter:?} {field}"
            );
            let read: Vec<Value> = events.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
            assert!(read.iter().all(|event| event["index"] == 3 && event["delta"]["type"] == kind));
            let joined: String = read.iter().filter_map(|event| event["delta"][field].as_str()).collect();
            assert!(joined == text, "{letter:?} {field}");
        }
    }

    #[test]
    fn a_block_that_begins_with_much_begins_with_nothing_and_goes_on_in_pieces() {
        let input = json!({ "content": "y".repeat(1_200_000) });
        let block = json!({ "type": "tool_use", "id": "t", "name": "Write", "input": input });
        let event = json!({ "type": "content_block_start", "index": 1, "content_block": block });
        let events: Vec<Value> =
            pieces(&event.to_string()).iter().map(|event| serde_json::from_str(event).unwrap()).collect();
        assert_eq!(
            events[0]["content_block"],
            json!({ "type": "tool_use", "id": "t", "name": "Write", "input": {} })
        );
        let joined: String =
            events[1..].iter().map(|event| event["delta"]["partial_json"].as_str().unwrap()).collect();
        assert_eq!(serde_json::from_str::<Value>(&joined).unwrap(), input);
    }

    #[test]
    fn no_message_is_too_long_whatever_it_is_made_of() {
        let many: Vec<Value> = (0..50_000).map(|number| json!({ "a": number, "b": "short" })).collect();
        let keys: serde_json::Map<String, Value> =
            (0..60_000).map(|number| (format!("key {number}"), json!("\u{202e}"))).collect();
        for value in [json!({ "type": "x", "list": many }), json!({ "type": "x", "map": { "inner": keys } })]
        {
            let mut line = serde_json::to_vec(&value).unwrap();
            fit(&mut line);
            assert!(line.len() <= LONGEST_LINE, "{}", line.len());
            assert_eq!(serde_json::from_slice::<Value>(&line).unwrap()["type"], "x");
        }
        let signature =
            json!({ "type": "content_block_delta", "delta": { "signature": "s".repeat(1_200_000) } });
        assert!(pieces(&signature.to_string()).iter().all(|event| length(event) <= ROOM));
    }
}
