//! Properties of the proof: what is not understood never helps it, the order of options does not matter, and no words
//! whatsoever make it fail.

use proptest::prelude::*;
use qoder_policy::shell::knowledge::{
    effects, git_needs_safe_configuration, matches_with_flags, may_match_with_flags, suggestable_prefix,
};
use qoder_policy::shell::{Piece, Word};

use crate::knowledge::line::words;

const PROGRAMS: &[&str] = &[
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "grep",
    "rg",
    "stat",
    "sort",
    "uniq",
    "cut",
    "diff",
    "date",
    "tree",
    "du",
    "file",
    "xxd",
    "sed",
    "awk",
    "jq",
    "cd",
    "pwd",
    "type",
    "git",
    "git log",
    "git diff",
    "git status",
    "git branch",
    "find",
    "rm",
    "cp",
    "tar",
    "curl",
    "test",
    "printf",
    "dd",
    "python3",
    "chmod",
    "rmdir",
    "strings",
    "zip",
];
/// Options that none of the programs has.
const UNKNOWN: &[&str] = &["--no-such-option", "-Ж", "--outpu=x", "--no-such=1"];

fn settings() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() }
}

fn piece() -> impl Strategy<Value = Piece> {
    let text = prop_oneof![
        "[-a-zA-Z0-9=/.@:+~!]{0,6}",
        prop::sample::select(vec![
            "-",
            "--",
            "-n",
            "-r",
            "--output",
            "--output=",
            "-o",
            "-exec",
            "-delete",
            ".",
            "s/a/b/",
            "{print $1}",
            "if=",
            "$",
            "é",
            "/dev/null",
            "a:b",
            "(",
            ")",
            "@x",
            "=@",
            "-f",
            "-i",
            "-e",
            "[",
            "]",
            "\\",
            "\"",
            "5,",
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        6 => text.clone().prop_map(Piece::Literal),
        1 => Just(Piece::Home),
        1 => Just(Piece::Variable("X".to_owned())),
        1 => Just(Piece::Glob("*".to_owned())),
        1 => text.prop_map(Piece::Unknown),
    ]
}

fn any_words() -> impl Strategy<Value = Vec<Word>> {
    let word = prop::collection::vec(piece(), 0..3).prop_map(|pieces| Word { pieces });
    (prop::sample::select(PROGRAMS), prop::collection::vec(word, 0..6)).prop_map(|(program, rest)| {
        let mut all = words(program);
        all.extend(rest);
        all
    })
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn any_words_have_an_answer(words in any_words()) {
        let found = effects(&words);
        prop_assert_eq!(found.read_only, found.why_not.is_none());
        if found.read_only {
            prop_assert!(found.complete && found.known && !found.network);
            prop_assert!(found.edits.is_empty() && found.removals.is_empty());
        }
        let rule = ["rm".to_owned(), "-rf".to_owned()];
        prop_assert!(!matches_with_flags(&rule, true, &words) || may_match_with_flags(&rule, true, &words));
        prop_assert!(suggestable_prefix(&words).is_none_or(|length| length <= words.len()));
        let _ = git_needs_safe_configuration(&words);
    }

    #[test]
    fn an_unknown_option_is_never_proven(words in any_words(), option in prop::sample::select(UNKNOWN)) {
        // Directly behind the program it can be no value of another option.
        let mut more = words;
        more.insert(1, Word::literal(option));
        prop_assert!(!effects(&more).read_only, "{:?}", more);
    }

    #[test]
    fn a_word_that_may_split_is_never_proven(words in any_words(), at in 1_usize..8) {
        let mut more = words.clone();
        more.insert(at.min(words.len()), Word { pieces: vec![Piece::Variable("X".to_owned())] });
        let shows_only = words.first().and_then(Word::as_literal) == Some("printf");
        prop_assert!(shows_only || !effects(&more).read_only, "{:?}", more);
    }

    #[test]
    fn the_order_of_options_does_not_matter(seed in prop::sample::subsequence(vec!["-l", "-a", "-R", "-h", "--color=auto", "-y"], 0..6).prop_shuffle()) {
        let mut sorted = seed.clone();
        sorted.sort_unstable();
        let of = |options: &[&str]| effects(&words(&format!("ls {} src", options.join(" "))));
        let (one, other) = (of(&seed), of(&sorted));
        prop_assert_eq!(one.read_only, other.read_only);
        prop_assert_eq!(one.reads, other.reads);
        let behind = effects(&words(&format!("ls src {}", seed.join(" "))));
        prop_assert_eq!(behind.read_only, other.read_only);
    }
}
