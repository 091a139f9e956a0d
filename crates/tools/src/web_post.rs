//! Posting JSON to an address that the person configured, such as a hook's. Nothing ambient goes with it, no redirect is
//! followed, and the answer is bounded.

use url::Url;

use crate::captured::CAPTURED_BYTES;
use crate::web_client::{builder, network, read_body};

/// Posts `body` and answers with the status and the text of the answer. Dropping the future gives the request up.
///
/// # Errors
/// When the address cannot be used or reached, or the answer is longer than a MiB.
pub async fn post_json(
    url: &str,
    headers: &[(String, String)],
    body: Vec<u8>,
) -> Result<(u16, String), String> {
    let url = Url::parse(url).map_err(|error| format!("`{url}` is no address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{url}` is neither http nor https"));
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let client = builder().build().map_err(|error| error.to_string())?;
    let mut request = client.post(url).header("content-type", "application/json").body(body);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = request.send().await.map_err(|error| network(&host, &error).to_string())?;
    let status = response.status().as_u16();
    let bytes = read_body(response, &host, CAPTURED_BYTES).await.map_err(|error| error.to_string())?;
    Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
}
