//! The page for beginners shows the program that is run as an example, word for word.

use std::path::Path;

#[test]
fn the_quickstart_page_shows_the_quickstart_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/quickstart-rust.md")).unwrap();
    let code = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let example = std::fs::read_to_string(root.join("examples/quickstart.rs")).unwrap();
    assert_eq!(code, example);
}
