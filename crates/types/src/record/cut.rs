//! The record of a cut: the conversation continues from an earlier entry, and what came after it is no longer part of it.
//! Nothing is removed from the log; the fold leaves out what the cut names. What was spent, allowed and done
//! meanwhile stays as it is.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::content::ContentBlock;

/// The conversation continues from an earlier entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cut {
    /// The last entry that stays; none when the conversation begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// How many messages of the prompt stay.
    pub messages: u64,
    /// Results of the last reply's calls that stay, when not all of its calls had one there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ContentBlock>,
    /// What asked for it, for people.
    pub by: Actor,
}
