//! Everything that can execute is a command: each construct of the shell's grammar with the commands inside it.

use super::names;
use qoder_policy::shell::read;

/// Lines that are proven, with every command word in them.
const PROVEN: [(&str, &[&str]); 58] = [
    ("a", &["a"]),
    ("a b c", &["a"]),
    ("a; b", &["a", "b"]),
    ("a & b", &["a", "b"]),
    ("a && b || c", &["a", "b", "c"]),
    ("a\nb", &["a", "b"]),
    ("a ||\nb", &["a", "b"]),
    ("a | b |& c", &["a", "b", "c"]),
    ("a |\nb", &["a", "b"]),
    ("a && b | c > out", &["a", "b", "c"]),
    ("(a; b)", &["a", "b"]),
    ("{ a; b; }", &["a", "b"]),
    ("! a | b", &["a", "b"]),
    ("! (a)", &["a"]),
    ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
    ("while a; do b; done", &["a", "b"]),
    ("until a; do b; done", &["a", "b"]),
    ("for i in x $(a); do b \"$i\"; done", &["a", "b"]),
    ("for i in x; do b; done > out", &["b"]),
    ("select i in x; do b; done", &["b"]),
    ("case $x in a|b) one;; *) two;; esac", &["one", "two"]),
    ("case $(w) in a) one;& b) two;; esac", &["w", "one", "two"]),
    ("a $(b $(c))", &["c", "b", "a"]),
    ("a `b`", &["b", "a"]),
    ("a x`b`y", &["b", "a"]),
    ("a \"$(b)\"", &["b", "a"]),
    ("a \"x `b` y\"", &["b", "a"]),
    ("a <(b) >(c)", &["b", "c", "a"]),
    ("a < <(b)", &["b", "a"]),
    ("x=$(a)", &["a"]),
    ("x=$(a) b", &["a", "b"]),
    ("x=1 y=2 b", &["b"]),
    ("x=(1 $(a) `b`)", &["a", "b"]),
    ("a ${x:-$(b)}", &["b", "a"]),
    ("a \"${x:-$(b)}\"", &["b", "a"]),
    ("a > $(b)", &["b", "a"]),
    ("a <<< $(b)", &["b", "a"]),
    ("a <<< \"$(b)\" c", &["b", "a"]),
    ("a <<E\n$(b)\nE\nc", &["a", "b", "c"]),
    ("a <<'E'\n$(b)\nE\nc", &["a", "c"]),
    ("a <<\"E\"\n$(b)\nE\nc", &["a", "c"]),
    ("a <<-E\n\tx\n\tE\nb", &["a", "b"]),
    ("a <<E | b\nx\nE\nc", &["a", "b", "c"]),
    ("a <<E && b\nx\nE\nc", &["a", "b", "c"]),
    ("a <<E > out\nx\nE", &["a"]),
    ("python3 - <<'E'\nimport os\nE", &["python3"]),
    ("a # b\nc", &["a", "c"]),
    ("# only a comment", &[]),
    ("", &[]),
    ("a \\\n  b", &["a"]),
    ("a 'b; c' \"d && e\" f\\;g", &["a"]),
    ("[ -f a ] && b", &["[", "b"]),
    ("[[ -f a && $b == c* ]] && d", &["[[", "d"]),
    ("[[ $a =~ ^(b|c)$ ]]", &["[["]),
    ("export A=$(b)", &["b", "export"]),
    ("echo $((1 + 2))", &["echo"]),
    ("time a", &["time", "a"]),
    ("echo {a,b} {1..3}", &["echo"]),
];

/// Lines in which something is in doubt, with the commands that must be found all the same.
const DOUBTED: [(&str, &[&str]); 36] = [
    ("a <<A <<B\n1\nA\n$(b)\nB\nc", &["a", "b", "c"]),
    ("a <<E;rm x\nE", &["a", "rm"]),
    ("a <<E\n`b`\nE", &["a", "b"]),
    ("a `b \\`c\\``", &["a", "b", "c"]),
    ("a[$(b)]=1 c", &["b", "c"]),
    ("x=([$(a)]=1)", &["a"]),
    ("a ${x[$(b)]}", &["a", "b"]),
    ("a $((x[$(b)]))", &["a", "b"]),
    ("a $[ $(b) ]", &["a", "b"]),
    ("(( $(a) ))", &["a"]),
    ("for ((i=$(a); i<3; i++)); do b; done", &["a", "b"]),
    ("let x=$(a)", &["a", "let"]),
    ("[[ -v a[$(b)] ]]", &["[[", "b"]),
    ("f() { a; }; f", &["a", "f"]),
    ("function f { a; }", &["a"]),
    ("f() ( a )", &["a"]),
    ("time { a; }", &["a"]),
    ("! { a; }", &["a"]),
    ("coproc a", &["a"]),
    ("coproc { a; b; }", &["a", "b"]),
    ("{fd}>file a", &["a"]),
    ("a 3<>f; b", &["a", "b"]),
    ("a; )b", &["a", "b"]),
    ("a; ((( b", &["a", "b"]),
    ("rm x\n(((", &["rm"]),
    ("a 'unclosed", &["a"]),
    ("a \"unclosed $(b)", &["a", "b"]),
    ("a $(b", &["a", "b"]),
    ("a; fi; b", &["a", "b"]),
    ("if a; then b", &["a", "b"]),
    ("a;;b", &["a", "b"]),
    ("a &\\\n& b", &["a", "b"]),
    ("a $\\\n(b)", &["a"]),
    ("x\\\n=1 a", &["a"]),
    ("a ${x:-a`b`}", &["a", "b"]),
    ("a ${ b; }", &["a", "b"]),
];

#[test]
fn what_the_grammar_can_execute_is_found_and_proven() {
    for (line, expected) in PROVEN {
        let reading = read(line);
        assert_eq!(names(&reading), expected, "{line:?}");
        assert!(reading.is_proven() || line.contains(";&"), "{line:?}: {:?}", reading.doubts);
    }
}

#[test]
fn what_is_in_doubt_is_still_collected() {
    for (line, expected) in DOUBTED {
        let reading = read(line);
        assert!(!reading.is_proven(), "{line:?} has no doubt");
        for name in expected {
            let everywhere = reading.commands.iter().flat_map(|it| &it.words);
            let found = names(&reading).contains(name)
                || everywhere.filter_map(|it| it.as_literal()).any(|it| it == *name);
            assert!(found, "{line:?} lacks {name}: {reading:?}");
        }
    }
}

#[test]
fn a_command_keeps_its_spelling() {
    let reading = read("x=1  git   'status' -s >out; ls");
    let texts: Vec<_> = reading.commands.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts, ["x=1  git   'status' -s >out", "ls"]);
}

#[test]
fn names_come_as_written_and_as_base_names() {
    let reading = read("/opt/x/terraform apply; $x y");
    let terraform = reading.commands.first().unwrap();
    assert_eq!((terraform.name(), terraform.base_name()), (Some("/opt/x/terraform"), Some("terraform")));
    let dynamic = reading.commands.get(1).unwrap();
    assert!(dynamic.is_dynamic() && dynamic.name().is_none() && dynamic.base_name().is_none());
}
