//! Where other nodes reach this one: as the operator says, else where it listens. A node that listens on every address names the one
//! by which it reaches the database.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

use crate::config::Config;
use crate::store::postgres::DatabaseUrl;

/// The address of a node for its row.
pub(super) async fn of_node(config: &Config, listening: SocketAddr) -> String {
    if let Some(address) = &config.node_address {
        return address.clone();
    }
    if !listening.ip().is_unspecified() {
        return listening.to_string();
    }
    let server = config.database_url.as_ref().and_then(DatabaseUrl::server);
    let Some((host, port)) = server else { return listening.to_string() };
    let own = toward(&host, port, listening.is_ipv6()).await;
    own.map_or_else(|| listening.to_string(), |ip| SocketAddr::new(ip, listening.port()).to_string())
}

/// This machine's address on the way to a host. Nothing is sent.
async fn toward(host: &str, port: u16, may_be_v6: bool) -> Option<IpAddr> {
    for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
        if any.is_ipv6() && !may_be_v6 {
            continue;
        }
        let Ok(socket) = UdpSocket::bind(SocketAddr::new(any, 0)).await else { continue };
        if socket.connect((host, port)).await.is_ok() {
            return socket.local_addr().ok().map(|address| address.ip());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::ServeOptions;

    #[tokio::test]
    async fn a_node_names_an_address_that_others_can_use() {
        let config = |options: ServeOptions| Config::load(options, BTreeMap::new()).unwrap();
        let url = Some("postgres://u@127.0.0.1:1/d".to_owned());
        let any = config(ServeOptions { database_url: url.clone(), ..ServeOptions::default() });
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(of_node(&any, at("0.0.0.0:8400")).await, "127.0.0.1:8400");
        assert_eq!(of_node(&any, at("10.1.2.3:8400")).await, "10.1.2.3:8400");
        let named = ServeOptions { node_address: Some("pod-1:80".to_owned()), ..ServeOptions::default() };
        assert_eq!(of_node(&config(named), at("0.0.0.0:8400")).await, "pod-1:80");
    }
}
