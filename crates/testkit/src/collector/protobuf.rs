//! Reads the protobuf encoding of traces and metrics into the JSON that the same protocol defines. The numbers are those
//! of the published definition. Invalid bytes end the message that they are in.

use serde_json::{Map, Value, json};

/// What a field holds.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Identifier,
    Fixed64,
    Double,
    Integer,
    Small,
    Flag,
    Message(&'static [Known]),
    Fixed64s,
    Doubles,
}

/// A field: its number, its name, whether it may occur many times, and what it holds.
type Known = (u64, &'static str, bool, Holds);

const ANY: &[Known] = &[
    (1, "stringValue", false, Holds::Text),
    (2, "boolValue", false, Holds::Flag),
    (3, "intValue", false, Holds::Integer),
    (4, "doubleValue", false, Holds::Double),
    (5, "arrayValue", false, Holds::Message(&[(1, "values", true, Holds::Message(TEXT))])),
];
const TEXT: &[Known] = &[(1, "stringValue", false, Holds::Text)];
const PAIR: &[Known] = &[(1, "key", false, Holds::Text), (2, "value", false, Holds::Message(ANY))];
const RESOURCE: &[Known] = &[(1, "attributes", true, Holds::Message(PAIR))];
const SCOPE: &[Known] = &[(1, "name", false, Holds::Text), (2, "version", false, Holds::Text)];
const STATUS: &[Known] = &[(2, "message", false, Holds::Text), (3, "code", false, Holds::Small)];
const SPAN: &[Known] = &[
    (1, "traceId", false, Holds::Identifier),
    (2, "spanId", false, Holds::Identifier),
    (4, "parentSpanId", false, Holds::Identifier),
    (5, "name", false, Holds::Text),
    (6, "kind", false, Holds::Small),
    (7, "startTimeUnixNano", false, Holds::Fixed64),
    (8, "endTimeUnixNano", false, Holds::Fixed64),
    (9, "attributes", true, Holds::Message(PAIR)),
    (15, "status", false, Holds::Message(STATUS)),
];
const SCOPE_SPANS: &[Known] =
    &[(1, "scope", false, Holds::Message(SCOPE)), (2, "spans", true, Holds::Message(SPAN))];
const RESOURCE_SPANS: &[Known] =
    &[(1, "resource", false, Holds::Message(RESOURCE)), (2, "scopeSpans", true, Holds::Message(SCOPE_SPANS))];
const NUMBER_POINT: &[Known] = &[
    (2, "startTimeUnixNano", false, Holds::Fixed64),
    (3, "timeUnixNano", false, Holds::Fixed64),
    (4, "asDouble", false, Holds::Double),
    (7, "attributes", true, Holds::Message(PAIR)),
];
const HISTOGRAM_POINT: &[Known] = &[
    (2, "startTimeUnixNano", false, Holds::Fixed64),
    (3, "timeUnixNano", false, Holds::Fixed64),
    (4, "count", false, Holds::Fixed64),
    (5, "sum", false, Holds::Double),
    (6, "bucketCounts", false, Holds::Fixed64s),
    (7, "explicitBounds", false, Holds::Doubles),
    (9, "attributes", true, Holds::Message(PAIR)),
    (11, "min", false, Holds::Double),
    (12, "max", false, Holds::Double),
];
const SUM: &[Known] = &[
    (1, "dataPoints", true, Holds::Message(NUMBER_POINT)),
    (2, "aggregationTemporality", false, Holds::Small),
    (3, "isMonotonic", false, Holds::Flag),
];
const HISTOGRAM: &[Known] = &[
    (1, "dataPoints", true, Holds::Message(HISTOGRAM_POINT)),
    (2, "aggregationTemporality", false, Holds::Small),
];
const METRIC: &[Known] = &[
    (1, "name", false, Holds::Text),
    (2, "description", false, Holds::Text),
    (3, "unit", false, Holds::Text),
    (7, "sum", false, Holds::Message(SUM)),
    (9, "histogram", false, Holds::Message(HISTOGRAM)),
];
const SCOPE_METRICS: &[Known] =
    &[(1, "scope", false, Holds::Message(SCOPE)), (2, "metrics", true, Holds::Message(METRIC))];
const RESOURCE_METRICS: &[Known] = &[
    (1, "resource", false, Holds::Message(RESOURCE)),
    (2, "scopeMetrics", true, Holds::Message(SCOPE_METRICS)),
];
const TRACES: &[Known] = &[(1, "resourceSpans", true, Holds::Message(RESOURCE_SPANS))];
const METRICS: &[Known] = &[(1, "resourceMetrics", true, Holds::Message(RESOURCE_METRICS))];

/// Reads what came to a path.
pub(super) fn read(path: &str, body: &[u8]) -> Value {
    message(body, if path.ends_with("metrics") { METRICS } else { TRACES })
}

fn message(mut rest: &[u8], known: &[Known]) -> Value {
    let mut object = Map::new();
    while let Some((number, piece)) = next(&mut rest) {
        let Some((_, name, repeated, holds)) = known.iter().find(|(wanted, ..)| *wanted == number) else {
            // A field that the definition does not have is an error of the sender.
            object.insert(format!("unknown field {number}"), Value::Null);
            continue;
        };
        let value = value(&piece, *holds);
        match (repeated, object.get_mut(*name)) {
            (true, Some(Value::Array(list))) => list.push(value),
            (true, _) => {
                object.insert((*name).to_owned(), json!([value]));
            }
            (false, _) => {
                object.insert((*name).to_owned(), value);
            }
        }
    }
    Value::Object(object)
}

/// A field as it is in the bytes.
enum Piece<'a> {
    Varint(u64),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
}

fn next<'a>(rest: &mut &'a [u8]) -> Option<(u64, Piece<'a>)> {
    let tag = varint(rest)?;
    let piece = match tag & 7 {
        0 => Piece::Varint(varint(rest)?),
        1 => {
            let (bytes, after) = rest.split_first_chunk::<8>()?;
            *rest = after;
            Piece::Eight(*bytes)
        }
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            let (bytes, after) = rest.split_at_checked(length)?;
            *rest = after;
            Piece::Bytes(bytes)
        }
        _ => return None,
    };
    Some((tag >> 3, piece))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn value(piece: &Piece<'_>, holds: Holds) -> Value {
    let eights = |bytes: &[u8]| -> Vec<[u8; 8]> { bytes.as_chunks::<8>().0.to_vec() };
    match (holds, piece) {
        (Holds::Text, Piece::Bytes(bytes)) => json!(String::from_utf8_lossy(bytes)),
        (Holds::Identifier, Piece::Bytes(bytes)) => {
            json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        (Holds::Message(known), Piece::Bytes(bytes)) => message(bytes, known),
        (Holds::Fixed64s, Piece::Bytes(bytes)) => {
            eights(bytes).into_iter().map(|eight| u64::from_le_bytes(eight).to_string()).collect()
        }
        (Holds::Doubles, Piece::Bytes(bytes)) => eights(bytes).into_iter().map(f64::from_le_bytes).collect(),
        (Holds::Fixed64, Piece::Eight(eight)) => json!(u64::from_le_bytes(*eight).to_string()),
        (Holds::Double, Piece::Eight(eight)) => json!(f64::from_le_bytes(*eight)),
        (Holds::Integer, Piece::Varint(number)) => json!(number.cast_signed().to_string()),
        (Holds::Small, Piece::Varint(number)) => json!(number),
        (Holds::Flag, Piece::Varint(number)) => json!(*number != 0),
        (_, Piece::Varint(_) | Piece::Eight(_) | Piece::Bytes(_)) => json!("broken"),
    }
}
