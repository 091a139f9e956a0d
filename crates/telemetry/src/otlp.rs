//! The two encodings of the OpenTelemetry protocol, written from one tree: every field knows its number for protobuf and
//! its name for JSON. Only what is sent can be written; nothing is read.

use serde_json::{Map, Value, json};

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Text(String),
    /// An id: bytes in protobuf, hexadecimal digits in JSON.
    Identifier(Vec<u8>),
    Fixed64(u64),
    Integer(i64),
    Enumeration(u32),
    Double(f64),
    Flag(bool),
    Message(Vec<Field>),
    Fixed64s(Vec<u64>),
    Doubles(Vec<f64>),
}

/// A field of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    number: u32,
    name: &'static str,
    repeated: bool,
    node: Node,
}

/// A field that occurs once.
pub(crate) fn one(number: u32, name: &'static str, node: Node) -> Field {
    Field { number, name, repeated: false, node }
}

/// A field that may occur many times; each time it is given by itself.
pub(crate) fn each(number: u32, name: &'static str, node: Node) -> Field {
    Field { number, name, repeated: true, node }
}

/// A field with a message in it.
pub(crate) fn message(number: u32, name: &'static str, fields: Vec<Field>) -> Field {
    one(number, name, Node::Message(fields))
}

/// A message as protobuf.
pub(crate) fn protobuf(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        write(field, &mut out);
    }
    out
}

const VARINT: u32 = 0;
const EIGHT_BYTES: u32 = 1;
const DELIMITED: u32 = 2;

fn write(field: &Field, out: &mut Vec<u8>) {
    let tag = |kind: u32, out: &mut Vec<u8>| varint(u64::from(field.number << 3 | kind), out);
    let mut bytes = |bytes: &[u8]| {
        tag(DELIMITED, out);
        varint(bytes.len() as u64, out);
        out.extend_from_slice(bytes);
    };
    match &field.node {
        Node::Text(text) => bytes(text.as_bytes()),
        Node::Identifier(id) => bytes(id),
        Node::Message(fields) => bytes(&protobuf(fields)),
        Node::Fixed64s(numbers) => {
            bytes(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
        }
        Node::Doubles(numbers) => {
            bytes(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
        }
        Node::Fixed64(number) => {
            tag(EIGHT_BYTES, out);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Node::Double(number) => {
            tag(EIGHT_BYTES, out);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Node::Integer(number) => {
            tag(VARINT, out);
            varint(u64::from_le_bytes(number.to_le_bytes()), out);
        }
        Node::Enumeration(number) => {
            tag(VARINT, out);
            varint(u64::from(*number), out);
        }
        Node::Flag(flag) => {
            tag(VARINT, out);
            varint(u64::from(*flag), out);
        }
    }
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// A message as JSON.
pub(crate) fn json(fields: &[Field]) -> Value {
    let mut object = Map::new();
    for field in fields {
        let value = value(&field.node);
        if !field.repeated {
            object.insert(field.name.to_owned(), value);
            continue;
        }
        match object.get_mut(field.name) {
            Some(Value::Array(list)) => list.push(value),
            _ => {
                object.insert(field.name.to_owned(), Value::Array(vec![value]));
            }
        }
    }
    Value::Object(object)
}

fn value(node: &Node) -> Value {
    match node {
        Node::Text(text) => json!(text),
        Node::Identifier(id) => json!(id.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        // Numbers of 64 bits are texts in JSON; its own numbers lose digits.
        Node::Fixed64(number) => json!(number.to_string()),
        Node::Integer(number) => json!(number.to_string()),
        Node::Enumeration(number) => json!(number),
        Node::Double(number) => json!(number),
        Node::Flag(flag) => json!(flag),
        Node::Message(fields) => json(fields),
        Node::Fixed64s(numbers) => numbers.iter().map(u64::to_string).collect(),
        Node::Doubles(numbers) => json!(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Field> {
        vec![
            one(1, "traceId", Node::Identifier(vec![0xab, 0x01])),
            one(5, "name", Node::Text("hé".to_owned())),
            one(6, "kind", Node::Enumeration(3)),
            one(7, "start", Node::Fixed64(u64::MAX)),
            each(9, "attributes", Node::Message(vec![one(3, "intValue", Node::Integer(-1))])),
            each(9, "attributes", Node::Message(vec![one(2, "boolValue", Node::Flag(true))])),
            one(16, "bounds", Node::Doubles(vec![1.0])),
            one(17, "counts", Node::Fixed64s(vec![300])),
            one(18, "sum", Node::Double(0.5)),
        ]
    }

    #[test]
    fn protobuf_is_written_as_its_definition_says() {
        let mut expected = vec![0x0a, 2, 0xab, 0x01, 0x2a, 3, b'h', 0xc3, 0xa9, 0x30, 3, 0x39];
        expected.extend([0xff; 8]);
        expected.extend([0x4a, 11, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        expected.extend([0x4a, 2, 0x10, 1]);
        expected.extend([0x82, 0x01, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        expected.extend([0x8a, 0x01, 8, 0x2c, 1, 0, 0, 0, 0, 0, 0]);
        expected.extend([0x91, 0x01, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f]);
        assert_eq!(protobuf(&sample()), expected);
    }

    #[test]
    fn json_is_written_as_the_protocol_wants_it() {
        let expected = json!({
            "traceId": "ab01", "name": "hé", "kind": 3, "start": "18446744073709551615",
            "attributes": [{"intValue": "-1"}, {"boolValue": true}], "bounds": [1.0], "counts": ["300"], "sum": 0.5,
        });
        assert_eq!(json(&sample()), expected);
    }
}
