//! Why something on the internet could not be fetched. The text is for the model and ends with what to do.

use thiserror::Error;

/// Why a fetch or a search failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum WebError {
    #[error("The URL cannot be read: {problem}. Give a complete URL such as https://example.com/page.")]
    Unreadable { problem: String },
    #[error("The URL is longer than {limit} characters. Give a shorter one.")]
    TooLong { limit: usize },
    #[error("Only http and https can be fetched, not `{scheme}`. Use Read for files.")]
    Scheme { scheme: String },
    #[error("The URL contains a user name or password, which is refused. Give it without.")]
    Credentials,
    #[error(
        "{host} is not a public host (this machine, a private network or a metadata service), which is refused. A \
         person can allow it with the permission rule WebFetch(domain:{host})."
    )]
    NotPublic { host: String },
    #[error("The host {host} was not found: {problem}. Check its spelling.")]
    Unknown { host: String, problem: String },
    #[error("{host} redirected more than {limit} times. Try the address of the page itself.")]
    Redirects { host: String, limit: usize },
    #[error("{host} did not answer completely within {seconds} seconds. Try again later.")]
    TimedOut { host: String, seconds: u64 },
    #[error("The request to {host} failed: {problem}. Try again later.")]
    Network { host: String, problem: String },
    #[error("The answer of {host} is larger than {limit} bytes and was not read. Look for a smaller page.")]
    TooLarge { host: String, limit: usize },
    #[error(
        "The answer of {host} is packed as `{encoding}` although that was not asked for. Use another page."
    )]
    Packed { host: String, encoding: String },
    #[error("The answer has the type {media_type} ({bytes} bytes), which cannot be shown as text.{hint}")]
    Unsupported { media_type: String, bytes: usize, hint: &'static str },
    #[error("The page could not be turned into text: {problem}")]
    Damaged { problem: String },
    #[error("HTTP cannot be set up on this machine: {problem}. Tell the person.")]
    Setup { problem: String },
}

impl WebError {
    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "web_url_unreadable",
            Self::TooLong { .. } => "web_url_too_long",
            Self::Scheme { .. } => "web_scheme",
            Self::Credentials => "web_credentials",
            Self::NotPublic { .. } => "web_not_public",
            Self::Unknown { .. } => "web_host_unknown",
            Self::Redirects { .. } => "web_redirects",
            Self::TimedOut { .. } => "web_timeout",
            Self::Network { .. } => "web_network",
            Self::TooLarge { .. } => "web_too_large",
            Self::Packed { .. } => "web_packed",
            Self::Unsupported { .. } => "web_unsupported",
            Self::Damaged { .. } => "web_damaged",
            Self::Setup { .. } => "web_setup",
        }
    }
}
