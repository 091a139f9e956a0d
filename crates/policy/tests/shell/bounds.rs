//! Bounds: long, deep and numerous input ends in a doubt, and everything read before stays in the list.

use super::kinds;
use qoder_policy::shell::DoubtKind::{TooDeep, TooLong, TooMany};
use qoder_policy::shell::read;

#[test]
fn a_line_that_is_too_long_is_read_up_to_the_bound() {
    let line = format!("rm x; echo {}", "y".repeat(70 * 1024));
    let reading = read(&line);
    assert!(reading.doubts.iter().any(|doubt| doubt.kind == TooLong));
    assert_eq!(reading.commands.first().and_then(|it| it.name()), Some("rm"));
    let fits = format!("echo {}", "y".repeat(60 * 1024));
    assert!(read(&fits).is_proven());
}

#[test]
fn a_cut_inside_a_character_is_no_panic() {
    for shift in 0..4 {
        let line = format!("{}{}", "a".repeat(shift), "é".repeat(40 * 1024));
        assert!(kinds(&line).contains(&TooLong));
    }
}

#[test]
fn characters_of_several_bytes_are_read_in_any_place() {
    for line in
        ["{🎉", "é(é", "a;é;)é", "é=é é", "(é\n)é(", "${é}", "é`é", "a <<é\né", "[[ é", "}é", "\"é$(é"]
    {
        let reading = read(line);
        assert_eq!(reading, read(line), "{line:?}");
    }
}

#[test]
fn deep_nesting_is_a_doubt_and_finishes() {
    for (open, close) in
        [("$(", ")"), ("(", ")"), ("{ ", "; }"), ("if ", ""), ("\"$(", ")\""), ("${x:-", "}"), ("<(", ")")]
    {
        let line = format!("first; {}a{}", open.repeat(3000), close.repeat(3000));
        let reading = read(&line);
        assert!(!reading.is_proven(), "{open:?}");
        assert_eq!(reading.commands.first().and_then(|it| it.name()), Some("first"), "{open:?}");
    }
    assert!(kinds(&format!("{}a{}", "$(".repeat(100), ")".repeat(100))).contains(&TooDeep));
    assert!(read(&format!("{}a{}", "echo $(".repeat(20), ")".repeat(20))).is_proven());
}

#[test]
fn many_commands_are_a_doubt() {
    let reading = read(&"a\n".repeat(5000));
    assert!(reading.doubts.iter().any(|doubt| doubt.kind == TooMany));
    assert_eq!(reading.commands.len(), 4096);
    assert!(read(&"a\n".repeat(4000)).is_proven());
}

#[test]
fn wrappers_inside_wrappers_are_bounded() {
    let chain = |count| format!("{}rm x", "env ".repeat(count));
    let deep = read(&chain(20));
    assert!(deep.doubts.iter().any(|doubt| doubt.kind == TooDeep));
    assert!(read(&chain(5)).commands.iter().any(|it| it.name() == Some("rm")));
    let wide = read(&format!("npx {}", "npx ".repeat(10_000)));
    assert!(wide.commands.len() <= 4096);
}

#[test]
fn scripts_inside_scripts_are_bounded() {
    let mut line = "rm x".to_owned();
    for _ in 0..12 {
        line = format!("bash -c '{}'", line.replace('\'', "'\\''"));
        if line.len() > 60_000 {
            break;
        }
    }
    assert!(kinds(&line).contains(&TooDeep), "{:?}", kinds(&line));
}

#[test]
fn long_pipelines_and_many_here_documents_are_doubts() {
    assert!(kinds(&"a |".repeat(2000)).contains(&TooMany));
    assert!(kinds(&"a <<E\nE\n".repeat(100)).contains(&TooMany));
    assert!(read("a | b | c | d | e | f").is_proven());
}
