//! Words of profiles that come from settings. Each is kept once for the life of the process, so that a profile is a
//! plain value that is copied freely, whether it comes from the table or from settings.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer};

use super::{ErrorWords, Word, Wordings, Words};

static WORDS: Mutex<BTreeSet<Word>> = Mutex::new(BTreeSet::new());
static LISTS: Mutex<BTreeSet<Words>> = Mutex::new(BTreeSet::new());
static WORDINGS: Mutex<Vec<Wordings>> = Mutex::new(Vec::new());

/// This text as a word.
pub(crate) fn keep(text: &str) -> Word {
    let mut kept = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(word) = kept.get(text) {
        return word;
    }
    let word: Word = Box::leak(text.to_owned().into_boxed_str());
    kept.insert(word);
    word
}

/// These texts as words.
pub(crate) fn keep_all(texts: &[impl AsRef<str>]) -> Words {
    let words: Vec<Word> = texts.iter().map(|text| keep(text.as_ref())).collect();
    let mut kept = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(list) = kept.get(words.as_slice()) {
        return list;
    }
    let list: Words = Box::leak(words.into_boxed_slice());
    kept.insert(list);
    list
}

pub(super) fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
    String::deserialize(deserializer).map(|text| keep(&text))
}

pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
    Vec::<String>::deserialize(deserializer).map(|texts| keep_all(&texts))
}

pub(super) fn wordings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Wordings, D::Error> {
    let list = Vec::<ErrorWords>::deserialize(deserializer)?;
    let mut kept = WORDINGS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.iter().find(|known| **known == list.as_slice()) {
        return Ok(known);
    }
    let list: Wordings = Box::leak(list.into_boxed_slice());
    kept.push(list);
    Ok(list)
}
