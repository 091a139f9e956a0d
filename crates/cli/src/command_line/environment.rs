//! The environment of the program, as text.

use std::collections::BTreeMap;

/// The environment. Names or values that are not UTF-8 cannot be meant for us.
pub fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
