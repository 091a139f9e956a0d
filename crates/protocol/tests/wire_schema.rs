//! The messages and control requests as JSON Schema, for SDKs and other readers of the stream. The committed files are
//! what the types say; `UPDATE_SCHEMAS=1` writes them anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use qoder_protocol::control::{ControlLine, HostRequest, RuntimeRequest};
use qoder_protocol::messages::{StreamEvent, StreamMessage};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::Serialize;

/// A piece of a reply as a line.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "stream_event")]
struct PartialLine {
    #[serde(rename = "type")]
    #[schemars(schema_with = "stream_event")]
    kind: &'static str,
    #[serde(flatten)]
    event: StreamEvent,
}

fn stream_event(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "const": "stream_event" })
}

/// Everything that a host reads.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema is made of the type, not of values")]
enum RuntimeLine {
    Message(StreamMessage),
    Partial(PartialLine),
    Control(ControlLine<RuntimeRequest>),
}

fn compare(name: &str, schema: &Schema) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas").join(name);
    let made = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == made,
        "{name} is not what the types say; run UPDATE_SCHEMAS=1 cargo test -p qoder-protocol"
    );
}

#[test]
fn what_the_runtime_writes_is_as_committed() {
    let written = SchemaSettings::draft2020_12().for_serialize().into_generator();
    compare("runtime-lines.schema.json", &written.into_root_schema_for::<RuntimeLine>());
}

#[test]
fn what_the_host_asks_is_as_committed() {
    compare("host-control-lines.schema.json", &schema_for!(ControlLine<HostRequest>));
}
