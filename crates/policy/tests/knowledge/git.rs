//! Queries of git: which are proven, which are not, and what has to be in force when they run.

use qoder_policy::shell::knowledge::{
    SAFE_GIT_CONFIGURATION, SAFE_GIT_ENVIRONMENT, effects, git_needs_safe_configuration, safe_git_override,
};

use crate::knowledge::line::{text, words};

const PROVEN: &str = "
status
status -sb
status --porcelain=v2 --branch
status -uno src
log
log --oneline -5
log -n 3 --stat
log -p --follow src/a.rs
log --graph --all --decorate
log --since=yesterday --author=me --format=%h
log main..HEAD -- src
log -S foo --pickaxe-all
log -L1,5:a.rs
diff
diff --stat
diff --cached
diff --staged -- a b
diff HEAD~1 HEAD
diff -U5 main...HEAD
diff --name-only -w
diff --no-ext-diff --no-textconv
diff src/*.rs
show
show HEAD
show --stat HEAD~2
show HEAD:src/a.rs
branch
branch -a
branch -vv
branch --list 'x*'
branch --show-current
branch --contains HEAD
branch -r --merged
tag
tag -l 'v*'
tag -n3
tag --sort=-version:refname
remote
remote -v
remote get-url origin
rev-parse HEAD
rev-parse --show-toplevel
rev-parse --abbrev-ref HEAD
ls-files
ls-files -o --exclude-standard
ls-files '*.rs'
ls-tree -r HEAD --name-only
blame a
blame -L 1,10 a
describe --tags --always
shortlog -sn
stash list
stash show -p
config --get user.name
config --list
config -l --show-origin
cat-file -p HEAD
cat-file -t HEAD:a
rev-list --count HEAD
reflog
reflog -5
reflog show main
worktree list
worktree list --porcelain
grep foo
grep -n foo -- src
grep -e foo src
merge-base main HEAD
for-each-ref --sort=-committerdate refs/heads
show-ref --heads
symbolic-ref HEAD
symbolic-ref --short HEAD
count-objects -v
check-ignore -v a
--no-pager log
-P diff
";

const NOT_PROVEN: &str = "
-c core.pager=x log
-c alias.x=!id x
-C .. status
-p log
--paginate log
--git-dir=x status
--git-dir x status
--work-tree=x status
--exec-path=x status
--config-env=a=b log
--bare log
--namespace=x log
--unknown log
--help log
help log
log --help
log --output=x
log --ext-diff
log --textconv
log --show-signature
log --stdin
log --onelin
log $X
diff --output=x
diff --output x
diff --ext-diff
diff --textconv
diff -Ox
diff -O x
diff -U --output=x
diff --outpu=x
diff *
diff $X
show --output=x
show --ext-diff HEAD
show --textconv HEAD:a
branch new
branch -d old
branch -D old
branch -m a b
branch -v new
branch -f a b
branch -u origin/main
branch --unset-upstream
branch --edit-description
branch --delete old
tag v1
tag -d v1
tag -a v1 -m x
tag -s v1
tag -v v1
tag -f v1
remote add a b
remote remove a
remote rm a
remote set-url a b
remote show origin
remote update
remote prune origin
rev-parse --parseopt
stash
stash pop
stash drop
stash clear
stash push
stash apply
config user.name x
config user.name
config --unset a.b
config --add a.b c
config -e
config set a.b c
cat-file --textconv HEAD:a
cat-file --filters HEAD:a
cat-file --batch
cat-file HEAD
reflog expire --all
reflog delete HEAD@1
worktree add x
worktree remove x
worktree prune
grep -O foo
grep -Ovim foo
grep --open-files-in-pager foo
grep --open-files-in-pager=vim foo
grep --textconv foo
symbolic-ref HEAD refs/heads/x
symbolic-ref -d HEAD
add .
commit -m x
push
push --force
fetch
fetch --upload-pack=x
pull
clone x
ls-remote
ls-remote --upload-pack=x origin
checkout main
checkout -- a
switch main
restore a
reset --hard
clean -fdx
rm a
mv a b
merge main
rebase main
rebase --exec id main
cherry-pick x
apply a.patch
am a.patch
gc
init
submodule update
bisect run x
filter-branch
difftool
mergetool
daemon
unknown
$X
lo*
";

fn rows(table: &str) -> impl Iterator<Item = String> {
    table.lines().filter(|line| !line.is_empty()).map(|line| format!("git {line}"))
}

#[test]
fn queries_are_proven() {
    let proven = |line: &String| effects(&words(line)).read_only;
    assert_eq!(rows(PROVEN).filter(|line| !proven(line)).collect::<Vec<_>>(), [""; 0]);
    for line in rows(PROVEN) {
        let found = effects(&words(&line));
        assert!(found.complete && found.edits.is_empty() && !found.network, "{line}: {found:?}");
        assert!(git_needs_safe_configuration(&words(&line)), "{line}");
    }
}

#[test]
fn changes_and_options_that_run_programs_are_not() {
    let proven = |line: &String| effects(&words(line)).read_only;
    assert_eq!(rows(NOT_PROVEN).filter(proven).collect::<Vec<_>>(), [""; 0]);
    for line in rows(NOT_PROVEN) {
        let found = effects(&words(&line));
        assert!(!found.read_only && found.why_not.is_some(), "{line}: {found:?}");
        assert!(found.known, "{line}");
    }
}

#[test]
fn paths_in_queries_are_read() {
    let mut wrong = Vec::new();
    for (line, expected) in [
        ("git diff -- a b", &["a", "b"][..]),
        ("git diff", &["."]),
        ("git show HEAD:secret/key", &["secret/key"]),
        ("git log -p ':!x'", &["x"]),
        ("git diff ':(top)x'", &["x"]),
        ("git cat-file -p main:.env", &[".env"]),
        ("git diff --no-index /a /b", &["/a", "/b", "."]),
        ("git grep foo src", &["src", "."]),
        ("git grep -f patterns", &["patterns", "."]),
        ("git blame a", &["a"]),
    ] {
        let reads: Vec<String> = effects(&words(line)).reads.iter().map(|read| text(&read.word)).collect();
        wrong.extend((reads != expected).then(|| format!("{line}: {reads:?}")));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn the_safe_configuration_covers_what_a_repository_can_name() {
    let fixed =
        |key: &str| SAFE_GIT_CONFIGURATION.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
    assert_eq!(fixed("core.fsmonitor"), Some("false"));
    assert_eq!(fixed("core.hooksPath"), Some("/dev/null"));
    assert_eq!(fixed("core.pager"), Some("cat"));
    assert_eq!(fixed("gpg.program"), Some("false"));
    assert_eq!(fixed("core.sshCommand"), Some("false"));
    assert_eq!(fixed("protocol.allow"), Some("never"));
    // An empty value would make every comparison fail.
    assert_eq!(fixed("diff.external"), None);
    assert!(SAFE_GIT_ENVIRONMENT.contains(&("GIT_PAGER", "cat")));
    for (key, value) in [
        ("diff.external", Some("")),
        ("diff.pdf.textconv", Some("cat")),
        ("diff.a.b.TextConv", Some("cat")),
        ("diff.pdf.command", Some("")),
        ("filter.lfs.process", Some("")),
        ("filter.lfs.clean", Some("")),
        ("filter.lfs.required", Some("false")),
        ("pager.log", Some("false")),
        ("remote.origin.uploadpack", Some("false")),
        ("credential.https://x.y.helper", Some("")),
        ("user.name", None),
        ("diff.algorithm", None),
        ("remote.origin.url", None),
        ("nodots", None),
    ] {
        assert_eq!(safe_git_override(key), value, "{key}");
    }
}

#[test]
fn only_git_on_a_repository_needs_it() {
    for (line, needed) in [
        ("git status", true),
        ("/usr/bin/git -C x log", true),
        ("git --version", false),
        ("git", false),
        ("ls", false),
    ] {
        assert_eq!(git_needs_safe_configuration(&words(line)), needed, "{line}");
    }
}
