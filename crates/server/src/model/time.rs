//! Times: microseconds since 1970 in rows, RFC 3339 in UTC on the wire.

use jiff::Timestamp;

/// A moment in microseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// The present moment.
    #[must_use]
    pub fn now() -> Self {
        Self(Timestamp::now().as_microsecond())
    }

    /// Reads RFC 3339 with any offset.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<Timestamp>().ok().map(|time| Self(time.as_microsecond()))
    }

    /// This much later.
    #[must_use]
    pub fn after(self, milliseconds: i64) -> Self {
        Self(self.0.saturating_add(milliseconds.saturating_mul(1000)))
    }

    /// Milliseconds from `earlier` to this moment; 0 when it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0) / 1000).unwrap_or(0)
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn milliseconds(self) -> u64 {
        self.since(Self(0))
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = Timestamp::from_microsecond(self.0).unwrap_or_default();
        write!(out, "{}", time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
    }
}

impl serde::Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc_and_read_with_any_offset() {
        let time = Time::parse("2026-01-02T03:04:05.678901+02:00").unwrap();
        assert_eq!(time.to_string(), "2026-01-02T01:04:05.678901Z");
        assert_eq!(Time::parse(&time.to_string()), Some(time));
        assert_eq!(Time::parse("2026-01-02T01:04:05.678901999Z"), Some(time), "nine digits");
        assert_eq!(Time::parse("yesterday"), None);
        assert_eq!(Time(5_000).since(Time(9_000)), 0);
        assert_eq!(Time(9_999).since(Time(5_000)), 4);
    }
}
