//! `docs/settings.md` lists exactly the keys that the program knows. `UPDATE_DOCS=1` writes the table anew.

use std::path::Path;

use qoder_config::settings::KNOWN_KEYS;

const START: &str = "<!-- keys: start -->\n";
const END: &str = "<!-- keys: end -->";

fn table() -> String {
    let mut table = String::from("| key | default | meaning |\n| --- | --- | --- |\n");
    for known in KNOWN_KEYS {
        let default =
            if known.default.is_empty() { "–".to_owned() } else { format!("`{}`", known.default) };
        let effect = if known.has_effect { "" } else { "**no effect yet**: " };
        table.push_str(&format!("| `{}` | {default} | {effect}{} |\n", known.path, known.meaning));
    }
    table
}

#[test]
fn the_page_lists_the_keys_the_program_knows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let start = page.find(START).unwrap() + START.len();
    let end = page.find(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{}{}", &page[..start], table(), &page[end..])).unwrap();
        return;
    }
    assert_eq!(&page[start..end], table(), "run the test again with UPDATE_DOCS=1");
}
