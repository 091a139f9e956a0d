//! The second opinion: a maintained grammar of the shell parses the same text, and both must find their commands at the
//! same places. A tree with an error, or a command only one of the two sees, makes the line not proven. Neither reader is
//! trusted alone where they differ.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::plain;
use super::reading::DoubtKind;
use crate::shell::grammar::reader::Reader;

/// The longest the parser may take. Ordinary lines need microseconds; a few shapes of text cost it far more than their
/// length, and a line that hits this is not proven.
const LONGEST_TIME: Duration = Duration::from_millis(500);
/// Pipelines and here-documents beyond these numbers cost the parser more than linear time, and it is not asked.
const MOST_PIPED: usize = 64;
const MOST_HERE_DOCUMENTS: usize = 32;

thread_local! {
    /// Making a parser costs far more than parsing a short line.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Compares what the reader found with the tree of the other grammar.
pub(super) fn compare(reader: &mut Reader<'_, '_>) {
    if plain::is_beyond_dispute(reader.text) {
        return;
    }
    let affordable = reader.longest_pipeline <= MOST_PIPED && reader.here_documents <= MOST_HERE_DOCUMENTS;
    let Some(tree) = affordable.then(|| parse(reader.text)).flatten() else {
        reader.out.doubt(DoubtKind::TooMany, reader.text);
        return;
    };
    let root = tree.root_node();
    if root.has_error() {
        let shown = first_error(&tree).map_or(reader.text, |(from, to)| reader.slice(from, to));
        reader.out.doubt(DoubtKind::SyntaxError, shown);
    }
    reader.starts.sort_unstable();
    let mut theirs = starts(&tree);
    theirs.sort_unstable();
    if reader.starts == theirs {
        return;
    }
    let missed: Vec<usize> =
        theirs.iter().copied().filter(|at| reader.starts.binary_search(at).is_err()).collect();
    let about = missed
        .first()
        .copied()
        .or_else(|| reader.starts.iter().copied().find(|at| theirs.binary_search(at).is_err()));
    let shown = reader.slice(about.unwrap_or(0), reader.text.len());
    let shown = if shown.is_empty() { reader.text } else { shown };
    reader.out.doubt(DoubtKind::ReadersDisagree, shown);
    // What only the other grammar calls a command is collected too, so that deny rules see it. The places are ascending,
    // and one read command covers the text up to its end, which keeps this linear.
    reader.end = reader.text.len();
    let mut covered = 0;
    for mut at in missed {
        // The parser saw stand-ins for longer characters and may start inside one.
        while !reader.text.is_char_boundary(at) {
            at -= 1;
        }
        if at >= covered {
            reader.at = at;
            reader.pending.clear();
            reader.simple_command();
            covered = reader.at.max(at + 1);
        }
    }
}

/// Parses a text; `None` when that takes too many steps.
fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *slot = Some(parser);
        }
        let parser = slot.as_mut()?;
        let plain = plain_bytes(text);
        let bytes: &[u8] = &plain;
        let started = Instant::now();
        let mut progress = |_: &tree_sitter::ParseState| {
            if started.elapsed() > LONGEST_TIME { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree =
            parser.parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options));
        if tree.is_none() {
            // A stopped parser would continue with the old text.
            parser.reset();
        }
        tree
    })
}

/// The text as the parser gets it: every byte that is not plain ASCII stands as a character of ordinary words, which is
/// what it is for the shell. The parser's scanner looks characters up in tables that end at one byte, and takes carriage
/// returns and foreign blanks for blanks, which the shell does not.
fn plain_bytes(text: &str) -> Cow<'_, [u8]> {
    let plain = |byte: u8| (0x20..0x7F).contains(&byte) || byte == b'\n' || byte == b'\t';
    if text.bytes().all(plain) {
        return Cow::Borrowed(text.as_bytes());
    }
    text.bytes().map(|byte| if plain(byte) { byte } else { b'%' }).collect()
}

/// Where the other grammar sees command words.
fn starts(tree: &Tree) -> Vec<usize> {
    let mut found = Vec::new();
    visit(tree, |node| {
        match node.kind() {
            "command_name" | "declaration_command" | "unset_command" | "test_command" => {
                found.push(node.start_byte())
            }
            _ => {}
        }
        true
    });
    found
}

/// The first piece of text the other grammar does not accept.
fn first_error(tree: &Tree) -> Option<(usize, usize)> {
    let mut found = None;
    visit(tree, |node| {
        if found.is_none() && (node.is_error() || node.is_missing()) {
            found = Some((node.start_byte(), node.end_byte()));
        }
        found.is_none() && node.has_error()
    });
    found
}

/// Visits the nodes of a tree without recursion; the function says whether to look inside a node.
fn visit<'t>(tree: &'t Tree, mut look: impl FnMut(Node<'t>) -> bool) {
    let mut cursor = tree.walk();
    loop {
        if look(cursor.node()) && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}
