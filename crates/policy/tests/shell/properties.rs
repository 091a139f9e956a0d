//! Properties that hold for any text: reading is total, blanks and quotes around literal words change nothing, and a
//! command appended is a command found.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use qoder_policy::shell::{Reading, Word, read};

/// The literal words of all commands.
fn words(reading: &Reading) -> Vec<Vec<Option<String>>> {
    let of = |words: &[Word]| words.iter().map(|it| it.as_literal().map(str::to_owned)).collect();
    reading.commands.iter().map(|command| of(&command.words)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, rng_seed: RngSeed::Fixed(7), max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_can_be_read(text in ".{0,200}") {
        let reading = read(&text);
        for command in &reading.commands {
            prop_assert!(!command.directories.is_empty());
            if let Some(wrapped) = command.wrapped {
                prop_assert!(wrapped.outer < reading.commands.len());
            }
        }
    }

    #[test]
    fn any_row_of_shell_pieces_can_be_read(pieces in proptest::collection::vec(piece(), 0..40)) {
        let reading = read(&pieces.concat());
        prop_assert!(reading.commands.len() <= 4096);
    }

    #[test]
    fn blanks_between_words_change_nothing(row in proptest::collection::vec("[a-z0-9_./-]{1,8}", 1..6), blank in "[ \t]{1,3}") {
        prop_assert_eq!(words(&read(&row.join(" "))), words(&read(&row.join(&blank))));
    }

    #[test]
    fn quotes_around_words_change_nothing(row in proptest::collection::vec("[b-z0-9_./-]{1,8}", 1..6)) {
        let plain = read(&row.join(" "));
        prop_assume!(plain.is_proven());
        for quote in ["'", "\""] {
            let quoted: Vec<_> = row.iter().map(|word| format!("{quote}{word}{quote}")).collect();
            prop_assert_eq!(words(&plain), words(&read(&quoted.join(" "))));
        }
    }

    #[test]
    fn an_appended_command_is_found(pieces in proptest::collection::vec(piece(), 0..8)) {
        let line = pieces.concat();
        let before = read(&line);
        prop_assume!(before.is_proven() && !line.contains('#') && !line.trim_end().ends_with(['&', ';', '\\', '|', '<', '>']));
        let after = read(&format!("{line}; appended"));
        let found = after.commands.iter().any(|it| it.name() == Some("appended"));
        prop_assert!(found, "{:?}: {:?}", line, after);
        prop_assert!(after.commands.len() > before.commands.len());
    }
}

/// A piece of shell text.
fn piece() -> impl Strategy<Value = &'static str> {
    const PIECES: [&str; 56] = [
        "a",
        "b ",
        " ",
        "\n",
        ";",
        "&",
        "&&",
        "|",
        "||",
        "|&",
        "(",
        ")",
        "{ ",
        "; }",
        "$(",
        "`",
        "\"",
        "'",
        "\\",
        "$x",
        "${x",
        "}",
        ":-",
        "$((",
        "))",
        "<",
        ">",
        ">>",
        "<<E\n",
        "E\n",
        "<<<",
        "2>&1",
        "if ",
        "; then ",
        "; fi",
        "for i in ",
        "; do ",
        "; done",
        "case x in ",
        ") ",
        ";; ",
        "esac",
        "[[ ",
        " ]]",
        "=",
        "x=1 ",
        "=(",
        "~",
        "*",
        "{a,b}",
        "#",
        "!",
        "function ",
        "time ",
        "eval ",
        "é",
    ];
    proptest::sample::select(&PIECES[..])
}
