//! Posting JSON to an address that the person configured, such as a hook's. Nothing ambient goes with it, no redirect is
//! followed, and the answer is bounded.

use qoder_process::CAPTURED_BYTES;
use thiserror::Error;
use url::Url;

use crate::web::client::{builder, network, read_body};
use crate::web::error::WebError;

/// Why nothing was posted, or no answer came.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PostError {
    /// The address cannot be read.
    #[error("`{url}` is no address: {problem}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The address is of another protocol.
    #[error("`{url}` is neither http nor https")]
    Scheme {
        /// The address.
        url: String,
    },
    /// The request failed.
    #[error("{problem}")]
    Failed {
        /// What went wrong, and what to do.
        problem: String,
        /// The stable code.
        code: &'static str,
    },
}

impl PostError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Address { .. } => "post_address",
            Self::Scheme { .. } => "post_scheme",
            Self::Failed { code, .. } => code,
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Address { .. } | Self::Scheme { .. } => {
                "Give a complete URL such as https://example.com/hook."
            }
            Self::Failed { .. } => "Check that the host is reachable.",
        }
    }
}

impl From<WebError> for PostError {
    fn from(error: WebError) -> Self {
        Self::Failed { code: error.code(), problem: error.to_string() }
    }
}

/// For callers whose own error is a text.
impl From<PostError> for String {
    fn from(error: PostError) -> Self {
        error.to_string()
    }
}

/// Posts `body` and answers with the status and the text of the answer. Dropping the future gives the request up.
///
/// # Errors
/// When the address cannot be used or reached, or the answer is longer than a MiB.
pub async fn post_json(
    url: &str,
    headers: &[(String, String)],
    body: Vec<u8>,
) -> Result<(u16, String), PostError> {
    let url = Url::parse(url)
        .map_err(|error| PostError::Address { url: url.to_owned(), problem: error.to_string() })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(PostError::Scheme { url: url.to_string() });
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let client = builder()
        .build()
        .map_err(|error| PostError::Failed { problem: error.to_string(), code: "post_setup" })?;
    let mut request = client.post(url).header("content-type", "application/json").body(body);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = request.send().await.map_err(|error| PostError::from(network(&host, &error)))?;
    let status = response.status().as_u16();
    let bytes = read_body(response, &host, CAPTURED_BYTES).await.map_err(PostError::from)?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}
