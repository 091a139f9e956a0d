//! Clients for object stores: ours, so that certificates, proxies and TLS are those of every other connection.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use super::url::{Kind, ObjectStoreUrl};

/// How often a request is tried again, and for how long.
const RETRIES: usize = 4;
const RETRIED_FOR: Duration = Duration::from_secs(20);
/// A store that sends nothing for this long does not answer.
const QUIET: Duration = Duration::from_secs(20);
/// Variables that name a server other than the provider's.
const ENDPOINTS: [&str; 5] =
    ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_ENDPOINT", "GOOGLE_BASE_URL"];

/// Makes clients with the certificates and proxies of an environment.
#[derive(Debug)]
struct Connector {
    environment: BTreeMap<String, String>,
    /// Any address of the server, which decides whether a proxy is asked.
    server: Url,
}

impl Connector {
    fn new(environment: &BTreeMap<String, String>) -> Self {
        let named = ENDPOINTS.iter().find_map(|name| Url::parse(environment.get(*name)?).ok());
        let mut server = named.or_else(|| Url::parse("https://objects.invalid").ok());
        if let Some(url) = &mut server {
            // A client that may be redirected to TLS, such as one for credentials, needs certificates.
            let _ = url.set_scheme("https");
        }
        #[expect(clippy::expect_used, reason = "the fallback is an address")]
        let server = server.expect("an address");
        Self { environment: environment.clone(), server }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let fault =
            |problem: String| object_store::Error::Generic { store: "client", source: problem.into() };
        let builder = qoder_http::builder(&self.server, &self.environment);
        let builder = builder.map_err(|error| fault(error.to_string()))?;
        let allows_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let client = builder.https_only(!allows_http).read_timeout(QUIET).build();
        Ok(HttpClient::new(client.map_err(|error| fault(qoder_http::innermost(&error)))?))
    }
}

fn retries() -> RetryConfig {
    RetryConfig { max_retries: RETRIES, retry_timeout: RETRIED_FOR, ..RetryConfig::default() }
}

/// The variables of a provider, as its client reads them.
fn settings<'a, K: std::str::FromStr>(
    environment: &'a BTreeMap<String, String>,
    prefix: &'a str,
) -> impl Iterator<Item = (K, &'a String)> {
    let own = environment.iter().filter(move |(name, value)| name.starts_with(prefix) && !value.is_empty());
    own.filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
}

/// A store; nothing is sent yet.
pub(super) fn connect(
    url: &ObjectStoreUrl,
    environment: &BTreeMap<String, String>,
) -> Result<Arc<dyn ObjectStore>, object_store::Error> {
    let connector = Connector::new(environment);
    let text = url.url.as_str();
    Ok(match &url.kind {
        Kind::Folder(path) => {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|error| object_store::Error::Generic { store: "folder", source: error.into() })?;
            Arc::new(LocalFileSystem::new_with_prefix(path)?.with_fsync(true))
        }
        Kind::S3 => {
            let builder = AmazonS3Builder::new().with_url(text).with_http_connector(connector);
            let with = |builder: AmazonS3Builder, (key, value): (_, &String)| builder.with_config(key, value);
            Arc::new(settings(environment, "AWS_").fold(builder, with).with_retry(retries()).build()?)
        }
        Kind::Google => {
            let builder = GoogleCloudStorageBuilder::new().with_url(text).with_http_connector(connector);
            let with = |builder: GoogleCloudStorageBuilder, (key, value): (_, &String)| {
                builder.with_config(key, value)
            };
            Arc::new(settings(environment, "GOOGLE_").fold(builder, with).with_retry(retries()).build()?)
        }
        Kind::Azure => {
            let builder = MicrosoftAzureBuilder::new().with_url(text).with_http_connector(connector);
            let with =
                |builder: MicrosoftAzureBuilder, (key, value): (_, &String)| builder.with_config(key, value);
            Arc::new(settings(environment, "AZURE_").fold(builder, with).with_retry(retries()).build()?)
        }
    })
}

/// The values in an environment that must not be shown.
pub(super) fn secrets(environment: &BTreeMap<String, String>) -> Vec<String> {
    let is_provider =
        |name: &str| ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix));
    let is_secret =
        |name: &str| ["KEY", "SECRET", "TOKEN", "SAS", "PASSWORD"].iter().any(|part| name.contains(part));
    let found =
        environment.iter().filter(|(name, value)| is_provider(name) && is_secret(name) && value.len() >= 8);
    found.map(|(_, value)| value.clone()).collect()
}
