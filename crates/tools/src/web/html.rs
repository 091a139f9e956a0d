//! HTML to Markdown, in time and memory that no page can blow up.
//!
//! The converter behind this builds a tree and walks it recursively, and some pages make trees far larger and deeper
//! than themselves. So a first pass, linear and without recursion, keeps only the tags that Markdown has words for, closes
//! them in order, limits their depth, drops what is not content, and makes links absolute. Tables become lines.

use std::panic::{AssertUnwindSafe, catch_unwind};

use url::Url;

use crate::web::error::WebError;

/// How deep the kept tags may be nested; the text of deeper ones stays.
const DEEPEST: usize = 32;
/// The most bytes that are handed to the converter; far more than a model is shown.
const CLEAN_BYTES: usize = 1024 * 1024;
/// Longer links are data, not addresses.
const LONGEST_LINK: usize = 2_000;

/// The page as Markdown.
pub(crate) fn to_markdown(html: &str, base: &Url) -> Result<String, WebError> {
    let (clean, cut) = clean(html, base);
    let convert = || htmd::HtmlToMarkdown::new().convert(&clean);
    let damaged = |problem: String| WebError::Damaged { problem };
    let mut text = match catch_unwind(AssertUnwindSafe(convert)) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => return Err(damaged(error.to_string())),
        Err(_) => return Err(damaged("its structure is not understood.".to_owned())),
    };
    if cut {
        text.push_str("\n\n[The page is longer and was cut here.]");
    }
    Ok(text)
}

/// What becomes of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// LinkAttributes under this name; may hold anything.
    Block(&'static str),
    /// LinkAttributes under this name; holds text.
    Inline(&'static str),
    /// LinkAttributes under this name; holds nothing.
    Void(&'static str),
    /// A new line.
    Line,
    /// A cell of a table.
    Cell,
    /// Dropped with everything in it.
    Gone,
    /// Only its tags are dropped.
    Plain,
}

fn fate(name: &str) -> Fate {
    match name {
        "p" => Fate::Block("p"),
        "h1" => Fate::Block("h1"),
        "h2" => Fate::Block("h2"),
        "h3" => Fate::Block("h3"),
        "h4" => Fate::Block("h4"),
        "h5" => Fate::Block("h5"),
        "h6" => Fate::Block("h6"),
        "ul" | "menu" | "dir" => Fate::Block("ul"),
        "ol" => Fate::Block("ol"),
        "li" => Fate::Block("li"),
        "blockquote" => Fate::Block("blockquote"),
        "pre" | "listing" | "xmp" => Fate::Block("pre"),
        "address" | "article" | "aside" | "center" | "details" | "dialog" | "div" | "dl" | "fieldset"
        | "figcaption" | "figure" | "footer" | "form" | "header" | "hgroup" | "main" | "nav" | "section"
        | "summary" | "table" | "caption" | "title" => Fate::Block("div"),
        "a" => Fate::Inline("a"),
        "b" | "strong" => Fate::Inline("strong"),
        "i" | "em" => Fate::Inline("em"),
        "code" | "kbd" | "samp" | "tt" => Fate::Inline("code"),
        "br" => Fate::Void("br"),
        "hr" => Fate::Void("hr"),
        "img" => Fate::Void("img"),
        "tr" | "dt" | "dd" | "option" | "legend" => Fate::Line,
        "td" | "th" => Fate::Cell,
        "script" | "style" | "noscript" | "template" | "iframe" | "noembed" | "noframes" | "svg" | "math"
        | "object" | "textarea" => Fate::Gone,
        _ => Fate::Plain,
    }
}

/// The page with nothing but simple, well-nested tags, and whether it was cut.
fn clean(html: &str, base: &Url) -> (String, bool) {
    let mut cleaner =
        Cleaner { rest: html, out: String::new(), open: Vec::new(), too_deep: Vec::new(), base };
    let cut = cleaner.run();
    cleaner.close_above(0);
    (cleaner.out, cut)
}

struct Cleaner<'a> {
    /// What is still to be read.
    rest: &'a str,
    out: String,
    /// The kept elements that are open.
    open: Vec<&'static str>,
    /// How many elements of a name were not kept because they are too deep.
    too_deep: Vec<(&'static str, usize)>,
    base: &'a Url,
}

impl<'a> Cleaner<'a> {
    /// Reads the page to its end; true when it was cut.
    fn run(&mut self) -> bool {
        while !self.rest.is_empty() {
            let at = memchr::memchr(b'<', self.rest.as_bytes()).unwrap_or(self.rest.len());
            let (text, rest) = self.rest.split_at(at);
            self.rest = rest;
            let room = CLEAN_BYTES.saturating_sub(self.out.len());
            if text.len() > room {
                self.out.push_str(&text[..text.floor_char_boundary(room)]);
                return true;
            }
            self.out.push_str(text);
            if self.out.len() >= CLEAN_BYTES {
                return true;
            }
            if !self.rest.is_empty() {
                self.markup();
            }
        }
        false
    }

    /// Reads what begins with `<`.
    fn markup(&mut self) {
        let after = &self.rest[1..];
        match after.as_bytes().first() {
            Some(b'!') if after.starts_with("!--") => self.skip_behind(4, "-->"),
            Some(b'!' | b'?') => self.skip_behind(1, ">"),
            Some(b'/') => {
                let name = name_at(&after[1..]);
                if name.is_empty() {
                    return self.skip_behind(1, ">");
                }
                let wanted = fate(&name.to_ascii_lowercase());
                self.skip_behind(1, ">");
                self.end(wanted);
            }
            Some(first) if first.is_ascii_alphabetic() => {
                let name = name_at(after).to_ascii_lowercase();
                self.rest = &after[name.len()..];
                let attributes = self.attributes();
                self.start(&name, &attributes);
            }
            Some(_) | None => {
                self.out.push_str("&lt;");
                self.rest = after;
            }
        }
    }

    /// Continues behind the next `mark`, or at the end without one.
    fn skip_behind(&mut self, from: usize, mark: &str) {
        let tail = self.rest.get(from..).unwrap_or_default();
        self.rest = tail.split_once(mark).map_or("", |(_, rest)| rest);
    }

    /// Reads attributes up to the end of the tag; keeps those that have a meaning here.
    fn attributes(&mut self) -> LinkAttributes {
        let mut kept = LinkAttributes::default();
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if self.rest.is_empty() {
                return kept;
            }
            if let Some(rest) = self.rest.strip_prefix('>') {
                self.rest = rest;
                return kept;
            }
            // A name may begin with `=`; it has at least one character, so that the loop always moves on.
            let first = self.rest.chars().next().map_or(1, char::len_utf8);
            let end =
                self.rest[first..].find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'));
            let (name, rest) = self.rest.split_at(end.map_or(self.rest.len(), |end| end + first));
            self.rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
            let value = match self.rest.strip_prefix('=') {
                Some(rest) => {
                    self.rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
                    self.value()
                }
                None => "",
            };
            kept.take(name, value);
        }
    }

    fn value(&mut self) -> &'a str {
        let (value, rest) = match self.rest.as_bytes().first() {
            Some(b'"') => self.rest[1..].split_once('"').unwrap_or(("", "")),
            Some(b'\'') => self.rest[1..].split_once('\'').unwrap_or(("", "")),
            Some(_) | None => {
                let end = self.rest.find(|c: char| c.is_ascii_whitespace() || c == '>');
                self.rest.split_at(end.unwrap_or(self.rest.len()))
            }
        };
        self.rest = rest;
        value
    }

    fn start(&mut self, name: &str, attributes: &LinkAttributes) {
        match fate(name) {
            Fate::Block(kept) => {
                // These end by themselves where a new block begins, and a tree builder would do it in its own way.
                if let Some(at) = self.open.iter().position(|open| *open == "p") {
                    self.close_above(at);
                }
                if kept == "li" {
                    self.close_item();
                }
                self.push(kept, "");
            }
            Fate::Inline("a") => {
                if let Some(at) = self.open.iter().position(|open| *open == "a") {
                    self.close_above(at);
                }
                let link = attributes.address.as_deref().and_then(|address| self.absolute(address));
                let attribute = link.map(|link| format!(" href=\"{link}\"")).unwrap_or_default();
                self.push("a", &attribute);
            }
            Fate::Inline(kept) => {
                // Joining neighbours of one kind here is cheap; in a tree it is not.
                let end = format!("</{kept}>");
                if self.out.ends_with(&end) && self.open.len() < DEEPEST {
                    self.out.truncate(self.out.len() - end.len());
                    self.open.push(kept);
                } else {
                    self.push(kept, "");
                }
            }
            Fate::Void("img") => self.image(attributes),
            Fate::Void(kept) => self.out.push_str(&format!("<{kept}>")),
            Fate::Line => self.out.push_str("<br>"),
            Fate::Cell => self.out.push_str(" | "),
            Fate::Gone => self.skip_element(name),
            Fate::Plain => {}
        }
    }

    fn end(&mut self, wanted: Fate) {
        match wanted {
            Fate::Block(kept) | Fate::Inline(kept) => {
                if let Some(entry) =
                    self.too_deep.iter_mut().find(|(name, count)| *name == kept && *count > 0)
                {
                    entry.1 -= 1;
                } else if let Some(at) = self.open.iter().rposition(|open| *open == kept) {
                    self.close_above(at);
                }
            }
            Fate::Void("br") => self.out.push_str("<br>"),
            Fate::Void(_) | Fate::Line | Fate::Cell | Fate::Gone | Fate::Plain => {}
        }
    }

    fn push(&mut self, kept: &'static str, attribute: &str) {
        if self.open.len() >= DEEPEST {
            match self.too_deep.iter_mut().find(|(name, _)| *name == kept) {
                Some(entry) => entry.1 += 1,
                None => self.too_deep.push((kept, 1)),
            }
            return;
        }
        self.open.push(kept);
        self.out.push_str(&format!("<{kept}{attribute}>"));
    }

    /// Closes what is open from position `at` on, innermost first.
    fn close_above(&mut self, at: usize) {
        while self.open.len() > at
            && let Some(name) = self.open.pop()
        {
            self.out.push_str(&format!("</{name}>"));
        }
    }

    /// An item of a list ends where the next one of the same list begins.
    fn close_item(&mut self) {
        let list = self.open.iter().rposition(|open| matches!(*open, "ul" | "ol"));
        let item = self.open.iter().rposition(|open| *open == "li");
        if let Some(item) = item.filter(|item| list.is_none_or(|list| *item > list)) {
            self.close_above(item);
        }
    }

    fn image(&mut self, attributes: &LinkAttributes) {
        let Some(address) = attributes.address.as_deref().and_then(|address| self.absolute(address)) else {
            return;
        };
        let text = attributes.text.as_deref().map(escape).unwrap_or_default();
        self.out.push_str(&format!("<img src=\"{address}\" alt=\"{text}\">"));
    }

    /// The address in full, ready for an attribute; `None` when it could not be fetched.
    fn absolute(&self, address: &str) -> Option<String> {
        let address = address.trim();
        // A place on the same page is nothing to fetch.
        if address.is_empty() || address.starts_with('#') || address.len() > LONGEST_LINK {
            return None;
        }
        let address = address.replace("&amp;", "&");
        let url = self.base.join(&address).ok()?;
        matches!(url.scheme(), "http" | "https" | "mailto")
            .then(|| escape(url.as_str()))
            .filter(|url| url.len() <= LONGEST_LINK)
    }

    /// Continues behind the end tag of `name`, or at the end of the page when it never comes.
    fn skip_element(&mut self, name: &str) {
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&self.rest.as_bytes()[from..], b"</") {
            let start = from + at;
            let after = &self.rest[start + 2..];
            if after.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)) {
                self.rest = after;
                return self.skip_behind(0, ">");
            }
            from = start + 2;
        }
        self.rest = "";
    }
}

/// The attributes that are kept.
#[derive(Debug, Default)]
struct LinkAttributes {
    address: Option<String>,
    text: Option<String>,
}

impl LinkAttributes {
    fn take(&mut self, name: &str, value: &str) {
        let place = match name.len() {
            4 if name.eq_ignore_ascii_case("href") => &mut self.address,
            3 if name.eq_ignore_ascii_case("src") => &mut self.address,
            3 if name.eq_ignore_ascii_case("alt") => &mut self.text,
            _ => return,
        };
        // The first of several counts, as in browsers.
        if place.is_none() && value.len() <= LONGEST_LINK {
            *place = Some(value.to_owned());
        }
    }
}

/// The name at the start of `text`, as far as names of elements that matter go.
fn name_at(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'-');
    &text[..end.unwrap_or(text.len())]
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use proptest::strategy::Strategy;

    use super::*;

    fn markdown(html: &str) -> String {
        to_markdown(html, &Url::parse("https://a.example/dir/page?q=1").unwrap()).unwrap()
    }

    #[test]
    fn what_pages_are_made_of() {
        assert_eq!(
            markdown("<h1>Title</h1><p>One <b>two</b> <i>three</i>"),
            "# Title\n\nOne **two** *three*"
        );
        assert_eq!(markdown("<p>x<script>if (a < b) { '</p>' }</SCRIPT >y<style>p{}</style>"), "xy");
        assert_eq!(markdown("<ul><li>a<li>b</ul>"), "*   a\n*   b");
        assert_eq!(markdown("<a href='../x?a=1&amp;b=2'>go</a>"), "[go](https://a.example/x?a=1&b=2)");
        assert_eq!(markdown("<a href='javascript:alert(1)'>go</a>"), "go");
        assert_eq!(
            markdown("<img src=p.png alt=Pic><img src='data:x'>"),
            "![Pic](https://a.example/dir/p.png)"
        );
        assert_eq!(markdown("a &amp; b &lt; c <!-- gone --> d &eacute;"), "a & b < c d é");
        assert_eq!(
            markdown("<pre><code>fn x() {\n    1 &lt; 2\n}</code></pre>"),
            "```\nfn x() {\n    1 < 2\n}\n```"
        );
        let table = markdown("<table><tr><th>A<th>B<tr><td>1<td>2</table>");
        assert!(table.contains("| A | B") && table.contains("| 1 | 2"), "{table}");
    }

    #[test]
    fn broken_markup_is_read_without_loss_of_text() {
        assert_eq!(markdown("a < b"), "a < b");
        assert_eq!(markdown("a <"), "a <");
        assert_eq!(markdown("x<b"), "x");
        assert_eq!(markdown("x<a href=\"unclosed>y"), "x");
        assert_eq!(markdown("x<!-- open"), "x");
        assert_eq!(markdown("x</>y</ >z"), "xyz");
        assert_eq!(markdown("<b><p>one</b>two"), "**one**\n\ntwo".to_owned());
        assert_eq!(markdown("<p ===a =>x"), "x");
    }

    proptest::proptest! {
        #[test]
        fn any_text_becomes_well_nested_tags(
            parts in proptest::collection::vec(
                proptest::prelude::prop_oneof![
                    proptest::sample::select(vec![
                        "<div>", "</div>", "<p>", "</p>", "<li>", "<ul>", "</ul>", "<a href=x>", "</a>", "<b>", "</b>",
                        "<code>", "</code>", "<pre>", "<br>", "<tr><td>", "<script>", "</script>", "<!--", "-->", "<", ">",
                        "\"", "'", "=", "/", "</", "<img src=ü>", "<h1", "text", "&amp;", "ü",
                    ])
                    .prop_map(str::to_owned),
                    ".{0,8}",
                ],
                0..80,
            ),
        ) {
            let page = parts.concat();
            let base = Url::parse("https://a.example/").unwrap();
            let (clean, _) = clean(&page, &base);
            let mut open = Vec::new();
            for tag in clean.split('<').skip(1) {
                let name = name_at(tag.trim_start_matches('/'));
                match (tag.starts_with('/'), name) {
                    (false, "br" | "hr" | "img") => {}
                    (false, name) => open.push(name),
                    (true, name) => assert_eq!(open.pop(), Some(name), "{clean}"),
                }
                assert!(open.len() <= DEEPEST, "{clean}");
            }
            assert!(open.is_empty(), "{clean}");
            assert!(to_markdown(&page, &base).is_ok());
        }
    }

    #[test]
    fn hostile_pages_stay_small() {
        for page in [
            "<div>".repeat(100_000),
            "<span><div></span>".repeat(20_000),
            "<ul><li>".repeat(30_000),
            "<blockquote>x".repeat(20_000),
            "<b>x</b>".repeat(40_000),
            (0..20_000).map(|n| format!("<b x={n}>")).collect::<String>() + &"<p>y".repeat(20_000),
            "<a href=x>".repeat(20_000),
            "<table><tr>".to_owned() + &"<th>x".repeat(20_000) + &"<tr><td>y".repeat(20_000),
            "<".repeat(300_000),
            "<!--".repeat(100_000),
            "</".repeat(100_000),
            "<script>".repeat(100_000),
            "<a b='".repeat(100_000),
            "<p a=\"".repeat(100_000),
        ] {
            let text = markdown(&page);
            assert!(text.len() <= 16 * CLEAN_BYTES, "{} became {}", &page[..20], text.len());
        }
    }
}
