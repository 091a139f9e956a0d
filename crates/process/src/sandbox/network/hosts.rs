//! Which hosts a confined command may reach.
//!
//! A name is exactly that host, `*.name` its subdomains, `*` every host. Deny wins; an empty list is closed. A host that
//! only a pattern allows must have a public address: a name that leads into the local network is no way in.

use url::Host;

use crate::sandbox::error::SandboxError;

/// The hosts that may be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules {
    allowed: Vec<Pattern>,
    denied: Vec<Pattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Every,
    Exactly(Host),
    Below(String),
}

/// What the rules say about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Not reachable.
    Closed,
    /// Reachable at public addresses.
    Public,
    /// Named by itself: reachable at any address.
    Named,
}

impl HostRules {
    /// Reads the lists. An entry that is not a host is an error: it would silently forbid or allow nothing.
    pub fn new(allowed: &[String], denied: &[String]) -> Result<Self, SandboxError> {
        let read = |list: &[String], what: &'static str| {
            list.iter().map(|text| Pattern::parse(text, what)).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            allowed: read(allowed, "network.allowedDomains")?,
            denied: read(denied, "network.deniedDomains")?,
        })
    }

    /// True when nothing can be reached.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.allowed.is_empty()
    }

    pub(crate) fn verdict(&self, host: &Host) -> Verdict {
        if self.denied.iter().any(|pattern| pattern.covers(host)) {
            return Verdict::Closed;
        }
        let mut verdict = Verdict::Closed;
        for pattern in self.allowed.iter().filter(|pattern| pattern.covers(host)) {
            match pattern {
                Pattern::Exactly(_) => return Verdict::Named,
                Pattern::Every | Pattern::Below(_) => verdict = Verdict::Public,
            }
        }
        verdict
    }
}

impl Pattern {
    fn parse(text: &str, what: &'static str) -> Result<Self, SandboxError> {
        let fault = || SandboxError::Unenforceable {
            what,
            reason: format!("`{text}` is neither a host, nor `*.host`, nor `*`"),
        };
        if text == "*" {
            return Ok(Self::Every);
        }
        let (below, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
        match (below, parse_host(name).ok_or_else(fault)?) {
            (false, host) => Ok(Self::Exactly(host)),
            (true, Host::Domain(name)) => Ok(Self::Below(format!(".{name}"))),
            (true, Host::Ipv4(_) | Host::Ipv6(_)) => Err(fault()),
        }
    }

    fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Every, _) => true,
            (Self::Exactly(own), host) => own == host,
            (Self::Below(end), Host::Domain(name)) => name.ends_with(end.as_str()),
            (Self::Below(_), Host::Ipv4(_) | Host::Ipv6(_)) => false,
        }
    }
}

/// A host as everything after this knows it: lower-case, in ASCII, without a final dot, addresses as addresses.
pub(crate) fn parse_host(text: &str) -> Option<Host> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let host = Host::parse(text).ok()?;
    match &host {
        Host::Domain(name) if name.is_empty() || name.contains(['*', '%', '/', '@', ' ']) => None,
        Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_) => Some(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allowed: &[&str], denied: &[&str]) -> HostRules {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        HostRules::new(&own(allowed), &own(denied)).unwrap()
    }

    fn verdict(rules: &HostRules, host: &str) -> Verdict {
        rules.verdict(&parse_host(host).unwrap())
    }

    #[test]
    fn hosts_are_matched_whole_and_deny_wins() {
        let rules = rules(&["example.org", "*.example.net", "10.0.0.1"], &["bad.example.net"]);
        assert_eq!(verdict(&rules, "EXAMPLE.org."), Verdict::Named);
        assert_eq!(verdict(&rules, "a.example.org"), Verdict::Closed);
        assert_eq!(verdict(&rules, "badexample.org"), Verdict::Closed);
        assert_eq!(verdict(&rules, "a.b.example.net"), Verdict::Public);
        assert_eq!(verdict(&rules, "example.net"), Verdict::Closed);
        assert_eq!(verdict(&rules, "bad.example.net"), Verdict::Closed);
        assert_eq!(verdict(&rules, "0xa.1"), Verdict::Named, "another spelling of 10.0.0.1");
        assert_eq!(verdict(&rules, "10.0.0.2"), Verdict::Closed);
        assert_eq!(verdict(&HostRules::default(), "example.org"), Verdict::Closed);
    }

    #[test]
    fn entries_that_are_no_hosts_are_refused() {
        for text in ["", "*.", "a*.org", "https://example.org", "*.10.0.0.1", "a b", "user@host"] {
            assert!(HostRules::new(&[text.to_owned()], &[]).is_err(), "{text}");
        }
    }
}
