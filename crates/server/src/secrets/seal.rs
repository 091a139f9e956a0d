//! Sealing: ChaCha20-Poly1305 with a random nonce. The first byte says which generation of the key was used.

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// The bytes of a key.
pub(super) const KEY_LENGTH: usize = 32;

/// Sealed bytes.
pub type Sealed = Vec<u8>;

/// Bytes that cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The system gave no random bytes.
    #[error("the system has no random bytes")]
    Random,
    /// The key is not the one that sealed them, or they were changed or moved.
    #[error("sealed data cannot be opened: the master key is another one, or the data was changed")]
    Unreadable,
}

impl SealError {
    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Random => "secrets_random",
            Self::Unreadable => "secrets_unreadable",
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Random => "check the operating system's source of random numbers",
            Self::Unreadable => "start the server with the master key that it was first started with",
        }
    }
}

/// Random bytes.
pub(super) fn random<const N: usize>() -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SealError::Random)?;
    Ok(bytes)
}

fn cipher(key: &[u8; KEY_LENGTH]) -> Result<LessSafeKey, SealError> {
    UnboundKey::new(&CHACHA20_POLY1305, key).map(LessSafeKey::new).map_err(|_| SealError::Unreadable)
}

/// Seals bytes for a place.
pub(super) fn seal(
    key: &[u8; KEY_LENGTH],
    generation: u8,
    place: &str,
    content: &[u8],
) -> Result<Sealed, SealError> {
    let nonce: [u8; NONCE_LEN] = random()?;
    let mut sealed = content.to_vec();
    let nonce_value = Nonce::assume_unique_for_key(nonce);
    cipher(key)?
        .seal_in_place_append_tag(nonce_value, Aad::from(place.as_bytes()), &mut sealed)
        .map_err(|_| SealError::Unreadable)?;
    let mut out = Vec::with_capacity(1 + NONCE_LEN + sealed.len());
    out.push(generation);
    out.extend_from_slice(&nonce);
    out.extend_from_slice(&sealed);
    Ok(out)
}

/// The generation of the key that sealed bytes need.
pub(super) fn generation(sealed: &[u8]) -> Option<u8> {
    sealed.first().copied()
}

/// Opens bytes that were sealed for a place.
pub(super) fn open(key: &[u8; KEY_LENGTH], place: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
    let (nonce, content) =
        sealed.get(1..).and_then(|rest| rest.split_at_checked(NONCE_LEN)).ok_or(SealError::Unreadable)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Unreadable)?;
    let mut content = content.to_vec();
    let opened = cipher(key)?.open_in_place(nonce, Aad::from(place.as_bytes()), &mut content);
    opened.map(|bytes| bytes.to_vec()).map_err(|_| SealError::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_opens_and_only_in_the_same_place() {
        let (key, other) = ([1; KEY_LENGTH], [2; KEY_LENGTH]);
        let sealed = seal(&key, 3, "tenant/table/row", b"secret").unwrap();
        assert_eq!(generation(&sealed), Some(3));
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(open(&key, "tenant/table/row", &sealed).unwrap(), b"secret");
        assert_eq!(open(&other, "tenant/table/row", &sealed), Err(SealError::Unreadable));
        assert_eq!(open(&key, "tenant/table/other", &sealed), Err(SealError::Unreadable));
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(open(&key, "tenant/table/row", &changed), Err(SealError::Unreadable));
        for short in [&[][..], &[1][..], &sealed[..5]] {
            assert_eq!(open(&key, "tenant/table/row", short), Err(SealError::Unreadable));
        }
        assert_ne!(seal(&key, 3, "p", b"secret").unwrap(), seal(&key, 3, "p", b"secret").unwrap());
    }
}
