//! Where pictures go: files whose names say their format, that are new unless the call replaces them, kept as
//! checkpoints before and written in one step. A picture in another format than its file's name says is converted.

use std::io::{Cursor, ErrorKind};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use image::ImageFormat;
use qoder_core::images::{ImageFailure, ImageReply};
use qoder_core::ports::{ToolContext, ToolOutcome};
use qoder_types::{ContentBlock, ImageSource, Observation};
use serde_json::{Value, json};

use crate::call::blocking::{INLINE_BYTES, change};
use crate::call::refusal::{Refusal, refusal};
use crate::files::atomic::Place;
use crate::files::open::{self, FileError};
use crate::files::paths::{self, ResolvedPath};
use crate::files::read::picture;
use crate::files::restore::keep_before;
use crate::files::write::create_file;
use crate::images::generate::{output, partly};

/// The most pictures that the model is shown; it can read the others.
const MOST_SHOWN: usize = 4;
/// The largest file of one picture.
const LARGEST_FILE: usize = 64 << 20;

/// A file to write.
pub(crate) struct Target {
    path: ResolvedPath,
    /// What its name says.
    pub(crate) format: ImageFormat,
}

/// A failure with a stable code.
pub(crate) fn refused(text: &str, code: &str) -> Refusal {
    let mut outcome = refusal(text);
    outcome.structured = json!({ "error": text, "code": code });
    outcome
}

/// The files of a call, each of which can be written as far as one can tell before.
pub(crate) fn targets(
    names: Vec<PathBuf>,
    overwrite: bool,
    context: &ToolContext,
) -> Result<Vec<Target>, Refusal> {
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let path = paths::resolve(&context.cwd, &name.to_string_lossy())
            .map_err(|error| refused(&format!("Cannot write: {error}."), error.code()))?;
        let shown = path.lexical.as_path();
        let format = format_of(shown).ok_or_else(|| {
            let text = format!(
                "`file_path`: {} does not end in .png, .jpg, .jpeg or .webp. Give a name that says the format.",
                shown.display()
            );
            refused(&text, "image_bad_file_name")
        })?;
        match open::open_regular(&path.real, shown) {
            Err(FileError::NotFound(_)) => {}
            Ok(_) if overwrite => {}
            Ok(_) => {
                let text = format!(
                    "{} exists and was not replaced. Give another `file_path`, or `overwrite` if it shall be replaced.",
                    shown.display()
                );
                return Err(refused(&text, "image_file_exists"));
            }
            Err(error) => return Err(error.refusal()),
        }
        targets.push(Target { path, format });
    }
    Ok(targets)
}

/// The format that a file's name says.
fn format_of(path: &Path) -> Option<ImageFormat> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "png" => Some(ImageFormat::Png),
        "jpg" | "jpeg" => Some(ImageFormat::Jpeg),
        "webp" => Some(ImageFormat::WebP),
        _ => None,
    }
}

/// Writes the pictures and shows them. A change is never given up half-way.
pub(crate) async fn store(
    reply: ImageReply,
    targets: Vec<Target>,
    pictures: Vec<Bytes>,
    context: ToolContext,
) -> ToolOutcome {
    // Decoding takes long, whatever the size.
    change(INLINE_BYTES + 1, move || Stored::default().all(&reply, &targets, &pictures, &context)).await
}

/// What was written so far.
#[derive(Default)]
struct Stored {
    lines: Vec<String>,
    files: Vec<Value>,
    blocks: Vec<ContentBlock>,
    observations: Vec<Observation>,
    /// The most bytes of one picture that is shown: all of them together must fit into one message.
    room: usize,
}

impl Stored {
    fn all(
        mut self,
        reply: &ImageReply,
        targets: &[Target],
        pictures: &[Bytes],
        context: &ToolContext,
    ) -> ToolOutcome {
        // Nothing is written when one of them is no picture.
        let mut ready = Vec::with_capacity(pictures.len());
        for (target, bytes) in targets.iter().zip(pictures) {
            match in_format(bytes, target.format) {
                Ok(picture) => ready.push((target, picture)),
                Err(failure) => {
                    let text = format!("No file was written: {failure}. {}", failure.hint());
                    return *refused(&text, failure.code());
                }
            }
        }
        self.room = picture::LARGEST_PICTURE / ready.len().clamp(1, MOST_SHOWN);
        for (target, picture) in ready {
            if let Err(refusal) = self.one(target, &picture, context) {
                return self.broken(reply, *refusal);
            }
        }
        if pictures.len() < targets.len() {
            self.lines.push(format!(
                "The image model made {} of {} pictures.",
                pictures.len(),
                targets.len()
            ));
        }
        if let Some(revised) = &reply.revised_prompt {
            self.lines.push(format!("The provider made it from this prompt: {revised}"));
        }
        self.outcome(reply, None)
    }

    fn one(&mut self, target: &Target, picture: &Picture, context: &ToolContext) -> Result<(), Refusal> {
        let (path, shown) = (&target.path, target.path.lexical.as_path());
        let metadata = match open::open_regular(&path.real, shown) {
            Ok((mut file, metadata)) => {
                let before = open::read_all(&mut file, &metadata, shown).map_err(|error| error.refusal())?;
                keep_before(context, path, Some((&before, &metadata)), &picture.bytes)?;
                Place::open(&path.real, shown)
                    .and_then(|place| place.replace(&picture.bytes, Some(&metadata)))
                    .map_err(|error| unwritten(&error))?
            }
            Err(FileError::NotFound(_)) => {
                keep_before(context, path, None, &picture.bytes)?;
                create_file(path, &picture.bytes).map_err(|error| unwritten(&error))?
            }
            Err(error) => return Err(error.refusal()),
        };
        let (width, height) = picture.size;
        self.lines.push(format!(
            "{} has been written ({width}x{height}, {} bytes).",
            shown.display(),
            picture.bytes.len()
        ));
        self.files.push(json!({
            "file_path": shown, "media_type": target.format.to_mime_type(), "width": width, "height": height,
            "bytesWritten": picture.bytes.len(),
        }));
        let sha256 = open::sha256(&picture.bytes);
        let observed = open::observation(&path.real, &metadata, picture.bytes.len() as u64, sha256);
        self.observations.push(observed);
        if self.blocks.len() < MOST_SHOWN
            && let Ok((format, data)) = picture::prepare(&picture.bytes, target.format, self.room)
        {
            let media_type = format.to_mime_type().to_owned();
            let source = ImageSource::Base64 { media_type, data: STANDARD.encode(data) };
            self.blocks.push(ContentBlock::Image { source });
        }
        Ok(())
    }

    /// A file could not be written after others were.
    fn broken(mut self, reply: &ImageReply, refusal: ToolOutcome) -> ToolOutcome {
        if self.files.is_empty() {
            return refusal;
        }
        let why = refusal.content.to_text();
        self.lines.push(format!("The other pictures were not written. {why}"));
        let mut outcome = partly(self.outcome(reply, Some(&why)));
        if let Some(code) = refusal.structured.get("code") {
            outcome.structured["code"] = code.clone();
        }
        outcome
    }

    fn outcome(mut self, reply: &ImageReply, note: Option<&str>) -> ToolOutcome {
        if self.blocks.len() < self.files.len() {
            self.lines
                .push(format!("{} of the pictures are shown; Read shows the others.", self.blocks.len()));
        }
        let structured = output(reply, &self.files, note);
        let mut blocks = vec![ContentBlock::text(self.lines.join("\n"))];
        blocks.append(&mut self.blocks);
        let mut outcome = ToolOutcome::blocks(blocks, structured);
        outcome.observations = self.observations;
        outcome
    }
}

/// A file that could not be written, with a code of its own for a full disk.
fn unwritten(error: &FileError) -> Refusal {
    match error {
        FileError::System { path, source }
            if matches!(
                source.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
            ) =>
        {
            let text = format!(
                "{} was not written: {source}. The picture is lost; make room before you try again.",
                path.display()
            );
            refused(&text, "disk_full")
        }
        _ => error.refusal(),
    }
}

/// A picture in the format of its file.
struct Picture {
    bytes: Bytes,
    size: (u32, u32),
}

fn in_format(bytes: &Bytes, wanted: ImageFormat) -> Result<Picture, ImageFailure> {
    if bytes.len() > LARGEST_FILE {
        return Err(ImageFailure::TooLarge(format!("it has more than {} MiB", LARGEST_FILE >> 20)));
    }
    let Some(kind) = picture::kind(bytes) else {
        let start: String = String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes))
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let text =
            format!("what the provider sent is neither PNG, JPEG, WebP nor GIF and begins with `{start}`");
        return Err(ImageFailure::NotAnImage(text));
    };
    let damaged = |error: image::ImageError| ImageFailure::NotAnImage(format!("it is damaged: {error}"));
    let size = picture::dimensions(bytes, kind).map_err(damaged)?;
    if kind == wanted {
        return Ok(Picture { bytes: bytes.clone(), size });
    }
    let decoded = picture::decode(bytes, kind).map_err(damaged)?;
    let mut converted = Vec::new();
    // JPEG has no transparency; the others take any picture with 8 bits a colour.
    let decoded: image::DynamicImage = match wanted {
        ImageFormat::Jpeg => decoded.into_rgb8().into(),
        _ => decoded.into_rgba8().into(),
    };
    decoded.write_to(&mut Cursor::new(&mut converted), wanted).map_err(damaged)?;
    Ok(Picture { bytes: converted.into(), size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(format: ImageFormat) -> Bytes {
        let mut bytes = Vec::new();
        let image: image::DynamicImage =
            image::RgbaImage::from_pixel(3, 2, image::Rgba([9, 8, 7, 255])).into();
        let image = if format == ImageFormat::Jpeg { image.into_rgb8().into() } else { image };
        image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes.into()
    }

    #[test]
    fn a_file_holds_what_its_name_says() {
        let formats = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP];
        for from in [ImageFormat::Gif].iter().chain(&formats) {
            for to in formats {
                let made = in_format(&picture(*from), to).unwrap();
                assert_eq!((picture::kind(&made.bytes), made.size), (Some(to), (3, 2)), "{from:?} {to:?}");
            }
        }
    }

    #[test]
    fn a_full_disk_has_a_code_of_its_own() {
        let code = |kind: ErrorKind| {
            let error = FileError::from_system(Path::new("/a.png"), kind.into());
            unwritten(&error).structured["code"].clone()
        };
        assert_eq!(code(ErrorKind::StorageFull), "disk_full");
        assert_eq!(code(ErrorKind::QuotaExceeded), "disk_full");
        assert_eq!(code(ErrorKind::PermissionDenied), "file_denied");
    }

    #[test]
    fn what_is_no_picture_is_named_as_that() {
        let mut cut = picture(ImageFormat::Png).to_vec();
        cut.truncate(12);
        for bytes in [Bytes::from_static(b"<html>\n"), Bytes::new(), cut.into()] {
            let failure = in_format(&bytes, ImageFormat::Png).err().unwrap();
            assert_eq!(failure.code(), "image_not_an_image");
        }
    }
}
