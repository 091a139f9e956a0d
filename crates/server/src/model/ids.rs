//! Names of things on the wire: a prefix and 32 hexadecimal digits. Those of resources are 128 random bits; those of events are
//! UUIDs of version 7, because they can be reached through their session alone and carry the time they were made at.

use std::fmt;

use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};

/// The bytes of an id.
pub type RawId = [u8; 16];

/// 128 random bits.
#[must_use]
pub fn random() -> RawId {
    let mut bytes = [0; 16];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => bytes,
        // The system's own way to random bytes does not fail once it has worked; UUIDs take another one.
        Err(_) => uuid::Uuid::new_v4().into_bytes(),
    }
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The bytes of 32 lower-case hexadecimal digits.
fn unhex(text: &str) -> Option<RawId> {
    let text = text.as_bytes();
    if text.len() != 32 {
        return None;
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Declares the id of one kind of thing.
macro_rules! ids {
    ($($(#[$documentation:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$documentation])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub RawId);

        impl $name {
            /// What such an id begins with.
            pub const PREFIX: &'static str = $prefix;

            /// Reads an id as the server writes it.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                text.strip_prefix(Self::PREFIX).and_then(unhex).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(Self::PREFIX)?;
                out.write_str(&hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, out)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not such an ID"))
            }
        }
    )*};
}

ids! {
    /// An agent.
    AgentId = "agent_";
    /// An environment.
    EnvironmentId = "env_";
    /// A session.
    SessionId = "sess_";
    /// An event of a session.
    EventId = "evt_";
    /// A file.
    FileId = "file_";
    /// A skill.
    SkillId = "skill_";
    /// A version of a skill.
    SkillVersionId = "skillver_";
    /// A thread of a session: the session itself, or an agent that it started.
    ThreadId = "sthr_";
    /// A memory store.
    MemoryStoreId = "memstore_";
    /// A memory.
    MemoryId = "mem_";
    /// A version of a memory.
    MemoryVersionId = "memver_";
    /// A vault.
    VaultId = "vlt_";
    /// A credential of a vault.
    CredentialId = "vcrd_";
    /// A resource of a session: a file, a repository.
    ResourceId = "sesrsc_";
    /// A deployment.
    DeploymentId = "depl_";
    /// A run of a deployment.
    DeploymentRunId = "drun_";
    /// What a session works towards.
    OutcomeId = "outc_";
    /// An endpoint that gets notices.
    WebhookEndpointId = "whep_";
    /// Something that endpoints get a notice about.
    WebhookEventId = "whe_";
    /// A notice on its way to an endpoint.
    DeliveryId = "whd_";
    /// A session of a self-hosted environment that waits for a worker, or has one.
    WorkId = "work_";
    /// One run of the server process.
    NodeId = "node_";
    /// A tenant.
    TenantId = "tenant_";
}

macro_rules! random_ids {
    ($($name:ident)*) => {$(
        impl $name {
            /// A new one.
            #[must_use]
            pub fn random() -> Self {
                Self(random())
            }
        }
    )*};
}

random_ids! { AgentId EnvironmentId SessionId FileId SkillId SkillVersionId MemoryStoreId MemoryId MemoryVersionId VaultId CredentialId ResourceId DeploymentId DeploymentRunId OutcomeId WebhookEndpointId WorkId NodeId TenantId }

impl ThreadId {
    /// The thread of a session itself.
    #[must_use]
    pub fn primary(session: SessionId) -> Self {
        Self(session.0)
    }

    /// The thread of an agent, by the runtime's id of it.
    #[must_use]
    pub fn of_agent(agent: &str) -> Option<Self> {
        Self::parse(&format!("sthr_{agent}"))
    }

    /// The runtime's id of the agent that runs in it.
    #[must_use]
    pub fn agent(self) -> String {
        hex(&self.0)
    }
}

impl EventId {
    /// The id of an event that is made now.
    #[must_use]
    pub fn now() -> Self {
        Self(uuid::Uuid::now_v7().into_bytes())
    }

    /// The id of an event that others refer to. It is made from where the event comes from and nothing else, so that a later
    /// process that folds the same log knows it without looking it up.
    #[must_use]
    pub fn of_record(session: SessionId, milliseconds: u64, place: &str) -> Self {
        let hash = Sha256::new().chain_update(session.0).chain_update(place).finalize();
        let mut random = [0; 10];
        random.copy_from_slice(&hash[..10]);
        Self(uuid::Builder::from_unix_timestamp_millis(milliseconds, &random).into_uuid().into_bytes())
    }

    /// The milliseconds since 1970 at which it was made; `None` when no server makes such an id.
    #[must_use]
    pub fn milliseconds(self) -> Option<u64> {
        let uuid = uuid::Uuid::from_bytes(self.0);
        if uuid.get_version_num() != 7 {
            return None;
        }
        let (seconds, nanoseconds) = uuid.get_timestamp()?.to_unix();
        Some(seconds * 1000 + u64::from(nanoseconds) / 1_000_000)
    }
}

impl WebhookEventId {
    /// The id of something that happens now.
    #[must_use]
    pub fn now() -> Self {
        Self(uuid::Uuid::now_v7().into_bytes())
    }
}

impl DeliveryId {
    /// The id of a delivery that is queued now.
    #[must_use]
    pub fn now() -> Self {
        Self(uuid::Uuid::now_v7().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_nothing_else_does() {
        let id = SessionId::random();
        assert_eq!(SessionId::parse(&id.to_string()), Some(id));
        let text = id.to_string();
        for wrong in [
            "",
            "sess_",
            &text[1..],
            &text[..36],
            &format!("{text}0"),
            &text.to_uppercase(),
            &text.replace("sess_", "agent_"),
            "sess_../../../../../../../../../../../",
            "sess_0000000000000000000000000000000g",
        ] {
            assert_eq!(SessionId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_id_of_a_record_depends_on_its_place_alone() {
        let session = SessionId([7; 16]);
        let one = EventId::of_record(session, 1_700_000_000_123, "call:5:0");
        assert_eq!(one, EventId::of_record(session, 1_700_000_000_123, "call:5:0"));
        assert_ne!(one, EventId::of_record(session, 1_700_000_000_123, "call:5:1"));
        assert_ne!(one, EventId::of_record(SessionId([8; 16]), 1_700_000_000_123, "call:5:0"));
        assert_eq!(one.milliseconds(), Some(1_700_000_000_123));
        assert_eq!(EventId([0; 16]).milliseconds(), None);
    }
}
