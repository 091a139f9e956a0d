//! Which names the server answers to, and which pages may call it. A browser that was tricked into calling a server on its own
//! machine sends the attacker's name.

use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use url::Url;

use super::errors::ApiError;

/// Which names and pages are accepted.
#[derive(Debug, Clone, Default)]
pub struct HostRules {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl HostRules {
    /// Loopback names, the name of the public address, and these.
    #[must_use]
    pub fn new(public_url: Option<&Url>, hosts: &[String], origins: &[String]) -> Self {
        let public = public_url.and_then(|url| url.host_str().map(str::to_ascii_lowercase));
        let hosts = hosts.iter().map(|host| host.to_ascii_lowercase()).chain(public).collect();
        let origins =
            origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect();
        Self { hosts, origins }
    }

    /// The origin that may read the answer, when the request is of a page.
    pub(super) fn check(
        &self,
        headers: &HeaderMap,
        authority: Option<&str>,
    ) -> Result<Option<String>, ApiError> {
        let host = headers.get(HOST).map(|value| value.to_str().unwrap_or("\0")).or(authority);
        let host = host.ok_or_else(|| ApiError::invalid("The header `Host` is required."))?;
        if headers.get_all(HOST).iter().count() > 1 || !self.is_known(host) {
            let message = format!(
                "The server does not answer to the name `{}`. The operator adds names with `--public-url` or `--allow-host`.",
                host.escape_default().take(100).collect::<String>()
            );
            return Err(ApiError::forbidden(message));
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(None) };
        let origin = origin.to_str().unwrap_or("\0").to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return Ok(Some(origin));
        }
        Err(ApiError::forbidden(
            "Pages of this origin may not call the server. The operator adds them with `--allow-origin`.",
        ))
    }

    fn is_known(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let name = name.to_ascii_lowercase();
        let loopback = name == "localhost"
            || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        loopback || self.hosts.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(host: &str, origin: Option<&str>) -> Result<Option<String>, ApiError> {
        let public: Url = "https://agents.example.com/base".parse().unwrap();
        let rules = HostRules::new(
            Some(&public),
            &["Box.lan".to_owned()],
            &["https://console.example.com/".to_owned()],
        );
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        rules.check(&headers, None)
    }

    #[test]
    fn the_server_answers_to_its_own_names() {
        for host in [
            "localhost",
            "localhost:8400",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:8400",
            "agents.example.com",
            "box.LAN:80",
        ] {
            assert_eq!(check(host, None), Ok(None), "{host}");
        }
        for host in ["evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com", "", "[::2]", "10.0.0.1"]
        {
            assert_eq!(check(host, None).unwrap_err().kind, "permission_error", "{host}");
        }
    }

    #[test]
    fn only_listed_pages_may_call() {
        let listed = check("localhost", Some("https://console.example.com"));
        assert_eq!(listed, Ok(Some("https://console.example.com".to_owned())));
        for origin in
            ["https://evil.com", "null", "http://localhost:8400", "https://console.example.com.evil.com"]
        {
            assert!(check("localhost", Some(origin)).is_err(), "{origin}");
        }
    }
}
