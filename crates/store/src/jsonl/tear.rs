//! A record that was never completed, at the end of a log or before lines that other programs appended since: finding
//! where it ends, and taking it out. Its bytes are kept beside the log, and no byte of another program is touched.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use serde::Deserialize;

use super::Scan;
use crate::layout::SessionPaths;

/// How lines of other programs begin.
const START: &[u8] = br#"{"type":"#;
/// How far from its end a line is searched for one of another program.
const SEARCHED: usize = 1 << 20;
/// How many places are tried.
const TRIES: usize = 1_000;
/// How much is blanked in one write.
const PIECE: usize = 64 * 1024;

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow)]
    _kind: std::borrow::Cow<'a, str>,
    #[serde(rename = "sessionId", borrow)]
    _session_id: std::borrow::Cow<'a, str>,
    seq: Option<serde::de::IgnoredAny>,
}

/// Where the line of another program begins that was appended to a torn one. Parts of a record have a type too, but only
/// whole lines name their session.
pub(crate) fn foreign_suffix(line: &[u8]) -> Option<usize> {
    let from = line.len().saturating_sub(SEARCHED);
    let searched = line.get(from..)?;
    let places = memchr::memmem::rfind_iter(searched, START).take(TRIES).filter(|place| from + place > 0);
    let is_line = |place: &usize| {
        let suffix = searched.get(*place..).unwrap_or_default();
        serde_json::from_slice::<Head<'_>>(suffix).is_ok_and(|head| head.seq.is_none())
    };
    places.into_iter().find(is_line).map(|place| from + place)
}

/// Takes a torn record out of the log, keeping its bytes beside it, and closes a last line that has no newline. Answers
/// with the length of the log.
pub(super) fn repair(file: &mut File, paths: &SessionPaths, scan: &Scan) -> std::io::Result<u64> {
    let end = scan.intact + scan.torn + scan.after_tear;
    if scan.torn > 0 {
        keep(paths, scan)?;
        // Another program may append at any moment: only what is still the end may be cut off.
        if scan.after_tear == 0 && file.metadata()?.len() == end {
            file.set_len(scan.intact)?;
            return Ok(scan.intact);
        }
        blank(paths, scan)?;
    }
    if scan.open_end {
        file.write_all(b"\n")?;
        return Ok(end + 1);
    }
    Ok(end)
}

fn keep(paths: &SessionPaths, scan: &Scan) -> std::io::Result<()> {
    let mut tail = Vec::new();
    let mut reader = File::open(&paths.log)?;
    reader.seek(SeekFrom::Start(scan.intact))?;
    reader.take(scan.torn).read_to_end(&mut tail)?;
    let kept = paths.side.join(format!("torn-{}", scan.intact));
    let mut kept = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(kept)?;
    kept.write_all(&tail)
}

/// Makes a blank line of the torn bytes: what follows them stays where it is.
fn blank(paths: &SessionPaths, scan: &Scan) -> std::io::Result<()> {
    // Not the file that is open for appending, which writes at the end alone.
    let log = OpenOptions::new().write(true).open(&paths.log)?;
    let (mut at, last) = (scan.intact, scan.intact + scan.torn - 1);
    let blanks = [b' '; PIECE];
    while at < last {
        let length = usize::try_from(last - at).unwrap_or(PIECE).min(PIECE);
        log.write_all_at(&blanks[..length], at)?;
        at += length as u64;
    }
    log.write_all_at(b"\n", last)?;
    log.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = r#"{"type":"tag","tag":"a","sessionId":"s"}"#;

    #[test]
    fn a_line_of_another_program_is_found_behind_any_part_of_a_record() {
        let record = r#"{"type":"user","message":{"content":[{"type":"text","text":"a \"b\" {"}]},"sessionId":"s","seq":7,"v":1,"crc":"00000000"}"#;
        for cut in 1..=record.len() {
            let torn = &record[..cut];
            let joined = format!("{torn}{TAG}\n");
            assert_eq!(foreign_suffix(joined.as_bytes()), Some(cut), "{joined}");
            assert_eq!(foreign_suffix(torn.as_bytes()), None, "{torn}");
        }
    }

    #[test]
    fn nested_types_of_another_program_do_not_hide_its_line() {
        let entry =
            r#"{"type":"assistant","sessionId":"s","message":{"content":[{"type":"text","text":"x"}]}}"#;
        let joined = format!(r#"{{"type":"epoch","system":["{entry}"#);
        assert_eq!(foreign_suffix(joined.as_bytes()), Some(joined.len() - entry.len()));
    }
}
