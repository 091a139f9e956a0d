//! Which internet addresses and host names are public.
//!
//! A request to a place that is not public could reach this machine, its network or its cloud's secrets, so it needs a
//! rule of its own. Addresses are judged as numbers, with the IPv4 address inside every IPv6 form that carries one;
//! names are judged only where the name alone says it, and otherwise by the addresses they resolve to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the spelling of a host says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKind {
    /// A public literal address, or a name that may be public: its addresses decide.
    PublicName,
    /// A literal address that is not public.
    NonPublicLiteral,
    /// A name that never stands for a public place, such as `localhost`.
    NonPublicName,
}

/// Ends of names that are not used on the public internet.
const PRIVATE_ENDS: [&str; 11] = [
    "localhost",
    "local",
    "internal",
    "localdomain",
    "lan",
    "intranet",
    "private",
    "corp",
    "home",
    "home.arpa",
    "test",
];

/// Names of services that hand out credentials and do not end as above.
const METADATA_NAMES: [&str; 2] = ["metadata.goog", "metadata.tencentyun.com"];

/// A service of a cloud that answers on an address of the public range.
const PUBLIC_LOOKING_METADATA: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// The host as hosts are compared: in lower case, without a dot at the end and without brackets.
#[must_use]
pub fn normal_host(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host);
    let host = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    host.to_ascii_lowercase()
}

/// Whether `host` is what `pattern` names: exactly that host, or for `*.h` a subdomain of `h`.
#[must_use]
pub fn host_matches(pattern: &str, host: &str) -> bool {
    let (pattern, host) = (normal_host(pattern), normal_host(host));
    match pattern.strip_prefix("*.") {
        Some(parent) => is_below(&host, parent),
        None => !host.is_empty() && host == pattern,
    }
}

/// What the spelling of a host says. `host` is what a URL parser made of it; numbers in other spellings are a parser's
/// business.
#[must_use]
pub fn host_is_public_name(host: &str) -> HostKind {
    let host = normal_host(host);
    if let Ok(address) = host.parse::<IpAddr>() {
        return if is_public(address) { HostKind::PublicName } else { HostKind::NonPublicLiteral };
    }
    let private_end = PRIVATE_ENDS.iter().any(|end| host == *end || is_below(&host, end));
    // Names without a dot are found by the search list of the machine, which leads into its own network.
    if private_end || METADATA_NAMES.contains(&host.as_str()) || !host.contains('.') {
        return HostKind::NonPublicName;
    }
    HostKind::PublicName
}

fn is_below(host: &str, parent: &str) -> bool {
    !parent.is_empty()
        && host
            .strip_suffix(parent)
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|label| !label.is_empty())
}

/// Whether an address belongs to the public internet.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let carrier = first == 100 && (64..128).contains(&second);
    let protocol_assignments = first == 192 && second == 0 && third == 0;
    let relay_anycast = first == 192 && second == 88 && third == 99;
    let benchmarking = first == 198 && (18..20).contains(&second);
    let this_network = first == 0;
    let multicast_and_reserved = first >= 224;
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || carrier
        || protocol_assignments
        || relay_anycast
        || benchmarking
        || this_network
        || multicast_and_reserved
        || address == PUBLIC_LOOKING_METADATA)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // Mapped (::ffff:a.b.c.d), translated (::ffff:0:a.b.c.d) and compatible (::a.b.c.d) forms; the last one covers
        // the unspecified and the loopback address, whose IPv4 part is not public.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0, 0, 0, 0, 0, 0, high, low] => embedded(high, low),
        // NAT64 by its well-known prefix; its local-use prefix is never public.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, ..] => false,
        // 6to4 carries the address of the relay's client.
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, ORCHID, benchmarking and the other special assignments below 2001::/23.
        [0x2001, second, ..] if second < 0x200 => false,
        // Documentation.
        [0x2001, 0xdb8, ..] => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // ISATAP carries an IPv4 address behind a fixed mark.
        [first, _, _, _, 0 | 0x200, 0x5efe, high, low] => is_global_unicast(first) && embedded(high, low),
        [first, ..] => is_global_unicast(first),
    }
}

/// Only 2000::/3 is handed out for the public internet: unique-local, link-local, site-local and multicast addresses
/// lie elsewhere.
fn is_global_unicast(first: u16) -> bool {
    first & 0xe000 == 0x2000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2a00::5efe:10.0.0.1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "4000::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn addresses_that_are_public() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::101:101",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "2001:200::1",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
        ] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn hosts_by_their_spelling() {
        for host in
            ["example.com", "EXAMPLE.com.", "8.8.8.8", "[2606:4700::1]", "locals.example", "xlocal.net"]
        {
            assert_eq!(host_is_public_name(host), HostKind::PublicName, "{host}");
        }
        for host in ["127.0.0.1", "[::1]", "[::ffff:a00:1]", "10.1.2.3", "169.254.169.254"] {
            assert_eq!(host_is_public_name(host), HostKind::NonPublicLiteral, "{host}");
        }
        for host in [
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "printer.local",
            "metadata.google.internal",
            "metadata",
            "metadata.goog.",
            "router.home.arpa",
            "intranet",
            "",
        ] {
            assert_eq!(host_is_public_name(host), HostKind::NonPublicName, "{host}");
        }
    }

    #[test]
    fn patterns_name_a_host_or_its_subdomains() {
        assert!(host_matches("Example.com", "example.com."));
        assert!(host_matches("::1", "[::1]"));
        assert!(!host_matches("example.com", "a.example.com"));
        assert!(host_matches("*.example.com", "a.b.example.com"));
        for (pattern, host) in
            [("*.example.com", "example.com"), ("*.example.com", "badexample.com"), ("", ""), ("*.", "x.")]
        {
            assert!(!host_matches(pattern, host), "{pattern} {host}");
        }
    }
}
