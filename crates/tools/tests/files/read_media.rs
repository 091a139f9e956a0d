//! Read: images, PDF pages and notebooks.
//!
//! Small images pass as they are, large ones are made smaller; damaged files are errors and never panics.

use crate::common::pdf::document;
use crate::common::{Bench, text};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qoder_types::{CallOutcome, ContentBlock, ImageSource, ToolResultContent};
use serde_json::json;

/// The media type and bytes of the only block.
fn picture(content: &ToolResultContent) -> Option<(String, Vec<u8>)> {
    let ToolResultContent::Blocks(blocks) = content else { return None };
    match blocks.as_slice() {
        [ContentBlock::Image { source: ImageSource::Base64 { media_type, data } }] => {
            Some((media_type.clone(), STANDARD.decode(data).ok()?))
        }
        _ => None,
    }
}

#[tokio::test]
async fn a_small_image_passes_unchanged() {
    let bench = Bench::new();
    let path = bench.path("small.dat");
    image::RgbImage::new(20, 10).save_with_format(&path, image::ImageFormat::Png).unwrap();
    let outcome = bench.run("Read", json!({ "file_path": "small.dat" })).await;
    let (media_type, bytes) = picture(&outcome.content).unwrap();
    assert_eq!(media_type, "image/png");
    assert_eq!(bytes, bench.content("small.dat"), "the content decides, not the name");
    assert_eq!(outcome.structured["type"], "image");
    assert_eq!(outcome.structured["source"]["media_type"], "image/png");
    assert_eq!(outcome.observations.len(), 1);
}

#[tokio::test]
async fn a_large_image_is_made_smaller() {
    let bench = Bench::new();
    image::RgbImage::new(3000, 1000).save(bench.path("wide.png")).unwrap();
    let noise = image::RgbImage::from_fn(1200, 1200, |x, y| {
        let value = x.wrapping_mul(2_654_435_761).wrapping_add(y.wrapping_mul(40_503)).wrapping_mul(x ^ y);
        image::Rgb([value.to_le_bytes()[0], value.to_le_bytes()[1], value.to_le_bytes()[2]])
    });
    noise.save(bench.path("noise.png")).unwrap();
    let outcome = bench.run("Read", json!({ "file_path": "wide.png" })).await;
    let (_, bytes) = picture(&outcome.content).unwrap();
    let small = image::load_from_memory(&bytes).unwrap();
    assert_eq!((small.width(), small.height()), (1568, 523));
    let outcome = bench.run("Read", json!({ "file_path": "noise.png" })).await;
    let (media_type, bytes) = picture(&outcome.content).unwrap();
    assert_eq!(media_type, "image/jpeg");
    assert!(bytes.len() <= 750_000, "{}", bytes.len());
}

#[tokio::test]
async fn a_damaged_image_is_an_error() {
    let bench = Bench::new();
    bench.write("bad.png", b"\x89PNG\r\n\x1a\nrubbish");
    assert!(bench.fail("Read", json!({ "file_path": "bad.png" })).await.contains("damaged"));
}

#[tokio::test]
async fn pdf_pages_are_read_as_text() {
    let bench = Bench::new();
    bench.write("short.pdf", document(3));
    let outcome = bench.run("Read", json!({ "file_path": "short.pdf" })).await;
    assert!(text(&outcome).contains("Page 2 of 3 ---\nThis is page 2"), "{}", text(&outcome));
    assert_eq!(outcome.structured["totalPages"], 3);
    assert_eq!(outcome.structured["pages"][2]["page_number"], 3);
    bench.write("long.pdf", document(25));
    let refusal = bench.fail("Read", json!({ "file_path": "long.pdf" })).await;
    assert!(refusal.contains("25 pages") && refusal.contains("`pages`"), "{refusal}");
    let some = bench.succeed("Read", json!({ "file_path": "long.pdf", "pages": "24-30" })).await;
    assert!(
        some.contains("This is page 24") && some.contains("This is page 25") && !some.contains("page 23")
    );
    let many = bench.fail("Read", json!({ "file_path": "long.pdf", "pages": "1-21" })).await;
    assert!(many.contains("at most 20"), "{many}");
}

#[tokio::test]
async fn a_damaged_pdf_is_an_error() {
    let bench = Bench::new();
    let mut bytes = document(2);
    bytes.truncate(40);
    bench.write("cut.pdf", bytes);
    bench.write(
        "rubbish.pdf",
        b"%PDF-1.7\n1 0 obj << /Length 99999999999 >> stream\nxref\ntrailer << /Root 1 0 R >>",
    );
    for name in ["cut.pdf", "rubbish.pdf"] {
        let outcome = bench.run("Read", json!({ "file_path": name })).await;
        assert_eq!(outcome.outcome, CallOutcome::Failed, "{name}: {}", text(&outcome));
        assert!(text(&outcome).contains("Cannot read"), "{}", text(&outcome));
    }
}

#[tokio::test]
async fn notebooks_show_cells_and_outputs() {
    let bench = Bench::new();
    let notebook = json!({ "nbformat": 4, "cells": [
        { "cell_type": "markdown", "source": ["# Title\n", "text"] },
        { "cell_type": "code", "source": "print(1)", "outputs": [
            { "output_type": "stream", "text": ["1\n"] },
            { "output_type": "display_data", "data": { "image/png": "AAAA", "text/plain": "<Figure>" } },
            { "output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["line 1"] },
        ] },
    ] });
    bench.write("n.ipynb", notebook.to_string());
    let outcome = bench.run("Read", json!({ "file_path": "n.ipynb" })).await;
    let shown = text(&outcome);
    for part in [
        "Cell 1 (markdown)",
        "# Title\ntext",
        "Cell 2 (code)",
        "print(1)",
        "1\n",
        "[image/png not shown]",
        "ValueError: bad",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(outcome.structured["type"], "notebook");
    assert_eq!(outcome.structured["cells"][1]["cell_number"], 2);
    assert_eq!(outcome.structured["cells"][1]["outputs"].as_array().map(Vec::len), Some(3));
    bench.write("bad.ipynb", "{ no json");
    assert!(bench.fail("Read", json!({ "file_path": "bad.ipynb" })).await.contains("no valid notebook"));
    bench.write("other.ipynb", "[]");
    assert!(bench.fail("Read", json!({ "file_path": "other.ipynb" })).await.contains("no cells"));
}
