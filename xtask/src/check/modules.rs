//! The modules of a crate use each other in one direction: a module that is used by one it uses cannot be read, tested or
//! moved alone. A module is one at the top of `src`; paths that begin with `crate`, and with `super` where it leads to the
//! top, are edges. Tests may look anywhere.

use std::collections::{BTreeMap, BTreeSet};

use super::items;
use super::known::{Counted, Finding};
use super::sources::Source;

/// The name that the root file of a crate has among its modules.
const ROOT: &str = "(root)";

/// From one module to another, and the first place where.
type Edges = BTreeMap<(String, String), (String, usize)>;

/// Judges every crate.
pub(super) fn judge(sources: &[Source]) -> Counted {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_of_crate()) {
        if let Some(end) = source.path.find("/src/") {
            crates.entry(&source.path[..end + 5]).or_default().push(source);
        }
    }
    let findings = crates.iter().flat_map(|(folder, sources)| cycles(folder, sources)).collect();
    Counted { name: "cycles", rule: "the modules of a crate form no cycle", findings }
}

/// Every edge that is part of a cycle.
fn cycles(folder: &str, sources: &[&Source]) -> Vec<Finding> {
    let edges = edges(folder, sources);
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        next.entry(from).or_default().insert(to);
    }
    let mut found = Vec::new();
    for ((from, to), (path, line)) in &edges {
        if let Some(back) = shortest(&next, to, from) {
            let way = back.join(" → ");
            found.push(Finding { path: path.clone(), text: format!("line {line}: {from} → {way}") });
        }
    }
    found
}

/// The shortest way from one module to another, both included.
fn shortest<'a>(
    next: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    from: &'a str,
    to: &str,
) -> Option<Vec<&'a str>> {
    let mut ways = vec![vec![from]];
    let mut seen = BTreeSet::from([from]);
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = *way.last()?;
            if last == to {
                return Some(way);
            }
            for module in next.get(last).into_iter().flatten() {
                if seen.insert(module) {
                    longer.push([way.as_slice(), &[module]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

fn edges(folder: &str, sources: &[&Source]) -> Edges {
    let place = |source: &Source| module_path(&source.path[folder.len()..]);
    let has_library = sources.iter().any(|source| source.path.ends_with("/src/lib.rs"));
    // A program beside a library is another crate.
    let counted = |source: &&&Source| !(has_library && source.path == format!("{folder}main.rs"));
    let sources: Vec<&Source> = sources.iter().filter(counted).copied().collect();
    let modules: BTreeSet<String> =
        sources.iter().filter_map(|source| place(source).first().cloned()).collect();
    let root = sources.iter().find(|source| place(source).is_empty());
    let exported = root.map(|root| exported(&root.product, &modules)).unwrap_or_default();
    let mut edges = Edges::new();
    for source in sources {
        let own = place(source);
        let from = own.first().cloned().unwrap_or_else(|| ROOT.to_owned());
        for (name, line) in names_at_the_top(&source.product, own.len(), &modules) {
            let to = if modules.contains(&name) {
                name
            } else {
                exported.get(&name).cloned().unwrap_or_else(|| ROOT.to_owned())
            };
            if to != from {
                edges.entry((from.clone(), to)).or_insert_with(|| (source.path.clone(), line));
            }
        }
    }
    edges
}

/// The module that a file is, from the top: nothing for the root.
fn module_path(path: &str) -> Vec<String> {
    let mut parts: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || matches!(path, "lib.rs" | "main.rs") {
        parts.pop();
    }
    parts
}

/// The names that the root re-exports, with the module that each comes from.
fn exported(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (start, _) in items::words(root).filter(|(_, word)| *word == "use") {
        let statement = &root[start + 3..];
        let statement = &statement[..statement.find(';').unwrap_or(statement.len())];
        let statement = statement.trim().trim_start_matches("crate::").trim_start_matches("self::");
        let module = statement.split("::").next().unwrap_or_default().trim();
        if modules.contains(module) {
            for (_, word) in items::words(statement).skip(1) {
                found.insert(word.to_owned(), module.to_owned());
            }
        }
    }
    found
}

/// The names at the top of the crate that code at this depth uses, each with its line.
fn names_at_the_top(code: &str, depth: usize, modules: &BTreeSet<String>) -> Vec<(String, usize)> {
    let inline = items::inline_modules(code);
    let mut found = Vec::new();
    for (start, word) in items::words(code) {
        let line = 1 + code[..start].matches('\n').count();
        let continues = code[..start].trim_end().ends_with("::");
        let here = depth + inline.iter().filter(|(from, to)| (*from..*to).contains(&start)).count();
        let rest = match word {
            _ if continues => continue,
            "crate" => &code[start + word.len()..],
            "super" => match behind_supers(&code[start..], here) {
                Some(rest) => rest,
                None => continue,
            },
            // In the root a path may begin with a module; re-exports are no use of it.
            module
                if here == 0 && modules.contains(module) && code[start + word.len()..].starts_with("::") =>
            {
                if !is_in_use(&code[..start]) {
                    found.push((module.to_owned(), line));
                }
                continue;
            }
            _ => continue,
        };
        let Some(rest) = rest.strip_prefix("::") else { continue };
        found.extend(first_names(rest).into_iter().map(|name| (name, line)));
    }
    found
}

/// What follows `super::super`, when so many of them lead to the top.
fn behind_supers(mut text: &str, depth: usize) -> Option<&str> {
    let mut climbed = 0;
    while let Some(rest) = text.strip_prefix("super") {
        climbed += 1;
        match rest.strip_prefix("::") {
            Some(inner) if inner.starts_with("super") => text = inner,
            _ => return (climbed == depth).then_some(rest),
        }
    }
    None
}

/// True behind `use` in the same statement.
fn is_in_use(before: &str) -> bool {
    let statement = before.rsplit([';', '}']).next().unwrap_or_default();
    items::words(statement).any(|(_, word)| word == "use")
}

/// The first names of a path or of the group of paths at the beginning of `text`.
fn first_names(text: &str) -> Vec<String> {
    let Some(group) = text.strip_prefix('{') else {
        return items::words(text)
            .next()
            .filter(|(start, _)| *start == 0)
            .map(|(_, word)| word.to_owned())
            .into_iter()
            .collect();
    };
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut expects = true;
    for (index, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expects = true,
            c if expects && items::is_word(c) => {
                expects = false;
                names.extend(items::words(&group[index..]).next().map(|(_, word)| word.to_owned()));
            }
            _ => {}
        }
    }
    names.retain(|name| name != "self");
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(&format!("crates/a/src/{path}"), text)).collect();
        judge(&sources)
            .findings
            .into_iter()
            .map(|finding| format!("{}: {}", finding.path, finding.text))
            .collect()
    }

    #[test]
    fn one_direction_passes() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use b::B;\n"),
            ("a.rs", "use crate::b::B;\nuse crate::B;\n"),
            ("b.rs", "pub struct B;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_cycle_is_named_by_file() {
        let files = [
            ("a/mod.rs", "mod inner;\n"),
            ("a/inner.rs", "\nuse crate::{b::B, c};\n"),
            ("b.rs", "fn f() { super::c::g(); }\n"),
            ("c.rs", "use super::a::A;\n"),
        ];
        assert_eq!(
            found(&files),
            [
                "crates/a/src/a/inner.rs: line 2: a → b → c → a",
                "crates/a/src/a/inner.rs: line 2: a → c → a",
                "crates/a/src/b.rs: line 1: b → c → a → b",
                "crates/a/src/c.rs: line 1: c → a → c",
            ]
        );
    }

    #[test]
    fn an_item_of_the_root_closes_a_cycle_and_a_re_export_counts_for_its_module() {
        let defines =
            [("lib.rs", "mod a;\npub struct S;\nfn f() { a::g(); }\n"), ("a.rs", "use crate::S;\n")];
        assert_eq!(found(&defines).len(), 2);
        let re_exports = [
            ("lib.rs", "mod a;\nmod b;\npub use a::{A, g};\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "use crate::A;\n"),
        ];
        assert_eq!(found(&re_exports).len(), 2);
    }

    #[test]
    fn tests_and_inner_modules_are_no_edges() {
        let files = [
            ("a/mod.rs", "use crate::b::B;\nmod x { use super::super::b::C; }\n"),
            ("a/y.rs", "use super::z;\n"),
            ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\nmod inner { use super::a; }\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn supers_count_from_where_they_are() {
        let files =
            [("a/y.rs", "use super::super::b::B;\n"), ("b.rs", "mod inner { use super::super::a::y; }\n")];
        assert_eq!(found(&files).len(), 2);
    }
}
