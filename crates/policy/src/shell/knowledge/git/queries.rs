//! Subcommands of git that ask: their options, those that would change something included, since a list of branches
//! and the removal of one differ by an option only.

use crate::shell::knowledge::Effects;
use crate::shell::knowledge::git::Kind::Query;
use crate::shell::knowledge::git::{Subcommand, history, names, names_of_files, paths, revisions_or_paths};
use crate::shell::knowledge::options::{Arguments, Groups};

const DIFF: &str = "
    p u patch, s no-patch, U unified=?, raw, patch-with-raw, indent-heuristic, no-indent-heuristic,
    minimal, patience, histogram, anchored=, diff-algorithm=, stat=?, stat-width=, stat-count=,
    stat-name-width=, compact-summary, numstat, shortstat, X dirstat=?, cumulative, summary,
    patch-with-stat, z, name-only, name-status, submodule=?!!, color=?, no-color, color-moved=?,
    no-color-moved, color-moved-ws=, word-diff=?, word-diff-regex=, color-words=?, no-renames,
    rename-empty, no-rename-empty, check, ws-error-highlight=, full-index, binary, abbrev=?, no-abbrev,
    B break-rewrites=?, M find-renames=?, C find-copies=?, find-copies-harder, D irreversible-delete, l=,
    diff-filter=, S=, G=, find-object=, pickaxe-all, pickaxe-regex, relative=?, no-relative, R, a text,
    ignore-cr-at-eol, ignore-space-at-eol, b ignore-space-change, w ignore-all-space, ignore-blank-lines,
    I ignore-matching-lines=, inter-hunk-context=, W function-context, exit-code, quiet, no-ext-diff,
    no-textconv, ignore-submodules=?, src-prefix=, dst-prefix=, no-prefix, default-prefix, line-prefix=,
    ita-invisible-in-index, skip-to=, rotate-to=, m, c, cc, combined-all-paths, diff-merges=,
    no-diff-merges, t, output-indicator-new=, output-indicator-old=, output-indicator-context=, output=>,
    ext-diff!!, textconv!!, O=<!!, remerge-diff!
";
const DIFF_ONLY: &str = "cached staged, merge-base, no-index, q, 1 base, 2 ours, 3 theirs, 0";
const LOG: &str = "
    oneline, graph, no-graph, all, branches=?, tags=?, remotes=?, glob=, exclude=, n max-count=, #,
    skip=, since after=, until before=, author=, committer=, grep=, grep-reflog=, all-match, invert-grep,
    i regexp-ignore-case, E extended-regexp, F fixed-strings, P perl-regexp, basic-regexp, merges,
    no-merges, first-parent, reverse, date-order, topo-order, author-date-order, decorate=?, no-decorate,
    decorate-refs=, decorate-refs-exclude=, clear-decorations, pretty=?, format=, abbrev-commit,
    no-abbrev-commit, date=, relative-date, follow, L=, left-right, left-only, right-only, cherry-pick,
    cherry-mark, cherry, boundary, simplify-by-decoration, simplify-merges, full-history,
    ancestry-path=?, source, no-walk=?, do-walk, parents, children, show-pulls, notes=?, no-notes,
    log-size, encoding=, expand-tabs=?, no-expand-tabs, max-parents=, min-parents=, no-max-parents,
    no-min-parents, dense, sparse, g walk-reflogs, merge, mailmap use-mailmap, no-mailmap, reflog,
    alternate-refs!!, stdin!!, show-signature!!
";
const STATUS: &str = "
    s short, b branch, show-stash, porcelain=?, long, v verbose, u untracked-files=?,
    ignore-submodules=?, ignored=?, z, column=?, no-column, ahead-behind, no-ahead-behind, renames,
    no-renames, M find-renames=?
";
const BRANCH: &str = "
    a all, r remotes, v verbose, l list, color=?, no-color, contains=?, no-contains=?, merged=?,
    no-merged=?, points-at=, sort=, format=, show-current, column=?, no-column, abbrev=?, no-abbrev,
    i ignore-case, omit-empty, q quiet, d delete!, D!, m move!, M!, c copy!, C!, f force!, t track=?!,
    no-track!, u set-upstream-to=!, unset-upstream!, edit-description!!, create-reflog!,
    recurse-submodules!
";
const TAG: &str = "
    l list, n=?, contains=?, no-contains=?, merged=?, no-merged=?, points-at=, sort=, format=, column=?,
    no-column, i ignore-case, color=?, omit-empty, a annotate!, d delete!, f force!, m message=!,
    F file=<!, s sign!!, u local-user=!!, v verify!!, e edit!!, cleanup=!, create-reflog!, no-sign!
";
const REV_PARSE: &str = "
    abbrev-ref=?, short=?, show-toplevel, git-dir, absolute-git-dir, git-common-dir, is-inside-work-tree,
    is-inside-git-dir, is-bare-repository, is-shallow-repository, verify, q quiet, symbolic,
    symbolic-full-name, show-prefix, show-cdup, all, branches=?, tags=?, remotes=?, glob=, exclude=,
    revs-only, no-revs, flags, no-flags, default=, show-superproject-working-tree, show-object-format=?,
    show-ref-format, git-path=, path-format=, since=, until=, disambiguate=, not, sq, sq-quote!,
    parseopt!!
";
const LS_FILES: &str = "
    c cached, d deleted, m modified, o others, i ignored, s stage, k killed, u unmerged, z, t, v, f,
    x exclude=, X exclude-from=<, exclude-per-directory=, exclude-standard, error-unmatch, full-name,
    abbrev=?, eol, recurse-submodules!!, directory, no-empty-directory, deduplicate, format=, debug,
    sparse
";
const BLAME: &str = "
    L=, l, t, p porcelain, line-porcelain, e show-email, f show-name, n show-number, s, w, M=?, C=?,
    since=, date=, abbrev=?, reverse, root, show-stats, c, b, color-lines, color-by-age, first-parent,
    contents=<, ignore-rev=, ignore-revs-file=<, incremental, progress, no-progress, S=<
";
const DESCRIBE: &str = "
    tags, all, long, always, abbrev=?, dirty=?, broken=?, match=, exclude=, exact-match, contains,
    candidates=, first-parent, debug
";
const SHORTLOG: &str = "s summary, n numbered, e email, w=?, c committer, group=";
const CONFIG: &str = "
    get, get-all, get-regexp, get-urlmatch, l list, global, local, system, worktree, show-origin,
    show-scope, name-only, z null, type=, bool, int, path, default=, includes, no-includes, f file=<,
    blob=, all, regexp, value=, fixed-value, url=, add!, unset!, unset-all!, replace-all!,
    rename-section!, remove-section!, e edit!!, get-color, get-colorbool
";
const GREP: &str = "
    cached, untracked, no-index, no-exclude-standard, exclude-standard, recurse-submodules!!, a text,
    i ignore-case, I, r recursive, no-recursive, max-depth=, w word-regexp, v invert-match, h, H,
    full-name, E extended-regexp, G basic-regexp, P perl-regexp, F fixed-strings, n line-number, column,
    l files-with-matches name-only, L files-without-match, z null, o only-matching, c count, color=?,
    no-color, break, heading, p show-function, C context=, A after-context=, B before-context=,
    W function-context, m max-count=, threads=, f=<, e=, and, or, not, all-match, q quiet, no-textconv,
    #, O open-files-in-pager=?!!, textconv!!, ext-grep!!
";
const REFS: &str = "
    count=, sort=, format=, contains=?, no-contains=?, merged=?, no-merged=?, points-at=, color=?,
    exclude=, ignore-case, omit-empty, s shell, heads branches, tags, head, d dereference, hash=?,
    verify, exists, abbrev=?, q quiet, include-root-refs, stdin!!
";
const LS_TREE: &str = "
    r, t, d, l long, z, name-only, name-status, abbrev=?, full-name, full-tree, object-only, format=
";
const REV_LIST: &str = "
    count, objects, header, timestamp, bisect, disk-usage=?, no-object-names, pretty=?, quiet
";

/// The entries.
pub(crate) const TABLE: &[Subcommand] = &[
    query("status", &[STATUS], status),
    query("diff", &[DIFF_ONLY, DIFF], revisions_or_paths),
    query("log", &[LOG, DIFF], history),
    query("whatchanged", &[LOG, DIFF], history),
    query("show", &[LOG, DIFF], revisions_or_paths),
    query("stash list", &[LOG, DIFF], history),
    query("stash show", &["include-untracked, only-untracked", DIFF], stash),
    query("diff-tree", &["r, root, no-commit-id, pretty=?, v, always, stdin!!", DIFF], revisions_or_paths),
    query("diff-index", &["cached, merge-base", DIFF], revisions_or_paths),
    query("diff-files", &[DIFF_ONLY, DIFF], revisions_or_paths),
    query("branch", &[BRANCH], listing),
    query("tag", &[TAG], listing),
    query("remote", &["v verbose"], no_operand),
    query("remote get-url", &["all, push"], names),
    query("rev-parse", &[REV_PARSE], names),
    query("ls-files", &[LS_FILES], names_of_files),
    query("ls-tree", &[LS_TREE], revisions_or_paths),
    query("blame", &[BLAME], revisions_or_paths),
    query("annotate", &[BLAME], revisions_or_paths),
    query("describe", &[DESCRIBE], names),
    query("shortlog", &[SHORTLOG, LOG], history),
    query("rev-list", &[REV_LIST, LOG], history),
    query("reflog", &[LOG, DIFF], no_operand),
    query("reflog show", &[LOG, DIFF], history),
    query("worktree list", &["porcelain, v verbose, z, expire="], no_operand),
    query("cat-file", &["p, t, s, e, textconv!!, filters!!, batch=?!!, batch-check=?!!"], object),
    query("config", &[CONFIG], configuration),
    query("config get", &[CONFIG], only_of_repository),
    query("config list", &[CONFIG], configured),
    query("grep", &[GREP], grep),
    query("merge-base", &["a all, octopus, independent, is-ancestor, fork-point"], names),
    query("name-rev", &["name-only, tags, refs=, exclude=, all, always, no-undefined"], names),
    query("for-each-ref", &[REFS], names),
    query("show-ref", &[REFS], names),
    query(
        "show-branch",
        &["a all, r remotes, list, topo-order, current, sha1-name, no-name, color=?, no-color"],
        names,
    ),
    query("symbolic-ref", &["q quiet, short, no-recurse, d delete!, m=!"], one_name),
    query("count-objects", &["v verbose, H human-readable"], no_operand),
    query("check-ignore", &["q quiet, v verbose, z, n non-matching, no-index, stdin!!"], paths),
    query("check-attr", &["a all, cached, z, source=, stdin!!"], paths),
    query("cherry", &["v verbose, abbrev=?"], names),
    query("version", &["build-options"], no_operand),
];

const fn query(name: &'static str, groups: Groups, rule: fn(&Arguments<'_>, &mut Effects)) -> Subcommand {
    Subcommand { name, groups, kind: Query, rule }
}

/// Names, unless the differences are asked for as well.
fn status(arguments: &Arguments<'_>, effects: &mut Effects) {
    if arguments.has(&["v"]) {
        paths(arguments, effects);
    } else {
        names_of_files(arguments, effects);
    }
}

fn no_operand(arguments: &Arguments<'_>, effects: &mut Effects) {
    if !arguments.operands.is_empty() {
        effects.incomplete("with an operand it may do more than list");
    }
}

/// A list, when nothing is named or an option says that names are patterns.
fn listing(arguments: &Arguments<'_>, effects: &mut Effects) {
    const LISTS: &[&str] = &["l", "n", "contains", "no-contains", "merged", "no-merged", "points-at"];
    if !arguments.operands.is_empty() && !arguments.has(LISTS) {
        effects.not_read_only("with a name it creates or changes something");
    }
}

fn one_name(arguments: &Arguments<'_>, effects: &mut Effects) {
    if arguments.operands.len() > 1 {
        effects.not_read_only("with a second name it changes the first");
    }
}

/// An entry of the stash is no path.
fn stash(_: &Arguments<'_>, effects: &mut Effects) {
    effects.read(&crate::shell::knowledge::here(), true);
}

/// One object, given by name or as `revision:path`.
fn object(arguments: &Arguments<'_>, effects: &mut Effects) {
    if !arguments.has(&["p", "t", "s", "e"]) {
        effects.incomplete("the form of the question is not known");
    }
    revisions_or_paths(arguments, effects);
}

/// Only questions; a name and a value would set it.
fn configuration(arguments: &Arguments<'_>, effects: &mut Effects) {
    if !arguments.has(&["get", "get-all", "get-regexp", "get-urlmatch", "l"]) {
        effects.not_read_only("without `--get` or `--list` it may set a value");
    }
    only_of_repository(arguments, effects);
}

/// All settings.
fn configured(arguments: &Arguments<'_>, effects: &mut Effects) {
    no_operand(arguments, effects);
    only_of_repository(arguments, effects);
}

/// The files of the user and of the machine lie outside the workspace and may hold credentials.
fn only_of_repository(arguments: &Arguments<'_>, effects: &mut Effects) {
    if arguments.has(&["global", "system"]) {
        effects.not_read_only("it prints settings that are outside the workspace");
    }
}

/// The pattern, then revisions and paths.
fn grep(arguments: &Arguments<'_>, effects: &mut Effects) {
    let skipped = usize::from(!arguments.has(&["e", "f"]));
    let files: Vec<_> = arguments.operands.iter().skip(skipped).copied().collect();
    let rest = Arguments { given: Vec::new(), operands: files, problem: None };
    revisions_or_paths(&rest, effects);
    if let Some(pattern) =
        arguments.operands.first().filter(|word| skipped == 1 && word.as_literal().is_none())
    {
        effects.read(pattern, true);
    }
}
