//! Image models that need no network: `offline` draws a plain picture that depends on the prompt alone, and
//! `scripted:PATH` answers by the replies of a playbook whose purpose is `image_gen`.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::future::BoxFuture;
use image::{ImageFormat, Rgb, RgbImage};
use qoder_core::images::{ImageFailure, ImageModel, ImageReply, ImageRequest, MadeImage};
use qoder_core::ports::{ModelRequest, PromptMessage, Thinking};
use qoder_types::content::join_text;
use qoder_types::{Message, Purpose, Usage};

use super::answer::{Refusal, decode, refusal};
use super::{elapsed_ms, priced};
use crate::calls::{Attempts, Endpoint, RetryPolicy, Verdict};
use crate::error::ModelConfigError;
use crate::scripted::Scripted;
use crate::settings::Price;
use crate::settings::catalog::Entry;
use crate::wires::reply::Sink;

/// The side of a picture when the request has no size.
const USUAL_SIDE: u32 = 256;
/// The longest side that is drawn.
const LONGEST_SIDE: u32 = 4_096;

/// Draws plain pictures.
pub(crate) struct OfflineImages {
    price: Option<Price>,
}

impl OfflineImages {
    pub(crate) fn new(price: Option<Price>) -> Self {
        Self { price }
    }
}

impl ImageModel for OfflineImages {
    fn make(&self, request: ImageRequest) -> BoxFuture<'static, Result<ImageReply, ImageFailure>> {
        let price = self.price;
        Box::pin(async move {
            let images = (0..request.count).map(|number| draw(&request, number)).collect::<Result<_, _>>()?;
            Ok(priced(price, reply("offline", images, Usage::default())))
        })
    }
}

/// Answers from a playbook.
pub(crate) struct ScriptedImages {
    playbook: Arc<Scripted>,
    price: Option<Price>,
    policy: RetryPolicy,
}

impl ScriptedImages {
    /// Reads the playbook.
    pub(crate) fn open(path: &Path, entry: Entry, policy: RetryPolicy) -> Result<Self, ModelConfigError> {
        Ok(Self { playbook: Arc::new(Scripted::open(path, entry)?), price: entry.price, policy })
    }
}

impl ImageModel for ScriptedImages {
    fn make(&self, request: ImageRequest) -> BoxFuture<'static, Result<ImageReply, ImageFailure>> {
        let (playbook, price, policy) = (Arc::clone(&self.playbook), self.price, self.policy);
        Box::pin(async move {
            let (started, mut attempts) = (Instant::now(), Attempts::default());
            let question = question(&request);
            loop {
                let failed = match playbook.attempt(&question, &Sink::default()).await {
                    Ok(decoded) => {
                        let images = scripted(&request, &join_text(&decoded.content))?;
                        let mut reply = reply("scripted", images, decoded.usage);
                        reply.duration_api_ms = elapsed_ms(started);
                        return Ok(priced(price, reply));
                    }
                    Err(failed) => failed,
                };
                let status = failed.failure.status.unwrap_or(0);
                let words = failed.failure.message.clone();
                if let Some(Refusal::Final(failed)) =
                    refusal(status, words.as_bytes(), request.size.as_deref(), &[])
                {
                    return Err(failed);
                }
                match policy.verdict(&mut attempts, failed) {
                    Verdict::Wait(delay, _) => tokio::time::sleep(delay).await,
                    Verdict::GiveUp(failure) => return Err(failure.into()),
                }
            }
        })
    }
}

/// The request as a playbook matches it.
fn question(request: &ImageRequest) -> ModelRequest {
    ModelRequest {
        purpose: Purpose::ImageGen,
        session_id: request.session_id.clone(),
        system: Arc::from([]),
        tools: Arc::from([]),
        messages: vec![Arc::new(PromptMessage::new(Message::user(request.prompt.clone())))],
        max_output_tokens: None,
        thinking: Thinking::Default,
        effort: None,
        parameters: BTreeMap::new(),
        partial: false,
    }
}

/// What the text of a reply stands for: an address, a `data:` address, or a drawn picture for any other.
fn scripted(request: &ImageRequest, text: &str) -> Result<Vec<MadeImage>, ImageFailure> {
    let text = text.trim();
    let made = |number| {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(MadeImage::Url(text.to_owned()));
        }
        if text.starts_with("data:") {
            return decode(text).map_err(|why| ImageFailure::NotAnImage(format!("the playbook {why}")));
        }
        draw(request, number)
    };
    (0..request.count).map(made).collect()
}

fn reply(model: &str, images: Vec<MadeImage>, usage: Usage) -> ImageReply {
    ImageReply {
        model: model.to_owned(),
        provider: model.to_owned(),
        images,
        revised_prompt: None,
        usage,
        cost_usd: 0.0,
        duration_api_ms: 0,
    }
}

/// A picture of one colour with a frame of another, both from the prompt.
fn draw(request: &ImageRequest, number: u32) -> Result<MadeImage, ImageFailure> {
    let (width, height) = match request.size.as_deref() {
        None | Some("auto") => (USUAL_SIDE, USUAL_SIDE),
        Some(size) => parse_size(size).ok_or_else(|| {
            ImageFailure::BadSize(format!("`{size}`; both sides have 1 to {LONGEST_SIDE} pixels"))
        })?,
    };
    let mut hash = std::hash::DefaultHasher::new();
    hash.write(request.prompt.as_bytes());
    hash.write_u32(number);
    let [red, green, blue, frame, ..] = hash.finish().to_le_bytes();
    let edge = (width.min(height) / 16).max(1);
    let picture = RgbImage::from_fn(width, height, |x, y| {
        let inside = (edge..width.saturating_sub(edge)).contains(&x)
            && (edge..height.saturating_sub(edge)).contains(&y);
        if inside { Rgb([red, green, blue]) } else { Rgb([frame; 3]) }
    });
    let mut bytes = Vec::new();
    picture
        .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
        .map_err(|error| ImageFailure::NotAnImage(error.to_string()))?;
    Ok(MadeImage::Bytes(Bytes::from(bytes)))
}

/// Reads `WIDTHxHEIGHT`.
fn parse_size(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once(['x', 'X'])?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=LONGEST_SIDE).contains(side));
    Some((side(width)?, side(height)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(size: Option<&str>) -> ImageRequest {
        ImageRequest {
            prompt: "a house".to_owned(),
            size: size.map(str::to_owned),
            count: 1,
            format: "png",
            ..ImageRequest::default()
        }
    }

    #[test]
    fn pictures_have_the_size_that_was_asked_for_and_depend_on_the_prompt_alone() {
        let first = draw(&request(Some("64x32")), 0).unwrap();
        assert_eq!(first, draw(&request(Some("64x32")), 0).unwrap());
        assert_ne!(first, draw(&request(Some("64x32")), 1).unwrap());
        let MadeImage::Bytes(bytes) = first else { panic!("bytes") };
        let picture = image::load_from_memory(&bytes).unwrap();
        assert_eq!((picture.width(), picture.height()), (64, 32));
        for bad in ["0x5", "9999x1", "x", "12", "-1x2"] {
            assert_eq!(draw(&request(Some(bad)), 0).unwrap_err().code(), "image_bad_size", "{bad}");
        }
    }
}
