//! Where commands run: `cd` tracked through lists, branches, loops, subshells and pipes.

use qoder_policy::shell::{Directory, read};

/// The places of the command named `here`, each as one text.
fn places(line: &str) -> Vec<String> {
    let reading = read(line);
    let command = reading.commands.iter().find(|it| it.name() == Some("here")).unwrap();
    let show = |place: &Directory| match place {
        Directory::Known(chain) => {
            chain.iter().map(qoder_policy::shell::Word::to_display).collect::<Vec<_>>().join(" ")
        }
        Directory::Unknown => "?".to_owned(),
    };
    let mut places: Vec<String> = command.directories.iter().map(show).collect();
    places.sort();
    places
}

#[test]
fn cd_is_tracked_through_the_line() {
    let cases: [(&str, &[&str]); 40] = [
        ("here", &[""]),
        ("cd x && here", &["x"]),
        ("cd x; here", &["", "x"]),
        ("cd x\nhere", &["", "x"]),
        ("cd x || here", &[""]),
        ("! cd x || here", &["x"]),
        ("cd x && cd y && here", &["x y"]),
        ("cd x && cd /y && here", &["/y"]),
        ("cd x && a; here", &["", "x"]),
        ("cd x && a | b && here", &["x"]),
        ("cd x & here", &[""]),
        ("(cd x); here", &[""]),
        ("(cd x && here)", &["x"]),
        ("{ cd x; } && here", &["x"]),
        ("cd x | here", &[""]),
        ("a $(cd x); here", &[""]),
        ("cd x && a $(here)", &["x"]),
        ("if cd x; then here; fi", &["x"]),
        ("if cd x; then a; else here; fi", &[""]),
        ("if a; then cd x; fi; here", &["", "x"]),
        ("for i in a b; do cd x; done; here", &["?"]),
        ("for i in a b; do here; cd x; done", &["", "?"]),
        ("while a; do b; done; here", &[""]),
        ("case a in b) cd x;; esac; here", &["", "x"]),
        ("cd && here", &["~"]),
        ("cd ~/x && here", &["~/x"]),
        ("cd $x && here", &["?"]),
        ("cd - && here", &["?"]),
        ("cd *x && here", &["?"]),
        ("cd -P x && here", &["x"]),
        ("cd -- x && here", &["x"]),
        ("CDPATH=/y; cd x && here", &["?"]),
        ("pushd x && here", &["x"]),
        ("popd && here", &["?"]),
        ("builtin cd x && here", &["x"]),
        ("command cd x; here", &["", "x"]),
        ("command -p cd x && here", &["", "x"]),
        ("time cd x && here", &["", "x"]),
        ("time -p cd x; here", &["", "x"]),
        ("eval 'cd x' && here", &["?"]),
    ];
    for (line, expected) in cases {
        assert_eq!(places(line), expected, "{line:?}");
    }
}

#[test]
fn a_script_inside_a_command_starts_where_the_command_runs() {
    assert_eq!(places("cd x && bash -c 'cd y && here'"), ["x y"]);
    assert_eq!(places("bash -c 'cd y'; here"), [""]);
}

#[test]
fn pipes_mark_their_readers() {
    let reading = read("a | b c | { d; }; e");
    let piped: Vec<_> = reading.commands.iter().map(|it| it.piped_input).collect();
    assert_eq!(piped, [false, true, true, false]);
}
