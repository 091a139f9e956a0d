//! Hosts: what `domain:` rules name and what a URL leads to. A URL is parsed once, by the standard's parser; user part,
//! port and path never take part in a comparison.

use qoder_types::hosts::{HostKind, host_is_public_name};
use url::{Host, Url};

/// The host part of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DomainPattern {
    /// Exactly this host.
    Exact(String),
    /// Every subdomain of this host.
    Below(String),
    /// Every host.
    Any,
}

impl DomainPattern {
    /// Reads `domain:host` or `domain:*.host`; `None` when it names no host.
    pub(crate) fn parse(content: &str) -> Option<Self> {
        let host = content.strip_prefix("domain:")?.trim();
        if host == "*" {
            return Some(Self::Any);
        }
        let (below, host) = match host.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, host),
        };
        if host.contains('*') {
            return None;
        }
        let host = normal_host(&Url::parse(&format!("https://{host}/")).ok()?)?;
        Some(if below { Self::Below(host) } else { Self::Exact(host) })
    }

    /// True when the rule applies to `host`.
    pub(crate) fn covers(&self, host: &str) -> bool {
        match self {
            Self::Exact(name) => name == host,
            Self::Below(name) => {
                host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
            }
            Self::Any => true,
        }
    }

    /// True when the rule names this host or its domain, and not every host there is.
    pub(crate) fn names(&self, host: &str) -> bool {
        !matches!(self, Self::Any) && self.covers(host)
    }
}

/// Where a fetch leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A host, and whether it may be reached without a rule that names it.
    Host {
        /// Lower-cased, in ASCII, without a trailing dot.
        host: String,
        /// False for loopback, private and the like.
        public: bool,
    },
    /// The URL cannot be fetched, with the reason.
    Refused(&'static str),
}

/// Reads a URL.
pub(crate) fn target(text: &str) -> Target {
    let Ok(url) = Url::parse(text.trim()) else { return Target::Refused("the URL cannot be read") };
    if !matches!(url.scheme(), "http" | "https") {
        return Target::Refused("only http and https URLs are fetched");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Target::Refused("a URL with credentials in it is not fetched");
    }
    match normal_host(&url) {
        Some(host) => {
            let public = match host_is_public_name(&host) {
                HostKind::PublicName => true,
                HostKind::NonPublicLiteral | HostKind::NonPublicName => false,
            };
            Target::Host { host, public }
        }
        None => Target::Refused("the URL names no host"),
    }
}

fn normal_host(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_lowercase();
            (!name.is_empty()).then_some(name)
        }
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(address.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_a_host_or_its_subdomains() {
        let covers = |content: &str, host: &str| DomainPattern::parse(content).unwrap().covers(host);
        assert!(
            covers("domain:Example.com.", "example.com") && covers("domain:*.example.com", "a.b.example.com")
        );
        assert!(
            !covers("domain:example.com", "www.example.com")
                && !covers("domain:*.example.com", "example.com")
        );
        assert!(!covers("domain:*.example.com", "notexample.com") && covers("domain:127.0.0.1", "127.0.0.1"));
        assert!(covers("domain:bücher.example", "xn--bcher-kva.example"));
        for content in ["example.com", "domain:", "domain:a*b.c", "host:x"] {
            assert_eq!(DomainPattern::parse(content), None, "{content}");
        }
    }

    #[test]
    fn urls_are_read_by_the_standard() {
        let host = |text: &str| match target(text) {
            Target::Host { host, public } => (host, public),
            Target::Refused(why) => panic!("{text}: {why}"),
        };
        assert_eq!(host("https://Example.COM./x"), ("example.com".to_owned(), true));
        for text in
            ["http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/", "http://localhost:1/"]
        {
            assert!(!host(text).1, "{text}");
        }
        for text in
            ["ftp://x/", "file:///etc/passwd", "https://u:p@x/", "https://u@x/", "nonsense", "https://"]
        {
            assert!(matches!(target(text), Target::Refused(_)), "{text}");
        }
    }
}
