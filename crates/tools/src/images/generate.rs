//! The ImageGen tool: asks an image model for pictures and writes them to files.
//!
//! Everything that can be refused is refused before the model is paid: fields, names of files, files that exist. The
//! files are declared as edits and the input picture as a read, so that the rules about files hold as for Write and
//! Read; what the model costs is put on record as soon as it has answered.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use image::ImageFormat;
use qoder_core::images::{ImageFailure, ImageModel, ImageReply, ImageRequest, InputImage, MadeImage};
use qoder_core::ports::{Access, ToolContext, ToolOutcome};
use qoder_process::output::first_characters;
use qoder_types::record::SideCalled;
use qoder_types::{CallOutcome, Purpose, ReplayClass};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ToolSettings;
use crate::call::declared::{BuiltIn, Facts};
use crate::call::refusal::{Refusal, interrupted};
use crate::call::schema::{Whole, path_field};
use crate::files::open;
use crate::files::paths;
use crate::files::read::picture;
use crate::images::files::{Target, refused, store, targets};
use crate::web::hosts::{DeniedHosts, Hosts, read_url};
use crate::web::request::{Answer, fetch};

/// The most pictures of one call.
const MOST: u64 = 10;
/// The longest prompt, in characters.
const LONGEST_PROMPT: usize = 32_000;
/// The largest input picture.
const LARGEST_INPUT: u64 = 25 * 1024 * 1024;

/// Makes pictures with an image model and writes them to files, or changes a picture that exists.
///
/// - Call it when the person wants a picture: it costs money and takes up to some minutes. Describe in `prompt` what the
///   picture shows, its style and its composition.
/// - `file_path` should be absolute and ends in .png, .jpg, .jpeg or .webp; missing directories are created. With `count`
///   above 1 the files get a number: `cat.png` becomes `cat-1.png`, `cat-2.png` and so on.
/// - A file that exists is only replaced with `overwrite`.
/// - With `image_path` the prompt says how that picture changes; the picture itself stays as it is.
/// - You are shown the pictures, scaled down where they are large.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ImageGenInput {
    /// What the picture shows, or how the picture at `image_path` changes.
    prompt: String,
    /// Absolute path of the file to write, ending in .png, .jpg, .jpeg or .webp.
    file_path: String,
    /// Width and height in pixels, such as 1024x1024 or 1536x1024, or auto. Default: the image model's own.
    size: Option<String>,
    /// How many pictures, 1 to 10. Default 1.
    count: Option<Whole>,
    /// A word of the image model, such as low, medium or high. Default: the image model's own.
    quality: Option<String>,
    /// Absolute path of a PNG, JPEG or WebP picture to change.
    image_path: Option<String>,
    /// Replace files that exist. Default false.
    overwrite: Option<bool>,
}

/// See [`ImageGenInput`].
pub(crate) struct ImageGenTool {
    model: Option<Arc<dyn ImageModel>>,
    hosts: Hosts,
    denied: DeniedHosts,
    limit: Duration,
}

impl ImageGenTool {
    pub(crate) fn new(settings: &ToolSettings) -> Self {
        Self {
            model: settings.image_model.clone(),
            hosts: Hosts { private: settings.private_hosts.clone(), lookup: settings.name_lookup.clone() },
            denied: settings.denied_hosts.clone(),
            limit: Duration::from_millis(settings.web_timeout_ms),
        }
    }
}

impl BuiltIn for ImageGenTool {
    const NAME: &'static str = "ImageGen";
    const FACTS: Facts =
        Facts { read_only: false, destructive: true, open_world: true, replay: ReplayClass::Effectful };
    type Input = ImageGenInput;

    fn is_offered(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.is_known())
    }

    fn learn(&self, session_id: &str) -> Option<futures::future::BoxFuture<'static, ()>> {
        self.model.as_ref()?.learn(session_id)
    }

    fn accesses(&self, input: &Value) -> Vec<Access> {
        let Some(path) = path_field(input, "file_path") else { return vec![Access::Other] };
        let count = input.get("count").cloned().and_then(|count| serde_json::from_value::<Whole>(count).ok());
        let count = count.map_or(1, |count| count.0.clamp(1, MOST));
        let files = numbered(&path, count).into_iter().map(Access::Edit);
        files.chain(path_field(input, "image_path").map(Access::Read)).collect()
    }

    async fn run(self: Arc<Self>, input: ImageGenInput, context: ToolContext) -> ToolOutcome {
        let cancelled = context.cancelled.clone();
        let made = tokio::select! {
            made = Box::pin(self.pictures(&input, &context)) => made,
            () = cancelled => return interrupted(),
        };
        match made {
            Ok((reply, targets, pictures)) => store(reply, targets, pictures, context).await,
            Err(refusal) => *refusal,
        }
    }
}

/// The files of a call: one as it is named, several with numbers.
pub(crate) fn numbered(path: &Path, count: u64) -> Vec<PathBuf> {
    if count <= 1 {
        return vec![path.to_path_buf()];
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = |number| match path.extension() {
        Some(extension) => format!("{stem}-{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{number}"),
    };
    (1..=count).map(|number| path.with_file_name(name(number))).collect()
}

/// A refusal that names a field.
fn invalid(field: &str, problem: &str) -> Refusal {
    let text = format!("Invalid input for {}: field `{field}`: {problem}", ImageGenTool::NAME);
    refused(&text, "image_invalid_input")
}

/// A failure of the image model, for the model that called.
fn failed(failure: &ImageFailure) -> Refusal {
    refused(&format!("No picture was made: {failure}. {}", failure.hint()), failure.code())
}

type Made = (ImageReply, Vec<Target>, Vec<Bytes>);

impl ImageGenTool {
    /// Everything up to the pictures themselves; nothing is written yet.
    async fn pictures(&self, input: &ImageGenInput, context: &ToolContext) -> Result<Made, Refusal> {
        let count = check(input)?;
        let targets = targets(input_paths(input, count), input.overwrite.unwrap_or(false), context)?;
        let request = request(input, count, &targets, context)?;
        let Some(model) = self.model.as_ref().filter(|model| model.is_known()) else {
            return Err(failed(&ImageFailure::NoModel("none is configured".to_owned())));
        };
        let reply = model.make(request).await.map_err(|failure| failed(&failure))?;
        context.spent.lock().unwrap_or_else(PoisonError::into_inner).push(SideCalled {
            tool_use_id: context.tool_use_id.clone(),
            purpose: Purpose::ImageGen,
            model: reply.model.clone(),
            provider: Some(reply.provider.clone()),
            usage: reply.usage,
            cost_usd: reply.cost_usd,
            duration_api_ms: reply.duration_api_ms,
        });
        let mut pictures = Vec::with_capacity(reply.images.len());
        for image in reply.images.iter().take(targets.len()) {
            pictures.push(match image {
                MadeImage::Bytes(bytes) => bytes.clone(),
                MadeImage::Url(url) => self.fetch(url).await?,
            });
        }
        Ok((reply, targets, pictures))
    }

    /// Fetches a picture under the rules for pages: hosts that are not public need a rule that names them, a host that
    /// a rule denies or asks about is refused, and no redirect leads to another host.
    async fn fetch(&self, url: &str) -> Result<Bytes, Refusal> {
        let gone = |problem: &str, code: &str| {
            let text = format!("The picture was made but could not be fetched from its address: {problem}");
            refused(&text, code)
        };
        let fetched = async {
            let url = read_url(url)?;
            let target = self.hosts.target(url).await?;
            if self.denied.denies(&target.host) {
                return Ok(Err(format!("a permission rule does not let {} be fetched from.", target.host)));
            }
            Ok(Ok(fetch(&self.hosts, target).await?))
        };
        match tokio::time::timeout(self.limit, fetched).await {
            Err(_) => Err(gone("it took too long.", "web_timeout")),
            Ok(Err(error)) => {
                let error: crate::web::error::WebError = error;
                Err(gone(&error.to_string(), error.code()))
            }
            Ok(Ok(Err(problem))) => Err(gone(&problem, "web_denied")),
            Ok(Ok(Ok(Answer::Body(fetched)))) if fetched.status.is_success() => Ok(fetched.bytes.into()),
            Ok(Ok(Ok(Answer::Body(fetched)))) => {
                Err(gone(&format!("the server answered {}.", fetched.status.as_u16()), "image_not_an_image"))
            }
            Ok(Ok(Ok(Answer::Elsewhere { to, .. }))) => {
                let host = to.host_str().unwrap_or_default();
                Err(gone(&format!("it redirects to another host, {host}."), "web_redirects"))
            }
        }
    }
}

fn input_paths(input: &ImageGenInput, count: u64) -> Vec<PathBuf> {
    numbered(Path::new(&input.file_path), count)
}

/// The number of pictures, when all fields make sense.
fn check(input: &ImageGenInput) -> Result<u64, Refusal> {
    if input.prompt.trim().is_empty() {
        return Err(invalid("prompt", "it is empty. Describe the picture."));
    }
    if input.prompt.chars().nth(LONGEST_PROMPT).is_some() {
        return Err(invalid("prompt", &format!("it has more than {LONGEST_PROMPT} characters. Shorten it.")));
    }
    let count = input.count.map_or(1, |count| count.0);
    if !(1..=MOST).contains(&count) {
        return Err(invalid("count", &format!("`{count}` is not between 1 and {MOST}.")));
    }
    if let Some(size) = input.size.as_deref().filter(|size| !is_size(size)) {
        let shown = first_characters(size, 40).0;
        return Err(refused(
            &format!(
                "Invalid input for {}: field `size`: `{shown}` is not WIDTHxHEIGHT in pixels, such as 1024x1024, or auto.",
                ImageGenTool::NAME
            ),
            "image_bad_size",
        ));
    }
    Ok(count)
}

fn is_size(size: &str) -> bool {
    let side = |text: &str| text.len() <= 5 && text.parse::<u32>().is_ok_and(|side| side > 0);
    size == "auto" || size.split_once('x').is_some_and(|(width, height)| side(width) && side(height))
}

fn request(
    input: &ImageGenInput,
    count: u64,
    targets: &[Target],
    context: &ToolContext,
) -> Result<ImageRequest, Refusal> {
    let wanted = targets.first().map_or(ImageFormat::Png, |target| target.format);
    let format = match wanted {
        ImageFormat::Jpeg => "jpeg",
        ImageFormat::WebP => "webp",
        _ => "png",
    };
    let input_image = input.image_path.as_deref().map(|path| read_input(path, context)).transpose()?;
    Ok(ImageRequest {
        session_id: context.session_id.clone(),
        prompt: input.prompt.clone(),
        size: input.size.clone(),
        quality: input.quality.clone().filter(|word| !word.trim().is_empty()),
        count: u32::try_from(count).unwrap_or(1),
        format,
        input: input_image,
        ..ImageRequest::default()
    })
}

/// The picture to change. Its content says what it is.
fn read_input(path: &str, context: &ToolContext) -> Result<InputImage, Refusal> {
    let path =
        paths::resolve(&context.cwd, path).map_err(|error| invalid("image_path", &format!("{error}.")))?;
    let shown = path.lexical.as_path();
    let (mut file, metadata) = open::open_regular(&path.real, shown).map_err(|error| error.refusal())?;
    if metadata.len() > LARGEST_INPUT {
        let text = format!("{} has more than {} MiB.", shown.display(), LARGEST_INPUT >> 20);
        return Err(failed(&ImageFailure::TooLarge(text)));
    }
    let bytes = open::read_all(&mut file, &metadata, shown).map_err(|error| error.refusal())?;
    let kind = picture::kind(&bytes).filter(|kind| *kind != ImageFormat::Gif);
    let Some(kind) = kind.filter(|kind| picture::dimensions(&bytes, *kind).is_ok()) else {
        let text = format!("{} is not a readable PNG, JPEG or WebP picture.", shown.display());
        return Err(refused(&text, "image_not_an_image"));
    };
    Ok(InputImage {
        file_name: shown.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        media_type: kind.to_mime_type().to_owned(),
        bytes: bytes.into(),
    })
}

/// The structured output of a call that wrote files.
pub(crate) fn output(reply: &ImageReply, files: &[Value], note: Option<&str>) -> Value {
    let mut output = json!({ "images": files, "model": reply.model, "costUSD": reply.cost_usd });
    if let Some(revised) = &reply.revised_prompt {
        output["revised_prompt"] = json!(revised);
    }
    if let Some(note) = note {
        output["error"] = json!(note);
    }
    output
}

/// An outcome that failed after some files were written.
pub(crate) fn partly(mut outcome: ToolOutcome) -> ToolOutcome {
    outcome.outcome = CallOutcome::Failed;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_files_are_numbered() {
        let names = |path: &str, count| {
            numbered(Path::new(path), count)
                .iter()
                .map(|path| path.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("/a/b.c/cat.png", 1), ["/a/b.c/cat.png"]);
        assert_eq!(names("/a/b.c/cat.png", 2), ["/a/b.c/cat-1.png", "/a/b.c/cat-2.png"]);
        assert_eq!(names("cat", 2), ["cat-1", "cat-2"]);
    }

    #[test]
    fn sizes_are_two_numbers_or_auto() {
        for good in ["auto", "1024x1024", "1x99999"] {
            assert!(is_size(good), "{good}");
        }
        for bad in ["", "big", "1024", "0x5", "5x0", "x", "1024x", "-1x5", "1e3x5", "100000x5", "5x5x5"] {
            assert!(!is_size(bad), "{bad}");
        }
    }
}
