//! Images for the model: as they are when they are small, made smaller when they are not.
//!
//! The content decides what an image is. Decoding is limited in size and memory, so that a small file cannot unfold into
//! a huge picture.

use std::io::Cursor;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use qoder_core::ports::ToolOutcome;
use qoder_types::{ContentBlock, ImageSource};
use serde_json::json;

/// Models scale larger pictures down themselves, after we have paid for sending them.
const LONGEST_SIDE: u32 = 1568;
/// The most bytes whose base64 form stays below one million characters.
pub(crate) const LARGEST_PICTURE: usize = 750_000;
/// Sides and memory that a decoder may use.
const DECODER_SIDE: u32 = 20_000;
const DECODER_BYTES: u64 = 512 * 1024 * 1024;

/// The kind of image that starts with these bytes.
pub(crate) fn kind(start: &[u8]) -> Option<ImageFormat> {
    if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(ImageFormat::Png)
    } else if start.starts_with(&[0xFF, 0xD8, 0xFF]) {
        Some(ImageFormat::Jpeg)
    } else if start.starts_with(b"GIF87a") || start.starts_with(b"GIF89a") {
        Some(ImageFormat::Gif)
    } else if start.len() >= 12 && start.starts_with(b"RIFF") && &start[8..12] == b"WEBP" {
        Some(ImageFormat::WebP)
    } else {
        None
    }
}

/// The image as a block.
pub(crate) fn read(bytes: &[u8], kind: ImageFormat, shown: &Path) -> ToolOutcome {
    let (format, data) = match prepare(bytes, kind, LARGEST_PICTURE) {
        Ok(prepared) => prepared,
        Err(error) => {
            return ToolOutcome::failed(format!(
                "{} is a damaged or too large image: {error}.",
                shown.display()
            ));
        }
    };
    let media_type = format.to_mime_type().to_owned();
    let data = STANDARD.encode(data);
    let structured = json!({
        "type": "image", "file_path": shown,
        "source": { "type": "base64", "media_type": media_type, "data": data },
    });
    ToolOutcome::blocks(
        vec![ContentBlock::Image { source: ImageSource::Base64 { media_type, data } }],
        structured,
    )
}

/// The bytes to send and their format, at most `largest` bytes unless the picture is tiny.
pub(crate) fn prepare(
    bytes: &[u8],
    kind: ImageFormat,
    largest: usize,
) -> Result<(ImageFormat, Vec<u8>), image::ImageError> {
    let (width, height) = reader(bytes, kind).into_dimensions()?;
    if width.max(height) <= LONGEST_SIDE && bytes.len() <= largest {
        return Ok((kind, bytes.to_vec()));
    }
    let mut picture = reader(bytes, kind).decode()?;
    if width.max(height) > LONGEST_SIDE {
        picture = picture.resize(LONGEST_SIDE, LONGEST_SIDE, FilterType::Triangle);
    }
    if kind != ImageFormat::Jpeg {
        let mut data = Vec::new();
        picture.write_to(&mut Cursor::new(&mut data), ImageFormat::Png)?;
        if data.len() <= largest {
            return Ok((ImageFormat::Png, data));
        }
    }
    loop {
        let data = jpeg(&picture)?;
        let side = picture.width().max(picture.height());
        if data.len() <= largest || side <= 64 {
            return Ok((ImageFormat::Jpeg, data));
        }
        let smaller = side * 3 / 4;
        picture = picture.resize(smaller, smaller, FilterType::Triangle);
    }
}

/// Width and height.
pub(crate) fn dimensions(bytes: &[u8], kind: ImageFormat) -> Result<(u32, u32), image::ImageError> {
    reader(bytes, kind).into_dimensions()
}

/// The picture itself.
pub(crate) fn decode(bytes: &[u8], kind: ImageFormat) -> Result<DynamicImage, image::ImageError> {
    reader(bytes, kind).decode()
}

fn reader(bytes: &[u8], kind: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), kind);
    let mut limits = Limits::default();
    limits.max_image_width = Some(DECODER_SIDE);
    limits.max_image_height = Some(DECODER_SIDE);
    limits.max_alloc = Some(DECODER_BYTES);
    reader.limits(limits);
    reader
}

fn jpeg(picture: &DynamicImage) -> Result<Vec<u8>, image::ImageError> {
    let mut data = Vec::new();
    JpegEncoder::new_with_quality(&mut data, 80).encode_image(&picture.to_rgb8())?;
    Ok(data)
}
