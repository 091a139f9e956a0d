//! How long sessions are kept, as the settings say it.

use std::time::Duration;

use qoder_config::settings::{Settings, age};
use qoder_store::retention::RetentionSettings;
pub use qoder_store::retention::{OldSession, Pruned, Retention};

struct Configured<'a>(&'a Settings);

impl RetentionSettings for Configured<'_> {
    fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some()
    }

    fn age(&self, key: &str) -> Option<Duration> {
        self.0.text(key).and_then(age)
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        self.0.flag(key, default)
    }
}

/// What the settings say, with the defaults where they say nothing.
#[must_use]
pub fn configured(settings: &Settings) -> Retention {
    Retention::of(&Configured(settings))
}

/// What the settings say, when they ask for sessions to be deleted at all.
#[must_use]
pub fn asked(settings: &Settings) -> Option<Retention> {
    Retention::asked(&Configured(settings))
}
