//! Image models: over the images endpoint of OpenAI and of servers that speak the same, from a playbook, and the built-in
//! one. One request is one attempt; what may pass by itself is tried again by the policy of all models.
//!
//! `response_format` and `output_format` are wishes of ours that some servers do not know: a server that names one of
//! them in a 400 is asked again without it, and later requests leave it out.

mod answer;
mod offline;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use ::http::HeaderValue;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::StreamExt;
use qoder_core::images::{ImageFailure, ImageModel, ImageReply, ImageRequest, InputImage};
use qoder_types::{ModelFailure, ModelFailureClass};
use reqwest::Client;
use serde_json::{Map, Value, json};

use self::answer::{Refusal, read_answer, refusal};
use self::offline::{OfflineImages, ScriptedImages};
use crate::calls::{Attempts, RetryPolicy, Verdict};
use crate::error::ModelConfigError;
use crate::exchange::Timeouts;
use crate::failure::{self, AttemptFailure, failure};
use crate::resolve::{find_route, named, with_options};
use crate::routes::{HttpClients, Route};
use crate::settings::catalog::{self, cost};
use crate::settings::{ModelOptions, Price};

/// The largest answer that is read: ten large pictures in base64.
const LARGEST_ANSWER: usize = 160 << 20;
/// What we wish for by ourselves, and servers may not know.
const WISHES: [&str; 2] = ["response_format", "output_format"];
/// What a request has by itself, and parameters cannot replace.
const OWN_FIELDS: [&str; 4] = ["model", "prompt", "n", "image"];

/// The image model of this name. No connection is opened; a playbook is read.
///
/// # Errors
/// When the name means nothing here, or its provider cannot be used.
pub fn resolve_image(options: &ModelOptions, name: &str) -> Result<Arc<dyn ImageModel>, ModelConfigError> {
    let (name, tier) = named(options, Some(name));
    let policy = RetryPolicy::new(options);
    if name == "offline" {
        return Ok(Arc::new(OfflineImages::new(catalog::lookup(options, "offline").price)));
    }
    if let Some(path) = name.strip_prefix("scripted:") {
        let entry = catalog::lookup(options, "scripted");
        return Ok(Arc::new(ScriptedImages::open(Path::new(path), entry, policy)?));
    }
    let route = image_route(options, name, tier)?
        .filter(|_| !name.starts_with("replay:"))
        .ok_or_else(|| ModelConfigError::NoProvider { model: name.to_owned() })?;
    let route = with_options(route, options)?;
    let price = catalog::lookup(options, &route.model).price;
    let environment = qoder_http::variables()
        .filter_map(|name| Some((name.to_owned(), options.variable(name)?.to_owned())))
        .collect();
    Ok(Arc::new(HttpImages(Arc::new(ImageEndpoint {
        route,
        price,
        policy,
        timeouts: Timeouts::new(options),
        environment,
        clients: options.clients.clone(),
        client: OnceLock::new(),
        unknown: Mutex::default(),
    }))))
}

/// The route for a name. One that names no provider goes to an OpenAI provider where there is one beside Anthropic, which
/// makes no pictures.
fn image_route(
    options: &ModelOptions,
    name: &str,
    tier: Option<&str>,
) -> Result<Option<Route>, ModelConfigError> {
    let found = find_route(options, name, tier)?;
    let is_unlikely = found.as_ref().is_some_and(|route| route.known_provider() == "anthropic");
    if is_unlikely && options.base_url.is_none() && !name.contains('/') {
        let other = find_route(options, &format!("openai/{name}"), None).ok().flatten();
        return Ok(other.filter(|route| route.model == name).or(found));
    }
    Ok(found)
}

/// What pictures cost.
#[expect(clippy::cast_precision_loss, reason = "no reply has 2^52 pictures")]
pub(crate) fn priced(price: Option<Price>, mut reply: ImageReply) -> ImageReply {
    let each = price.map_or(0.0, |price| price.image);
    reply.cost_usd = cost(price, &reply.usage) + each * reply.images.len() as f64;
    reply
}

/// Milliseconds since `started`.
pub(crate) fn elapsed_ms(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// An image model behind HTTP.
struct HttpImages(Arc<ImageEndpoint>);

struct ImageEndpoint {
    route: Route,
    price: Option<Price>,
    policy: RetryPolicy,
    timeouts: Timeouts,
    environment: BTreeMap<String, String>,
    clients: HttpClients,
    client: OnceLock<Client>,
    /// Wishes that the server does not know.
    unknown: Mutex<BTreeSet<&'static str>>,
}

impl ImageModel for HttpImages {
    fn make(&self, request: ImageRequest) -> BoxFuture<'static, Result<ImageReply, ImageFailure>> {
        let endpoint = Arc::clone(&self.0);
        Box::pin(async move { endpoint.make(&request).await })
    }
}

/// How one attempt failed.
pub(crate) enum Failed {
    /// For good.
    Final(ImageFailure),
    /// Perhaps not the next time.
    Attempt(AttemptFailure),
    /// The server does not know this wish.
    Unknown(&'static str),
}

impl<T: Into<AttemptFailure>> From<T> for Failed {
    fn from(failed: T) -> Self {
        Self::Attempt(failed.into())
    }
}

impl ImageEndpoint {
    async fn make(&self, request: &ImageRequest) -> Result<ImageReply, ImageFailure> {
        let started = Instant::now();
        let mut attempts = Attempts::default();
        loop {
            let total = self.timeouts.total();
            let failed = match tokio::time::timeout(total, self.exchange(request)).await {
                Ok(Ok(mut reply)) => {
                    reply.duration_api_ms = elapsed_ms(started);
                    return Ok(priced(self.price, reply));
                }
                Ok(Err(Failed::Final(failed))) => return Err(failed),
                Ok(Err(Failed::Unknown(field))) => {
                    self.unknown().insert(field);
                    continue;
                }
                Ok(Err(Failed::Attempt(failed))) => failed,
                Err(_) => self.took_too_long().into(),
            };
            match self.policy.verdict(&mut attempts, failed) {
                Verdict::Wait(delay, _) => tokio::time::sleep(delay).await,
                Verdict::GiveUp(mut failure) => {
                    failure.message = self.route.mask(&failure.message);
                    return Err(failure.into());
                }
            }
        }
    }

    fn unknown(&self) -> std::sync::MutexGuard<'_, BTreeSet<&'static str>> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn took_too_long(&self) -> ModelFailure {
        failure(
            ModelFailureClass::Timeout,
            format!(
                "the call to {} took longer than {} ms in all (QODER_API_TIMEOUT_MS)",
                self.route.place(),
                self.timeouts.total().as_millis()
            ),
        )
    }

    fn client(&self) -> Result<Client, ModelFailure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let built = self.clients.get(&self.route, &self.environment)?;
        Ok(self.client.get_or_init(|| built).clone())
    }

    async fn exchange(&self, request: &ImageRequest) -> Result<ImageReply, Failed> {
        let fields = self.fields(request);
        let (path, kind, body) = match &request.input {
            None => ("images/generations", "application/json".to_owned(), json_body(&fields)),
            Some(input) => {
                let boundary = format!("qoder-{}", uuid::Uuid::new_v4().simple());
                let kind = format!("multipart/form-data; boundary={boundary}");
                ("images/edits", kind, form_body(&boundary, &fields, input))
            }
        };
        let mut headers = self.route.image_headers();
        if let Ok(kind) = HeaderValue::from_str(&kind) {
            headers.insert("content-type", kind);
        }
        let sent = self.client()?.post(self.route.below_version(path)).headers(headers).body(body).send();
        let idle = self.timeouts.idle();
        let response = match tokio::time::timeout(idle, sent).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failure::from_sending(&error, &self.route).into()),
            Err(_) => return Err(crate::exchange::body::silence(&self.route, idle).into()),
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = self.collect(response).await?;
        let wished: Vec<&'static str> =
            WISHES.into_iter().filter(|wish| fields.contains_key(*wish)).collect();
        if let Some(refused) = refusal(status, &text, request.size.as_deref(), &wished) {
            return Err(match refused {
                Refusal::Final(failed) => Failed::Final(self.without_keys(failed)),
                Refusal::Unknown(field) => Failed::Unknown(field),
            });
        }
        if !(200..300).contains(&status) {
            let body = String::from_utf8_lossy(&text);
            return Err(failure::from_status(status, &headers, &body, &self.route).into());
        }
        let mut reply = read_answer(&text, request.count, &self.route.place())
            .map_err(|failed| Failed::Final(self.without_keys(failed)))?;
        if reply.model.is_empty() {
            reply.model.clone_from(&self.route.model);
        }
        self.route.known_provider().clone_into(&mut reply.provider);
        Ok(reply)
    }

    /// The body of an answer, up to a limit.
    async fn collect(&self, response: reqwest::Response) -> Result<Vec<u8>, Failed> {
        let mut body = response.bytes_stream();
        let mut all = Vec::new();
        loop {
            let piece = match tokio::time::timeout(self.timeouts.idle(), body.next()).await {
                Ok(Some(Ok(piece))) => piece,
                Ok(Some(Err(error))) => return Err(failure::from_network(&error, &self.route).into()),
                Ok(None) => return Ok(all),
                Err(_) => {
                    return Err(crate::exchange::body::silence(&self.route, self.timeouts.idle()).into());
                }
            };
            if all.len() + piece.len() > LARGEST_ANSWER {
                return Err(Failed::Final(ImageFailure::TooLarge(format!(
                    "the answer of {} has more than {} MiB",
                    self.route.place(),
                    LARGEST_ANSWER >> 20
                ))));
            }
            all.extend_from_slice(&piece);
        }
    }

    /// A failure without any key of the route.
    fn without_keys(&self, failed: ImageFailure) -> ImageFailure {
        let mask = |text: String| self.route.mask(&text);
        match failed {
            ImageFailure::NoModel(text) => ImageFailure::NoModel(mask(text)),
            ImageFailure::Refused(text) => ImageFailure::Refused(mask(text)),
            ImageFailure::Quota(text) => ImageFailure::Quota(mask(text)),
            ImageFailure::BadSize(text) => ImageFailure::BadSize(mask(text)),
            ImageFailure::NotAnImage(text) => ImageFailure::NotAnImage(mask(text)),
            ImageFailure::TooLarge(text) => ImageFailure::TooLarge(mask(text)),
            ImageFailure::Model(failure) => {
                ImageFailure::Model(ModelFailure { message: mask(failure.message), ..failure })
            }
        }
    }

    /// The fields of a request, without the input picture.
    fn fields(&self, request: &ImageRequest) -> Map<String, Value> {
        let mut fields = Map::new();
        let own = request.parameters.iter().filter(|(name, _)| !OWN_FIELDS.contains(&name.as_str()));
        fields.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        fields.insert("model".to_owned(), json!(self.route.model));
        fields.insert("prompt".to_owned(), json!(request.prompt));
        fields.insert("n".to_owned(), json!(request.count));
        for (name, value) in [("size", &request.size), ("quality", &request.quality)] {
            if let Some(value) = value {
                fields.insert(name.to_owned(), json!(value));
            }
        }
        // These models always answer with the bytes and take the format of the file; the others the other way round.
        let names_format = is_gpt_image(&self.route.model);
        let (wish, value) =
            if names_format { ("output_format", request.format) } else { ("response_format", "b64_json") };
        let is_usual = names_format && request.format == "png";
        if !is_usual && !fields.contains_key(wish) && !self.unknown().contains(wish) {
            fields.insert(wish.to_owned(), json!(value));
        }
        fields
    }
}

fn is_gpt_image(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    name.starts_with("gpt-image") || name.starts_with("chatgpt-image")
}

fn json_body(fields: &Map<String, Value>) -> Bytes {
    Value::Object(fields.clone()).to_string().into()
}

/// The body of a form with a file. No value can hold the boundary, which is random.
fn form_body(boundary: &str, fields: &Map<String, Value>, input: &InputImage) -> Bytes {
    let mut body = Vec::with_capacity(input.bytes.len() + 2_048);
    let mut add = |head: String, value: &[u8]| {
        body.extend_from_slice(
            format!("--{boundary}\r\ncontent-disposition: form-data; {head}\r\n\r\n").as_bytes(),
        );
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    };
    for (name, value) in fields {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        add(format!("name=\"{}\"", quoted(name)), text.as_bytes());
    }
    let head = format!(
        "name=\"image\"; filename=\"{}\"\r\ncontent-type: {}",
        quoted(&input.file_name),
        input.media_type
    );
    add(head, &input.bytes);
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body.into()
}

/// A name inside quotes of a form, escaped as browsers do.
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_holds_its_fields_and_the_file() {
        let fields = Map::from_iter([("n".to_owned(), json!(2)), ("prompt".to_owned(), json!("a\r\n--b"))]);
        let input = InputImage {
            file_name: "a\"\r\nb.png".to_owned(),
            media_type: "image/png".to_owned(),
            bytes: Bytes::from_static(b"\x89PNG"),
        };
        let body = form_body("edge", &fields, &input);
        let text = String::from_utf8_lossy(&body);
        assert!(
            text.starts_with("--edge\r\ncontent-disposition: form-data; name=\"n\"\r\n\r\n2\r\n--edge\r\n")
        );
        assert!(
            text.contains("name=\"image\"; filename=\"a%22%0D%0Ab.png\"\r\ncontent-type: image/png\r\n\r\n")
        );
        assert!(text.ends_with("PNG\r\n--edge--\r\n"), "{text}");
    }

    #[test]
    fn a_name_without_a_provider_goes_where_pictures_are_made() {
        let place = |variables: &[&str], name: &str| {
            let mut options = ModelOptions::default();
            options.environment.extend(variables.iter().map(|name| ((*name).to_owned(), "key".to_owned())));
            let route = image_route(&options, name, None).unwrap();
            route.map(|route| (route.place(), route.model))
        };
        let (openai, anthropic) = ("api.openai.com:443".to_owned(), "api.anthropic.com:443".to_owned());
        let both = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];
        assert_eq!(place(&both, "dall-e-3"), Some((openai.clone(), "dall-e-3".to_owned())));
        assert_eq!(place(&both, "openai/dall-e-3"), Some((openai, "dall-e-3".to_owned())));
        assert_eq!(place(&both[..1], "dall-e-3"), Some((anthropic.clone(), "dall-e-3".to_owned())));
        assert_eq!(place(&both, "anthropic/x"), Some((anthropic, "x".to_owned())));
        assert_eq!(place(&[], "dall-e-3"), None);
    }

    #[test]
    fn models_that_name_their_format_are_known_behind_a_gateway_too() {
        assert!(is_gpt_image("gpt-image-1") && is_gpt_image("openai/gpt-image-1-mini"));
        assert!(!is_gpt_image("dall-e-3") && !is_gpt_image("flux"));
    }
}
