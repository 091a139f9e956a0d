//! Parts of records that repeat from session to session: a row names each by where it belongs and by its hash.

use std::collections::HashMap;

use super::error::DbError;
use super::port::NewRecord;

/// The bytes of one reference to a part: where it belongs and its hash.
const REFERENCE: usize = 4 + 32;

/// The references that the row of a record keeps.
pub(super) fn references(record: &NewRecord) -> Option<Vec<u8>> {
    let mut references = Vec::with_capacity(record.parts.len() * REFERENCE);
    for (place, hash, _) in &record.parts {
        references.extend_from_slice(&place.to_be_bytes());
        references.extend_from_slice(hash);
    }
    (!references.is_empty()).then_some(references)
}

/// The hashes of the parts that references name.
pub(super) fn hashes(references: &[u8]) -> impl Iterator<Item = &[u8]> {
    references.chunks_exact(REFERENCE).map(|reference| &reference[4..])
}

/// Puts parts back where they belong.
pub(super) fn assemble(
    body: &[u8],
    references: &[u8],
    known: &HashMap<Vec<u8>, Vec<u8>>,
) -> Result<Vec<u8>, DbError> {
    let mut line = Vec::with_capacity(body.len());
    let mut at = 0;
    for reference in references.chunks_exact(REFERENCE) {
        let (place, hash) = reference.split_at(4);
        let place = place.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        let before = body.get(at..place).ok_or_else(|| DbError::Corrupt("a part has no place".to_owned()))?;
        line.extend_from_slice(before);
        at = place;
        let part = known.get(hash).ok_or_else(|| DbError::Corrupt("a part is missing".to_owned()))?;
        line.extend_from_slice(part);
    }
    line.extend_from_slice(body.get(at..).unwrap_or_default());
    Ok(line)
}
