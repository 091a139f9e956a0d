//! Small PDF documents for trying what reads them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use lopdf::content::{Content, Operation};
use lopdf::{Document, Object, Stream, dictionary};

/// A document in which every page says its number.
pub fn document(pages: usize) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let font =
        document.add_object(dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier" });
    let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
    let mut kids: Vec<Object> = Vec::new();
    for number in 1..=pages {
        let operations = vec![
            Operation::new("BT", vec![]),
            Operation::new("Tf", vec!["F1".into(), 12.into()]),
            Operation::new("Tj", vec![Object::string_literal(format!("This is page {number}"))]),
            Operation::new("ET", vec![]),
        ];
        let content = Content { operations }.encode().unwrap_or_default();
        let content = document.add_object(Stream::new(dictionary! {}, content));
        let page = dictionary! { "Type" => "Page", "Parent" => tree, "Contents" => content };
        kids.push(document.add_object(page).into());
    }
    let count = i64::try_from(pages).unwrap_or_default();
    let node = dictionary! {
        "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    };
    document.objects.insert(tree, Object::Dictionary(node));
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    assert!(document.save_to(&mut bytes).is_ok());
    bytes
}
