//! Ids of calls as a wire protocol accepts them. An endpoint gets the ids that it gave; one that came from elsewhere and
//! that the protocol would refuse is replaced by a digest of it, which is the same in every request.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// What a protocol accepts as the id of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepted {
    longest: usize,
    /// Besides letters, digits, `_` and `-`.
    further: &'static [u8],
}

impl Accepted {
    pub(crate) const ANTHROPIC: Self = Self { longest: 64, further: b"" };
    pub(crate) const CHAT: Self = Self { longest: 40, further: b".:/|@#+=" };
    pub(crate) const RESPONSES: Self = Self { longest: 64, further: b"" };

    /// The id as it is sent.
    pub(crate) fn id(self, id: &str) -> Cow<'_, str> {
        let fits =
            |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || self.further.contains(&byte);
        if !id.is_empty() && id.len() <= self.longest && id.bytes().all(fits) {
            return Cow::Borrowed(id);
        }
        let digest: String = Sha256::digest(id).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Cow::Owned(format!("call_{digest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_a_protocol_refuses_are_replaced_by_a_stable_one() {
        let long = "x".repeat(65);
        for (accepted, kept, replaced) in [
            (Accepted::ANTHROPIC, "toolu_01-A", vec!["functions.Bash:0", "", "é", "a b", long.as_str()]),
            (Accepted::RESPONSES, "call_abc", vec!["functions.Bash:0", "", long.as_str()]),
            (Accepted::CHAT, "functions.Bash:0", vec!["", "a b", "é", &long[..41]]),
        ] {
            assert_eq!(accepted.id(kept), kept);
            for id in replaced {
                let sent = accepted.id(id);
                assert_ne!(sent, id);
                assert_eq!(sent, accepted.id(id));
                assert_eq!(accepted.id(&sent), sent, "it is accepted itself");
            }
        }
        assert_ne!(Accepted::CHAT.id("a b"), Accepted::CHAT.id("a c"));
    }
}
