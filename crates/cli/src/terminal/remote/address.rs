//! The address of a session on a server: `http://HOST:PORT/v1/sessions/ID`, as the server's API has it.

use std::collections::BTreeMap;

use url::Url;

use crate::exit::Fault;

/// Variables that hold the token, as the clients of the API read them.
const TOKENS: [&str; 2] = ["QODER_ACCESS_TOKEN", "QODER_PAT"];

/// Where a session is, and the token that opens it.
#[derive(Debug, Clone)]
pub struct Address {
    /// The address of the session.
    pub session: Url,
    /// The session's ID.
    pub id: String,
    /// The token of the person.
    pub token: String,
}

/// True for an address, as against the ID of a session on this machine.
pub fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

impl Address {
    /// Reads the address of a session. The token is that of the environment.
    pub fn read(text: &str, environment: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let example = "an example is `qodercli attach http://127.0.0.1:8080/v1/sessions/ID`";
        let mut session = Url::parse(text)
            .map_err(|error| Fault::input(format!("`{text}` is not an address: {error}"), example))?;
        let path = session.path().trim_end_matches('/').to_owned();
        let (before, id) = path.rsplit_once('/').unwrap_or_default();
        let names_session = before.ends_with("/sessions") && !id.is_empty();
        if !names_session || session.host_str().is_none() {
            return Err(Fault::input(format!("`{text}` does not name a session"), example));
        }
        if !session.username().is_empty() || session.password().is_some() || session.query().is_some() {
            return Err(Fault::input(
                "the address of a session holds neither a password nor a query",
                "set the token in QODER_ACCESS_TOKEN",
            ));
        }
        let id = id.to_owned();
        session.set_path(&path);
        session.set_fragment(None);
        let token = TOKENS.iter().find_map(|name| environment.get(*name).filter(|token| !token.is_empty()));
        let token = token.cloned().ok_or_else(|| {
            Fault::input(
                "there is no token for the server",
                "set QODER_ACCESS_TOKEN; `qodercli serve token create --user NAME` makes one",
            )
        })?;
        Ok(Self { session, id, token })
    }

    /// An address below that of the session.
    pub fn below(&self, rest: &[&str]) -> Url {
        let mut url = self.session.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(rest);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> BTreeMap<String, String> {
        BTreeMap::from([("QODER_ACCESS_TOKEN".to_owned(), "pt-secret".to_owned())])
    }

    #[test]
    fn the_addresses_of_both_prefixes_name_a_session() {
        for text in [
            "http://127.0.0.1:8080/v1/sessions/sess_1",
            "https://agents.example/api/v1/cloud/sessions/sess_1/",
            "http://[::1]:80/behind/a/proxy/v1/sessions/sess_1#top",
        ] {
            let address = Address::read(text, &environment()).unwrap();
            assert_eq!((address.id.as_str(), address.token.as_str()), ("sess_1", "pt-secret"), "{text}");
            assert!(address.below(&["events"]).path().ends_with("/sessions/sess_1/events"), "{text}");
        }
    }

    #[test]
    fn what_names_no_session_or_has_no_token_is_refused() {
        for text in [
            "http://127.0.0.1:8080",
            "http://127.0.0.1:8080/v1/sessions",
            "http://127.0.0.1:8080/v1/sessions/",
            "http://127.0.0.1:8080/v1/agents/agent_1",
            "http://me:word@127.0.0.1/v1/sessions/sess_1",
            "http://127.0.0.1/v1/sessions/sess_1?token=x",
            "http://",
        ] {
            assert!(Address::read(text, &environment()).is_err(), "{text}");
        }
        let fault = Address::read("http://127.0.0.1/v1/sessions/sess_1", &BTreeMap::new()).unwrap_err();
        assert!(fault.hint.contains("QODER_ACCESS_TOKEN"), "{}", fault.hint);
    }
}
