//! Ids of calls and names of tools as a protocol and a server accept them. An endpoint gets the ids that it gave; one that
//! came from elsewhere and that would be refused is replaced by a digest of it, which is the same in every request.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::profile::NameForm;

/// What a protocol accepts; the profile of a server may accept less.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepted {
    longest: usize,
    /// Besides letters and digits.
    further: &'static str,
}

impl Accepted {
    pub(crate) const ANTHROPIC: Self = Self { longest: 64, further: "_-" };
    pub(crate) const CHAT: Self = Self { longest: 40, further: "_-.:/|@#+=" };
    pub(crate) const RESPONSES: Self = Self { longest: 64, further: "_-" };
    /// Names of tools, which all protocols treat alike.
    pub(crate) const TOOL: Self = Self { longest: 128, further: "_-" };

    /// The id as it is sent.
    pub(crate) fn id(self, id: &str, form: NameForm) -> Cow<'_, str> {
        let fits =
            |c: char| c.is_ascii_alphanumeric() || (form.further.contains(c) && self.further.contains(c));
        let longest = form.longest.min(self.longest).max(1);
        let is_long_enough = id.len() >= form.shortest.min(longest);
        if !id.is_empty() && is_long_enough && id.len() <= longest && id.chars().all(fits) {
            return Cow::Borrowed(id);
        }
        let digest: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
        // Where there is room for it the id says what it is.
        let prefix = if longest >= 37 && fits('_') { "call_" } else { "" };
        let length = (longest - prefix.len()).min(32);
        Cow::Owned(format!("{prefix}{}", digest.get(..length).unwrap_or(&digest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::profiles;

    fn form(profile: &str) -> NameForm {
        profiles().iter().find(|row| row.name == profile).unwrap().call_ids
    }

    #[test]
    fn ids_that_are_refused_are_replaced_by_a_stable_one() {
        let long = "x".repeat(65);
        for (accepted, profile, kept, replaced) in [
            (Accepted::ANTHROPIC, "anthropic", "toolu_01-A", vec!["functions.Bash:0", "", "é", "a b", &long]),
            (Accepted::RESPONSES, "openai", "call_abc", vec!["functions.Bash:0", "", &long]),
            (Accepted::CHAT, "kimi", "functions.Bash:0", vec!["", "a b", "é", &long[..41]]),
            (
                Accepted::CHAT,
                "mistral",
                "aB3xK9mP2",
                vec!["call_8a2f", "", "aB3xK9mP", "aB3xK9mP2x", "aB3x_9mP2"],
            ),
        ] {
            let form = form(profile);
            assert_eq!(accepted.id(kept, form), kept);
            for id in replaced {
                let sent = accepted.id(id, form);
                assert_ne!(sent, id);
                assert_eq!(sent, accepted.id(id, form));
                assert_eq!(accepted.id(&sent, form), sent, "it is accepted itself");
                assert!((form.shortest..=form.longest).contains(&sent.len()), "{sent}");
            }
        }
        let form = form("kimi");
        assert_ne!(Accepted::CHAT.id("a b", form), Accepted::CHAT.id("a c", form));
    }
}
