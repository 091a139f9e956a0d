//! Subcommands of git that change the working tree, the repository or another machine: which paths they touch, and
//! their options, so that rules about options find every spelling.

use crate::shell::knowledge::git::Kind::{Change, Network};
use crate::shell::knowledge::git::{Kind, Subcommand, names};
use crate::shell::knowledge::options::{Arguments, Groups};
use crate::shell::knowledge::{Effects, here};

const ADD: &str = "
    n dry-run, v verbose, f force, i interactive, p patch, e edit!!, u update, A all, no-all,
    N intent-to-add, refresh, ignore-errors, ignore-missing, renormalize, chmod=, sparse,
    pathspec-from-file=<!!
";
const COMMIT: &str = "
    m message=, a all, amend, n no-verify, s signoff, F file=<, C reuse-message=, c reedit-message=,
    v verbose, q quiet, allow-empty, allow-empty-message, no-edit, e edit, author=, date=, fixup=,
    squash=, S gpg-sign=?!!, no-gpg-sign, p patch, o only, i include, dry-run, short, reset-author,
    t template=<, cleanup=, no-post-rewrite, trailer=, pathspec-from-file=<!!
";
const PUSH: &str = "
    f force, force-with-lease=?, force-if-includes, u set-upstream, all branches, tags, d delete,
    n dry-run, mirror, prune, no-verify, atomic, v verbose, q quiet, follow-tags, o push-option=,
    porcelain, progress, thin, no-thin, signed=?!!, receive-pack exec=!!, repo=, 4 ipv4, 6 ipv6,
    recurse-submodules=
";
const FETCH: &str = "
    all, a append, depth=, deepen=, unshallow, f force, p prune, P prune-tags, t tags, n no-tags,
    j jobs=, q quiet, v verbose, k keep, multiple, u update-head-ok, upload-pack=!!, progress, dry-run,
    recurse-submodules=?, set-upstream, o server-option=, r rebase=?, no-rebase, ff, no-ff, ff-only,
    autostash, no-autostash, s strategy=, X strategy-option=, commit, no-commit, squash, no-verify, stat,
    no-stat
";
const CLONE: &str = "
    depth=, b branch=, single-branch, no-single-branch, recurse-submodules recursive=?,
    shallow-submodules, q quiet, v verbose, n no-checkout, bare, mirror, l local, no-hardlinks, s shared,
    reference=<, o origin=, j jobs=, filter=, sparse, no-tags, progress, separate-git-dir=>,
    u upload-pack=!!, c config=!!, template=<!!
";
const CHECKOUT: &str = "
    b c create=, B C force-create=, f force discard-changes, t track=?, no-track, q quiet, p patch,
    ours 2, theirs 3, m merge, d detach, orphan=, l, guess, no-guess, progress, conflict=, overlay,
    no-overlay, recurse-submodules, ignore-other-worktrees, pathspec-from-file=<!!
";
const RESTORE: &str = "
    s source=, S staged, W worktree, q quiet, p patch, ours, theirs, m merge, conflict=, overlay,
    no-overlay, progress, ignore-unmerged, recurse-submodules, pathspec-from-file=<!!
";
const CLEAN: &str = "f force, d, x, X, n dry-run, i interactive, q quiet, e exclude=";
const RESET: &str = "
    hard, soft, mixed, keep, merge, q quiet, p patch, N intent-to-add, no-refresh,
    pathspec-from-file=<!!
";
const MERGE: &str = "
    abort, continue, skip, quit, i interactive, onto=, x exec=!!, autosquash, no-autosquash, autostash,
    no-autostash, f force-rebase, no-ff, ff, ff-only, squash, n no-commit, commit, m message=, e edit,
    no-edit, q quiet, v verbose, s strategy=, X strategy-option=, no-verify, S gpg-sign=?!!, signoff,
    root, r rebase-merges=?, stat, allow-unrelated-histories, mainline=, keep-empty, update-refs
";
const APPLY: &str = "
    check, stat, numstat, summary, index, cached, 3 3way, R reverse, p=, C=, reject, v verbose, q quiet,
    whitespace=, directory=, include=, exclude=, unsafe-paths, recount, signoff, k keep, abort, continue,
    skip
";
const STASH: &str = "
    u include-untracked, a all, k keep-index, m message=, p patch, q quiet, S staged, index
";
const LOCAL: &str = "f force, q quiet, v verbose, n dry-run, all, prune=?, aggressive, auto";

/// The entries.
pub(crate) const TABLE: &[Subcommand] = &[
    entry("add", Change, &[ADD], add),
    entry("stage", Change, &[ADD], add),
    entry("commit", Change, &[COMMIT], opaque),
    entry("push", Network, &[PUSH], names),
    entry("fetch", Network, &[FETCH], names),
    entry("pull", Network, &[FETCH], everything),
    entry("clone", Network, &[CLONE], clone),
    entry(
        "ls-remote",
        Network,
        &["
            h heads branches, t tags, q quiet, refs, exit-code, get-url, symref, sort=,
            upload-pack exec=!!
        "],
        names,
    ),
    entry("remote update", Network, &["p prune"], names),
    entry("remote show", Network, &["n"], names),
    entry("remote add", Change, &["f, t=, m=, tags, no-tags, mirror=?"], names),
    entry("remote remove", Change, &[], names),
    entry("remote rm", Change, &[], names),
    entry("remote set-url", Change, &["push, add, delete"], names),
    entry("checkout", Change, &[CHECKOUT], checkout),
    entry("switch", Change, &[CHECKOUT], everything),
    entry("restore", Change, &[RESTORE], checkout),
    entry(
        "rm",
        Change,
        &["r, f force, cached, n dry-run, q quiet, ignore-unmatch, sparse, pathspec-from-file=<!!"],
        remove,
    ),
    entry("mv", Change, &["f force, n dry-run, k, v verbose, sparse"], move_files),
    entry("clean", Change, &[CLEAN], clean),
    entry("reset", Change, &[RESET], reset),
    entry("apply", Change, &[APPLY], apply),
    entry("am", Change, &[APPLY], apply),
    entry("merge", Change, &[MERGE], everything),
    entry("rebase", Change, &[MERGE], everything),
    entry("cherry-pick", Change, &[MERGE], everything),
    entry("revert", Change, &[MERGE], everything),
    entry("stash", Change, &[STASH], everything),
    entry("stash push", Change, &[STASH], everything),
    entry("stash save", Change, &[STASH], everything),
    entry("stash pop", Change, &[STASH], everything),
    entry("stash apply", Change, &[STASH], everything),
    entry("stash drop", Change, &[STASH], names),
    entry("stash clear", Change, &[], names),
    entry(
        "init",
        Change,
        &["q quiet, bare, b initial-branch=, template=<!!, shared=?, separate-git-dir=>"],
        init,
    ),
    entry("gc", Change, &[LOCAL], names),
    entry("prune", Change, &[LOCAL], names),
    entry("worktree add", Change, &["f force, b=, B=, d detach, q quiet, lock, no-checkout, track"], init),
    entry("worktree remove", Change, &["f force"], remove),
];

const fn entry(
    name: &'static str,
    kind: Kind,
    groups: Groups,
    rule: fn(&Arguments<'_>, &mut Effects),
) -> Subcommand {
    Subcommand { name, groups, kind, rule }
}

/// What is added is read into the repository.
fn add(arguments: &Arguments<'_>, effects: &mut Effects) {
    crate::shell::knowledge::git::paths(arguments, effects);
}

/// Hooks of the repository run.
fn opaque(_: &Arguments<'_>, effects: &mut Effects) {
    effects.incomplete("hooks of the repository may run");
}

fn everything(_: &Arguments<'_>, effects: &mut Effects) {
    effects.edit(&here(), true);
    effects.incomplete("which files change is known by the repository only");
}

fn clone(arguments: &Arguments<'_>, effects: &mut Effects) {
    match arguments.operands.get(1) {
        Some(folder) => effects.edit(folder, true),
        None => effects.edit(&here(), true),
    }
}

/// Paths are overwritten; a branch cannot be told from a path, and changes anything.
fn checkout(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        effects.edit(word, true);
    }
    everything(arguments, effects);
}

fn remove(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        effects.remove(word, arguments.has(&["r", "f"]));
    }
}

fn move_files(arguments: &Arguments<'_>, effects: &mut Effects) {
    let Some((to, from)) = arguments.operands.split_last() else { return };
    for word in from {
        effects.remove(word, true);
    }
    effects.edit(to, true);
}

/// Removes everything that is not tracked.
fn clean(arguments: &Arguments<'_>, effects: &mut Effects) {
    if arguments.has(&["n"]) {
        return;
    }
    for word in &arguments.operands {
        effects.remove(word, true);
    }
    if arguments.operands.is_empty() {
        effects.remove(&here(), true);
    }
}

fn reset(arguments: &Arguments<'_>, effects: &mut Effects) {
    if arguments.has(&["hard", "keep", "merge"]) {
        everything(arguments, effects);
    }
}

fn apply(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        effects.read_file(word, false);
    }
    everything(arguments, effects);
}

fn init(arguments: &Arguments<'_>, effects: &mut Effects) {
    match arguments.operands.first() {
        Some(folder) => effects.edit(folder, true),
        None => effects.edit(&here(), true),
    }
}
