//! `docs/terminal.md` lists exactly the keys and commands that there are. `UPDATE_DOCS=1` writes its tables anew.

use std::path::Path;

/// Compares a table of the page with the one that the code makes.
pub(crate) fn check_table(name: &str, table: &str) {
    let (start, end) = (format!("<!-- {name}: start -->\n"), format!("<!-- {name}: end -->"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let from = page.find(&start).unwrap() + start.len();
    let to = page.find(&end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &page[..from], &page[to..])).unwrap();
        return;
    }
    assert_eq!(&page[from..to], table, "run the test again with UPDATE_DOCS=1");
}
