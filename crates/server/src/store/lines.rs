//! Records as rows keep them: the line that a log has for them, without its newline. Parts that repeat from session to session,
//! such as the system prompt and the list of tools, are taken out and kept once.

use std::path::Path;

use qoder_store::line::{self, Line, Owner};
use qoder_types::Record;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::error::DbError;
use super::port::{NewRecord, RecordRow};
use crate::model::time::Time;

/// Parts shorter than this stay in the line.
const SHORTEST_PART: usize = 4 * 1024;

/// A record as a row.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn encode(record: &Record, owner: Owner<'_>) -> Result<NewRecord, DbError> {
    let mut line = Vec::new();
    line::encode(record, owner, &mut line).map_err(|error| DbError::Corrupt(error.to_string()))?;
    line.truncate(line.trim_ascii_end().len());
    let kind = line::kind(&record.body).to_owned();
    let parts = if kind == "epoch" { take_parts(&mut line) } else { Vec::new() };
    let at = Time::parse(&record.timestamp).unwrap_or_else(Time::now);
    Ok(NewRecord { seq: record.seq, at, kind, body: line, parts, blob: None })
}

/// A row as a line of the log.
///
/// # Errors
/// When its checksum does not fit, or it is not a record.
pub fn decode(row: &RecordRow) -> Result<Line, DbError> {
    line::decode(&row.line, Path::new(""))
        .map_err(|error| DbError::Corrupt(format!("record {}: {error}", row.seq)))
}

#[derive(Deserialize)]
struct EpochParts<'a> {
    #[serde(borrow)]
    system: &'a RawValue,
    #[serde(borrow)]
    tools: &'a RawValue,
}

/// Takes the long parts out of the line of an epoch; each is named by where it was in what is left.
fn take_parts(line: &mut Vec<u8>) -> Vec<(u32, [u8; 32], Vec<u8>)> {
    let Ok(parts) = serde_json::from_slice::<EpochParts<'_>>(line) else { return Vec::new() };
    let base = line.as_ptr() as usize;
    let mut ranges: Vec<(usize, usize)> = [parts.system, parts.tools]
        .iter()
        .map(|part| part.get())
        .filter(|text| text.len() >= SHORTEST_PART)
        .map(|text| (text.as_ptr() as usize - base, text.len()))
        .collect();
    ranges.sort_unstable();
    let (mut taken, mut left, mut at) = (Vec::new(), Vec::with_capacity(line.len()), 0);
    for (start, length) in ranges {
        left.extend_from_slice(&line[at..start]);
        at = start + length;
        let part = line[start..at].to_vec();
        let place = u32::try_from(left.len()).unwrap_or(u32::MAX);
        taken.push((place, Sha256::digest(&part).into(), part));
    }
    left.extend_from_slice(&line[at..]);
    *line = left;
    taken
}

#[cfg(test)]
mod tests {
    use qoder_types::ToolDefinition;
    use qoder_types::record::{Epoch, RecordBody};

    use super::*;

    #[test]
    fn long_parts_of_an_epoch_are_taken_out_and_fit_back() {
        let tool = ToolDefinition {
            name: "Bash".to_owned(),
            description: "d".repeat(5_000).into(),
            input_schema: serde_json::json!({ "type": "object" }).into(),
        };
        let epoch = |system: &str| Record {
            seq: 2,
            timestamp: "2026-01-02T03:04:05.678Z".to_owned(),
            body: RecordBody::Epoch(Epoch {
                number: 1,
                reason: "session start".to_owned(),
                model: "offline".to_owned(),
                system: vec![system.to_owned()],
                tools: vec![tool.clone()],
                source: "s".to_owned(),
            }),
        };
        let owner = Owner { session_id: "s", agent_id: None };
        for (system, parts) in [("short".to_owned(), 1), ("long ".repeat(2_000), 2)] {
            let row = encode(&epoch(&system), owner).unwrap();
            assert_eq!(row.parts.len(), parts);
            assert!(row.body.len() < 1_000, "{}", row.body.len());
            let mut line = Vec::new();
            let mut at = 0;
            for (place, _, part) in &row.parts {
                line.extend_from_slice(&row.body[at..*place as usize]);
                line.extend_from_slice(part);
                at = *place as usize;
            }
            line.extend_from_slice(&row.body[at..]);
            let Line::Record(read) = decode(&RecordRow { seq: 2, line, blob: None }).unwrap() else {
                panic!()
            };
            let RecordBody::Epoch(read) = read.body else { panic!() };
            assert_eq!(read.system, [system]);
        }
    }
}
