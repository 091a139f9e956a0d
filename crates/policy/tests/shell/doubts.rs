//! What makes a line not proven, each with an ordinary neighbour that is.

use super::kinds;
use qoder_policy::shell::DoubtKind::{
    self, ChangesShell, DefinesName, DynamicCommand, EvaluatesText, LoadsCode, UnknownConstruct,
};
use qoder_policy::shell::{is_skippable_variable, read};

#[test]
fn each_danger_has_its_doubt() {
    let cases: [(&str, DoubtKind); 56] = [
        ("$x a", DynamicCommand),
        ("$(a) b", DynamicCommand),
        ("\"$x\"/a", DynamicCommand),
        ("{a,b}", DynamicCommand),
        ("l*", DynamicCommand),
        ("~/bin/a", DynamicCommand),
        ("timeout 5 $x", DynamicCommand),
        ("xargs $x", DynamicCommand),
        ("f() { a; }", DefinesName),
        ("alias a=b", DefinesName),
        ("source a", LoadsCode),
        (". a", LoadsCode),
        ("builtin source a", LoadsCode),
        ("enable -f a b", LoadsCode),
        ("set -k", ChangesShell),
        ("set -o posix", ChangesShell),
        ("set $x", ChangesShell),
        ("shopt -s extglob", ChangesShell),
        ("trap 'a' EXIT", ChangesShell),
        ("hash -p a b", ChangesShell),
        ("unset -f a", ChangesShell),
        ("unset PATH", ChangesShell),
        ("PATH=a", ChangesShell),
        ("export PATH=a", ChangesShell),
        ("declare -x LD_PRELOAD=a", ChangesShell),
        ("export $x", ChangesShell),
        ("for IFS in a; do b; done", ChangesShell),
        ("read PATH", ChangesShell),
        ("printf -v PATH a", ChangesShell),
        ("a ${PATH:=b}", ChangesShell),
        ("exec > a", ChangesShell),
        ("eval $x", EvaluatesText),
        ("bash -c \"$x\"", EvaluatesText),
        ("bash -c $x", EvaluatesText),
        ("bash $x", EvaluatesText),
        ("trap \"$x\" EXIT", EvaluatesText),
        ("echo $((x))", EvaluatesText),
        ("echo $(( $x ))", EvaluatesText),
        ("((x++))", EvaluatesText),
        ("let x", EvaluatesText),
        ("echo ${!x}", EvaluatesText),
        ("echo ${x@P}", EvaluatesText),
        ("echo ${x:y}", EvaluatesText),
        ("echo ${x[y]}", EvaluatesText),
        ("a[y]=1", EvaluatesText),
        ("[[ $x -eq 1 ]]", EvaluatesText),
        ("[[ -v $x ]]", EvaluatesText),
        ("test -v 'a[b]'", EvaluatesText),
        ("declare -n a=b", EvaluatesText),
        ("declare -i a=b", EvaluatesText),
        ("read 'a[b]'", EvaluatesText),
        ("unset 'a[b]'", EvaluatesText),
        ("mapfile -C a b", EvaluatesText),
        ("bash <<E\n$x\nE", EvaluatesText),
        ("coproc a", UnknownConstruct),
        ("a\\\nb", UnknownConstruct),
    ];
    for (line, kind) in cases {
        assert!(kinds(line).contains(&kind), "{line:?}: {:?}", kinds(line));
    }
}

#[test]
fn ordinary_lines_are_proven() {
    let lines = [
        "git status",
        "cargo test -p core -- --nocapture 2>&1 | tail -n 20",
        "cd crates && ls -la",
        "grep -rn 'fn main' src | head -5",
        "find . -name '*.rs' -not -path './target/*' | xargs wc -l",
        "for f in *.txt; do echo \"$f\"; done",
        "set -euo pipefail; make",
        "set -e",
        "export LANG=C",
        "x=1; echo $x",
        "read -r line",
        "[ -z \"$x\" ] && echo empty",
        "[[ 3 -gt 2 ]]",
        "test -v x",
        "cat > out.txt <<'EOF'\nany $(text) `here`\nEOF",
        "git commit -m \"$(cat <<'EOF'\nA message\n\nwith lines\nEOF\n)\"",
        "echo \"a $b ${c} $(date)\"",
        "command -v git",
        "ls && (cd x && make) || echo failed",
        "if [ -f a ]; then cat a; else echo none; fi",
        "while read -r l; do echo \"$l\"; done < in.txt",
        "unset x",
        "printf '%s\\n' a b",
        "sed -n '1,20p' file | sort -u > out",
        "echo ${x%.*} ${x#*/} ${x/a/b} ${x:1:2} ${x^^} ${#x} ${x:-y}",
        "awk '{ print $1 }' f",
        "curl -s 'http://h/?a=1&b=2'",
        "mkdir -p a/b && touch a/b/c",
        "sleep 1 & wait",
    ];
    for line in lines {
        assert!(read(line).is_proven(), "{line:?}: {:?}", read(line).doubts);
    }
}

#[test]
fn only_variables_that_load_nothing_are_harmless() {
    for name in ["LANG", "LC_ALL", "TZ", "NO_COLOR", "CI", "DEBIAN_FRONTEND", "FORCE_COLOR", "COLUMNS"] {
        assert!(is_skippable_variable(name), "{name}");
    }
    for name in [
        "PATH",
        "LD_PRELOAD",
        "LC_",
        "LOCPATH",
        "PAGER",
        "GIT_DIR",
        "TERM",
        "BASH_ENV",
        "lang",
        "NODE_OPTIONS",
        "",
    ] {
        assert!(!is_skippable_variable(name), "{name}");
    }
}

#[test]
fn every_doubt_can_be_explained() {
    let reading = read("$x; source a; f() { b; }");
    assert!(reading.doubts.len() >= 3);
    assert!(reading.doubts.iter().all(|doubt| doubt.kind.describe().starts_with("the ")));
}
