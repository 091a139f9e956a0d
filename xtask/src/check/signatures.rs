//! Public functions return errors with a type: a `Result<_, String>` has no code, no hint and nothing to match on. Looks
//! at functions that are `pub`, and at those of a trait that is.

use super::items::{self, Signature};
use super::known::{Counted, Finding};
use super::sources::Source;

/// Judges the signatures in crates.
pub(super) fn judge(sources: &[Source]) -> Counted {
    let findings = sources.iter().filter(|source| source.is_of_crate()).flat_map(stringly).collect();
    Counted { name: "results", rule: "public functions return errors with a type", findings }
}

fn stringly(source: &Source) -> Vec<Finding> {
    items::signatures(&source.product)
        .into_iter()
        .filter(|signature| signature.is_public && fails_with_string(&signature.output))
        .map(|Signature { name, line, .. }| Finding {
            path: source.path.clone(),
            text: format!("line {line}: {name} returns Result<_, String>"),
        })
        .collect()
}

/// True when a type has a `Result` in it whose error is a `String`.
fn fails_with_string(output: &str) -> bool {
    output.match_indices("Result<").any(|(start, word)| {
        let arguments = items::type_arguments(&output[start + word.len()..]);
        arguments.len() == 2 && matches!(arguments[1].as_str(), "String" | "std::string::String")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        stringly(&Source::new("crates/a/src/lib.rs", text)).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn public_functions_and_methods_of_public_traits_are_judged() {
        assert_eq!(
            found("pub fn a(x: u8) -> Result<Vec<(u8, u8)>, String> { b() }\n"),
            ["line 1: a returns Result<_, String>"]
        );
        assert_eq!(found("\npub async fn a() -> io::Result<Result<(), String>> {}\n").len(), 1);
        assert_eq!(found("pub trait A {\n    fn a(&self) -> Result<u8, String>;\n}\n").len(), 1);
        assert_eq!(found("pub fn a() -> BoxFuture<'static, Result<u8, String>> {}\n").len(), 1);
    }

    #[test]
    fn private_ones_tests_and_other_errors_are_not() {
        for text in [
            "fn a() -> Result<u8, String> {}\n",
            "pub(crate) fn a() -> Result<u8, String> {}\n",
            "trait A {\n    fn a(&self) -> Result<u8, String>;\n}\n",
            "pub fn a() -> Result<String, Error> {}\n",
            "pub fn a(x: Result<u8, String>) -> u8 {}\n",
            "pub fn a() -> Result<BTreeMap<u8, String>, Error> {}\n",
            "#[cfg(test)]\nmod tests {\n    pub fn a() -> Result<u8, String> {}\n}\n",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
