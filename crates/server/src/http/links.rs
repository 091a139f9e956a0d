//! Links to files that need no token: they carry their end and a signature, and nothing else opens the file.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::HOST;
use url::Url;

use crate::model::ids::FileId;
use crate::model::time::Time;
use crate::secrets::ClusterKey;

/// How long a link works.
const LIFETIME_MS: i64 = 60 * 60 * 1000;

/// What links begin with.
#[derive(Debug, Clone)]
pub struct LinkBase {
    /// The address that clients use, when the operator names it.
    pub public_url: Option<Url>,
    /// True when clients come by TLS, here or at a proxy.
    pub is_tls: bool,
}

impl LinkBase {
    /// The server's address as the one who asks knows it. The edge has checked the name.
    fn of(&self, headers: &HeaderMap) -> String {
        if let Some(url) = &self.public_url {
            return url.as_str().trim_end_matches('/').to_owned();
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        format!("{}://{host}", if self.is_tls { "https" } else { "http" })
    }
}

/// Makes and checks links.
#[derive(Debug, Clone)]
pub struct FileLinks {
    key: ClusterKey,
    base: LinkBase,
}

impl FileLinks {
    /// Signed with this key.
    #[must_use]
    pub fn new(key: ClusterKey, base: LinkBase) -> Self {
        Self { key, base }
    }

    fn signed(file: FileId, until: &str) -> String {
        format!("file-link/{file}/{until}")
    }

    /// A link to a file, and when it ends.
    #[must_use]
    pub fn make(&self, file: FileId, headers: &HeaderMap) -> (String, Time) {
        let end = Time::now().after(LIFETIME_MS);
        // Whole seconds are enough and keep the link short.
        let seconds = end.0 / 1_000_000;
        let until = seconds.to_string();
        let signature = URL_SAFE_NO_PAD.encode(self.key.hash(&Self::signed(file, &until)));
        (format!("{}/files/{file}/{until}.{signature}", self.base.of(headers)), Time(seconds * 1_000_000))
    }

    /// True while a ticket opens a file.
    #[must_use]
    pub fn opens(&self, file: FileId, ticket: &str) -> bool {
        let Some((until, signature)) = ticket.split_once('.') else { return false };
        let (Ok(seconds), Ok(signature)) = (until.parse::<i64>(), URL_SAFE_NO_PAD.decode(signature)) else {
            return false;
        };
        self.key.fits(&Self::signed(file, until), &signature)
            && Time(seconds.saturating_mul(1_000_000)) > Time::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{Keys, MasterKey, MasterSource};

    #[test]
    fn only_the_ticket_of_a_file_opens_it_until_its_end() {
        let keys = Keys::new(MasterKey::load(&MasterSource::Variable("ab".repeat(32))).unwrap());
        let key = keys.cluster_key(&keys.new_cluster_key().unwrap()).unwrap();
        let links = FileLinks::new(key.clone(), LinkBase { public_url: None, is_tls: false });
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "box:8400".parse().unwrap());
        let (file, other) = (FileId([1; 16]), FileId([2; 16]));
        let (link, end) = links.make(file, &headers);
        assert!(end > Time::now() && link.starts_with(&format!("http://box:8400/files/{file}/")), "{link}");
        let ticket = link.rsplit('/').next().unwrap();
        assert!(links.opens(file, ticket) && !links.opens(other, ticket));
        let (until, signature) = ticket.split_once('.').unwrap();
        let later = format!("{}.{signature}", until.parse::<i64>().unwrap() + 1);
        let past = URL_SAFE_NO_PAD.encode(key.hash(&FileLinks::signed(file, "5")));
        for wrong in [&later, &format!("0{ticket}"), &format!("5.{past}"), "", ".", signature] {
            assert!(!links.opens(file, wrong), "{wrong}");
        }
        let public =
            LinkBase { public_url: Some("https://agents.example.com/".parse().unwrap()), is_tls: false };
        assert!(
            FileLinks::new(key, public)
                .make(file, &headers)
                .0
                .starts_with("https://agents.example.com/files/")
        );
    }
}
