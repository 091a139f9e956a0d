//! Sentences that look something up: files by name, texts in files, and where a
//! name is defined. Words behind the place are not understood and handed on as
//! such.

use super::intent::{Intent, Reading};
use super::phrases::{first_part, is_here, split_outside_quotes, strip_fillers, strip_word_prefix, unquote};

const ARTICLES: &[&str] = &["the", "a", "an", "all", "every", "each", "any", "me", "us", "of", "for"];

/// Reads a sentence that looks something up.
pub(super) fn read(text: &str) -> Option<Reading> {
    definition(text).or_else(|| named(text)).or_else(|| list(text)).or_else(|| search(text))
}

/// Where to look, and the words that come after it.
struct Place {
    path: Option<String>,
    left_over: Option<String>,
}

impl Place {
    fn read(text: &str) -> Self {
        if is_here(text) {
            return Self { path: None, left_over: None };
        }
        // `this repository and …`: the first two words say it.
        let (article, after) = first_part(text);
        let (noun, rest) = first_part(after);
        let (path, rest) = if is_here(&format!("{article} {noun}")) {
            (String::new(), rest)
        } else {
            let kinds = ["the file", "the directory", "the folder", "file", "directory", "folder", "the"];
            first_part(strip_fillers(text, &kinds))
        };
        let rest = strip_word_prefix(rest, &["directory", "folder", "file"]).unwrap_or(rest);
        let has_words = rest.contains(char::is_alphanumeric);
        Self { path: (!is_here(&path)).then_some(path), left_over: has_words.then(|| rest.trim().to_owned()) }
    }

    fn reading(self, intent: impl FnOnce(Option<String>) -> Intent) -> Reading {
        Reading { intent: intent(self.path), left_over: self.left_over }
    }
}

fn split_place(text: &str) -> (&str, Place) {
    match split_outside_quotes(text, " in ") {
        Some((object, place)) => (object, Place::read(place)),
        None => (text, Place { path: None, left_over: None }),
    }
}

/// `where is NAME defined`, `find the definition of NAME`.
fn definition(text: &str) -> Option<Reading> {
    const KINDS: &[&str] =
        &["the", "function", "method", "class", "struct", "type", "fn", "def", "definition of", "where"];
    let asks = ["where is", "where's", "find", "find where", "show me", "show", "locate", "search for"];
    let rest = strip_word_prefix(text, &asks)?;
    let (object, place) = split_place(rest);
    let ends = ["is defined", "is declared", "defined", "declared"];
    let asked = strip_fillers(object, &["the", "where"]);
    let object = unquote_end(asked);
    let name = match strip_word_prefix(object, &["definition of", "definition for"]) {
        Some(name) => name,
        None => ends.iter().find_map(|end| strip_word_suffix(object, end))?,
    };
    let name = unquote(strip_fillers(name, KINDS));
    let name = name.trim_end_matches("()");
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    is_name.then(|| place.reading(|path| Intent::Definition { name: name.to_owned(), path }))
}

fn unquote_end(text: &str) -> &str {
    text.trim().trim_end_matches(['.', '?', '!', ',', ';'])
}

fn strip_word_suffix<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let start = text.len().checked_sub(suffix.len())?;
    let (front, end) = (text.get(..start)?, text.get(start..)?);
    (end.eq_ignore_ascii_case(suffix) && front.ends_with(char::is_whitespace)).then(|| front.trim_end())
}

/// `find all files named NAME`, `where is main.rs`.
fn named(text: &str) -> Option<Reading> {
    let verbs = [
        "find",
        "list",
        "show me",
        "show",
        "locate",
        "search for",
        "look for",
        "where is",
        "where's",
        "where are",
    ];
    let rest = strip_fillers(strip_word_prefix(text, &verbs)?, ARTICLES);
    let (object, place) = split_place(rest);
    let calls = ["files named", "file named", "files called", "file called", "files with the name"];
    let asked = strip_word_prefix(object, &calls);
    let looks_for = strip_word_prefix(text, &["show", "list"]).is_none();
    let name = match asked {
        Some(name) => unquote(name),
        // The name of a source file rather than a text: it ends like one.
        None if looks_for && !object.contains(char::is_whitespace) => {
            let name = unquote_end(object);
            let (stem, ending) = name.rsplit_once('.')?;
            let is_file = !stem.is_empty() && !name.starts_with(['"', '\'', '`']) && !name.contains('*');
            suffix(ending).filter(|_| is_file).map(|_| name.to_owned())?
        }
        None => return None,
    };
    if name.is_empty()
        || (asked.is_some() && name.contains(char::is_whitespace) && !object.contains(['"', '`', '\'']))
    {
        return Some(Intent::Unclear("Which name? Say: find all files named `main.rs`.".into()).into());
    }
    let pattern = format!("**/{name}");
    Some(place.reading(|path| Intent::List { pattern, path }))
}

fn list(text: &str) -> Option<Reading> {
    let verbs = ["list", "ls", "show", "find", "what are", "which", "what", "glob"];
    let rest = strip_fillers(strip_word_prefix(text, &verbs)?, ARTICLES);
    let (object, place) = split_place(rest);
    let object = unquote(object);
    let mut words: Vec<&str> = object.split_whitespace().collect();
    while words.len() > 1 && matches!(words.last(), Some(&("are" | "there" | "exist"))) {
        words.pop();
    }
    let by_kind = match &words[..] {
        [kind, files] if files.eq_ignore_ascii_case("files") => suffix(kind).map(|name| format!("*.{name}")),
        _ => None,
    };
    let pattern = words.iter().copied().find(|word| word.contains('*')).or(by_kind.as_deref());
    let names_files =
        words.iter().any(|word| word.eq_ignore_ascii_case("files") || word.eq_ignore_ascii_case("file"));
    let is_list = strip_word_prefix(text, &["list", "ls", "glob"]).is_some();
    if pattern.is_none() && !(names_files && words.len() == 1) && !(is_list && words.len() <= 1) {
        return None;
    }
    // `ls src` and `list src` name the place without `in`.
    let bare =
        words.first().filter(|_| is_list && !names_files && pattern.is_none()).map(|word| (*word).to_owned());
    let pattern = match pattern {
        Some(pattern) if pattern.contains('/') => pattern.to_owned(),
        Some(pattern) => format!("**/{pattern}"),
        None => "*".into(),
    };
    Some(place.reading(|path| Intent::List { pattern, path: path.or(bare) }))
}

/// The suffix of a kind of files: `.rs`, `rs` or `Rust`.
fn suffix(kind: &str) -> Option<String> {
    const KINDS: &[(&str, &str)] = &[
        ("rust", "rs"),
        ("python", "py"),
        ("javascript", "js"),
        ("typescript", "ts"),
        ("markdown", "md"),
        ("yaml", "{yaml,yml}"),
    ];
    const EXTENSIONS: &[&str] = &[
        "rs", "py", "js", "ts", "tsx", "md", "json", "toml", "yml", "txt", "go", "java", "html", "css", "sh",
    ];
    let folded = kind.to_ascii_lowercase();
    if let Some(bare) = folded.strip_prefix('.') {
        return bare.chars().all(char::is_alphanumeric).then(|| bare.to_owned());
    }
    let named = KINDS.iter().find(|(name, _)| *name == folded).map(|(_, extension)| *extension);
    named.or_else(|| EXTENSIONS.iter().copied().find(|known| *known == folded)).map(str::to_owned)
}

fn search(text: &str) -> Option<Reading> {
    const FILLERS: &[&str] = &[
        "for",
        "every",
        "all",
        "each",
        "any",
        "the",
        "occurrences of",
        "occurrence of",
        "uses of",
        "mentions of",
        "text",
        "word",
        "string",
        "lines with",
        "lines containing",
    ];
    if let Some(found) = strip_word_prefix(text, &["grep"]).and_then(shell_grep) {
        return Some(found);
    }
    let rest = strip_word_prefix(text, &["find", "search", "grep", "look for", "where is", "locate"])?;
    let (object, place) = split_place(rest);
    let object = strip_fillers(object, FILLERS);
    let wanted = marker(object).map_or_else(|| unquote(object), str::to_owned);
    if wanted.is_empty() {
        return Some(Intent::Unclear("What shall I look for? Say: find `text` in `folder`.".into()).into());
    }
    Some(place.reading(|path| Intent::Search { text: wanted, path }))
}

/// `grep TEXT PLACE`, as one would type it in a shell.
fn shell_grep(rest: &str) -> Option<Reading> {
    if strip_word_prefix(rest, &["for"]).is_some() || split_outside_quotes(rest, " in ").is_some() {
        return None;
    }
    let mut options = Vec::new();
    let mut rest = rest;
    while rest.starts_with('-') {
        let (option, after) = first_part(rest);
        options.push(option);
        rest = after;
    }
    let (text, after) = first_part(rest);
    let (path, surplus) = first_part(after);
    if text.is_empty() || !surplus.is_empty() || (path.is_empty() && options.is_empty()) {
        return None;
    }
    let left_over = (!options.is_empty()).then(|| options.join(" "));
    let path = (!is_here(&path)).then_some(path);
    Some(Reading { intent: Intent::Search { text, path }, left_over })
}

/// An upper-case marker such as `TODO` behind its plural or in front of a word for what it marks.
fn marker(object: &str) -> Option<&str> {
    let mut words = unquote_end(object).split_whitespace();
    let first = words.next()?;
    let is_noun = |word: &str| {
        ["comments", "comment", "markers", "marker", "notes", "note"]
            .iter()
            .any(|noun| noun.eq_ignore_ascii_case(word))
    };
    if !words.all(is_noun) {
        return None;
    }
    let singular = first.strip_suffix("'s").or_else(|| first.strip_suffix('s')).unwrap_or(first);
    (singular.len() > 1 && singular.chars().all(|c| c.is_ascii_uppercase() || c == '_')).then_some(singular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_lose_their_plural_and_nothing_else_does() {
        assert_eq!(marker("TODOs"), Some("TODO"));
        assert_eq!(marker("FIXME comments?"), Some("FIXME"));
        assert_eq!(marker("TODO"), Some("TODO"));
        assert_eq!(marker("Strings"), None);
        assert_eq!(marker("TODOs left by me"), None);
        assert_eq!(marker("\"TODOs\""), None);
        assert_eq!(marker(""), None);
    }

    #[test]
    fn words_behind_the_place_are_left_over() {
        let reading = read("find TODO in src and fix them").unwrap();
        assert_eq!(reading.intent, Intent::Search { text: "TODO".into(), path: Some("src".into()) });
        assert_eq!(reading.left_over.as_deref(), Some("and fix them"));
        let reading = read("find TODO in this repository and fix them").unwrap();
        assert_eq!(reading.intent, Intent::Search { text: "TODO".into(), path: None });
        assert_eq!(reading.left_over.as_deref(), Some("and fix them"));
        let reading = read("grep -rn TODO src").unwrap();
        assert_eq!(reading.intent, Intent::Search { text: "TODO".into(), path: Some("src".into()) });
        assert_eq!(reading.left_over.as_deref(), Some("-rn"));
    }
}
