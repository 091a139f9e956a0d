//! The address of a client: that of the connection, or what a trusted proxy says.

use std::net::IpAddr;

use http::HeaderMap;

/// The address of the client behind a connection. Of a chain of proxies, the last address counts that is not a trusted one.
pub(super) fn of_client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpAddr]) -> IpAddr {
    if !trusted.contains(&peer) {
        return peer;
    }
    let listed = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let chain: Vec<IpAddr> =
        listed.flat_map(|value| value.split(',')).filter_map(|part| part.trim().parse().ok()).collect();
    chain.into_iter().rev().find(|address| !trusted.contains(address)).unwrap_or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let (proxy, client): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "9.9.9.9".parse().unwrap());
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "1.1.1.1, 9.9.9.9, 10.0.0.1".parse().unwrap());
        assert_eq!(of_client(client, &headers, &[proxy]), client, "a client cannot choose its address");
        assert_eq!(of_client(proxy, &headers, &[proxy]), client);
        assert_eq!(of_client(proxy, &HeaderMap::new(), &[proxy]), proxy);
    }
}
