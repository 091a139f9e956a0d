//! Programs that create, change, move and remove files: which operands are read, which are changed, which are gone
//! afterwards. None of them is ever proven to only read; the lists let rules for files bind them.

use super::options::Arguments;
use super::program::Depth::{Flat, With};
use super::program::Operands::{Files, Special, Words};
use super::program::Program;
use super::words::{is_many, strip};
use super::{Effects, here};
use crate::shell::Word;

const COPY: &str = "
    a archive, attributes-only, b, backup=?, copy-contents, d, f force, i interactive, H, l link,
    L dereference, n no-clobber, P no-dereference, p, preserve=?, no-preserve=, parents, R r recursive,
    reflink=?, remove-destination, sparse=, strip-trailing-slashes, s symbolic-link, S suffix=,
    t target-directory=>, T no-target-directory, u, update=?, v verbose, x one-file-system, Z, context=?,
    help, version
";
const MOVE: &str = "
    b, backup=?, f force, i interactive, n no-clobber, strip-trailing-slashes, S suffix=,
    t target-directory=>, T no-target-directory, u, update=?, v verbose, Z context, exchange, no-copy,
    help, version
";
const REMOVE: &str = "
    f force, i, I, interactive=?, one-file-system, no-preserve-root, preserve-root=?, r R recursive,
    d dir, v verbose, P, x, W, help, version
";
const LINK: &str = "
    b, backup=?, d F directory, f force, i interactive, L logical, n h no-dereference, P physical,
    r relative, s symbolic, S suffix=, t target-directory=>, T no-target-directory, v verbose, help,
    version
";
const INSTALL: &str = "
    b, backup=?, C compare, c, d directory, D, g group=, m mode=, o owner=, p preserve-timestamps,
    s strip, strip-program=!!, S suffix=, t target-directory=>, T no-target-directory, v verbose, help,
    version
";
/// A mode such as `-x` looks like options.
const MODE: &str = "
    c changes, f silent quiet, v verbose, no-preserve-root, preserve-root, R recursive, reference=<, r,
    w, x, X, s, t, u, g, o, help, version
";
const OWNER: &str = "
    c changes, f silent quiet, v verbose, dereference, h no-dereference, from=, no-preserve-root,
    preserve-root, R recursive, H, L, P, reference=<, help, version
";
const PATCH: &str = "
    p strip=, i input=<, o output=>, R reverse, N forward, dry-run, b backup, f force, t batch,
    s quiet silent, u unified, c context, e ed!!, n normal, l ignore-whitespace, F fuzz=,
    r reject-file=>, E remove-empty-files, z suffix=, B prefix=, verbose, binary, d directory=!!
";
const SPLIT: &str = "
    a suffix-length=, additional-suffix=, b bytes=, C line-bytes=, d, numeric-suffixes=?, x,
    hex-suffixes=?, e elide-empty-files, filter=!!, l lines=, n number=, t separator=, u unbuffered,
    verbose, #
";
const SHRED: &str = "
    f force, n iterations=, random-source=<, s size=, u, remove=?, v verbose, x exact, z zero, help,
    version
";

/// The entries.
pub(super) const TABLE: &[Program] = &[
    Program::changer(&["cp"], &[COPY], Special(copy)),
    Program::changer(&["mv"], &[MOVE], Special(move_files)),
    Program::changer(&["rm", "srm", "trash"], &[REMOVE], Special(remove)),
    Program::changer(
        &["rmdir"],
        &["ignore-fail-on-non-empty, p parents, v verbose"],
        Special(remove_folders),
    ),
    Program::changer(&["unlink"], &["help, version"], Special(remove)),
    Program::changer(&["shred"], &[SHRED], Special(remove)),
    Program::changer(
        &["mkdir", "mkfifo"],
        &["m mode=, p parents, v verbose, Z, context=?, help, version"],
        Special(edit_all),
    ),
    Program::changer(
        &["touch"],
        &["a, c no-create, d date=, f, h no-dereference, m, r reference=<, t=, time=, help, version"],
        Special(edit_all),
    ),
    Program::changer(
        &["tee"],
        &["a append, i ignore-interrupts, p, output-error=?, help, version"],
        Special(edit_all),
    ),
    Program::changer(
        &["truncate"],
        &["c no-create, o io-blocks, r reference=<, s size=, help, version"],
        Special(edit_all),
    ),
    Program::changer(
        &["fallocate"],
        &["
            c collapse-range, d dig-holes, i insert-range, l length=, n keep-size, o offset=,
            p punch-hole, z zero-range, x posix, v verbose
        "],
        Special(edit_all),
    ),
    Program::changer(&["ln"], &[LINK], Special(link)),
    Program::changer(&["install"], &[INSTALL], Special(install)),
    Program::changer(&["dd"], &[], Words(convert)),
    Program::changer(&["chmod"], &[MODE], Special(change_mode)),
    Program::changer(&["chown", "chgrp"], &[OWNER], Special(change_owner)),
    Program::changer(&["patch"], &[PATCH], Special(patch)),
    Program::changer(&["split", "csplit"], &[SPLIT], Special(split)),
    Program::changer(&["dos2unix", "unix2dos"], &["k keepdate, q quiet, f force"], Special(edit_all)),
    Program::changer(
        &["vi", "vim", "nvim", "nano", "emacs", "ed", "ex", "code", "pico", "micro"],
        &[],
        Special(edit_opaquely),
    ),
    Program::changer(
        &["make", "gmake", "ninja"],
        &["
            f file makefile=<, j jobs=?, k keep-going, s silent quiet, n just-print dry-run,
            B always-make, C directory=!!
        "],
        Special(build),
    ),
    Program::changer(
        &["openssl"],
        &["in=<, out=>, key=<, inkey=<, cert=<, CAfile=<, keyout=>, config=<!!, engine=!!"],
        Special(opaque),
    )
    .style(super::options::Style::WholeWords),
    Program::changer(&["shasum"], &["a algorithm=, b binary, t text, c check!!"], Files(Flat)),
    Program::changer(&["sqlite3"], &[], Special(edit_opaquely)),
];

fn is_deep(arguments: &Arguments<'_>, names: &'static [&'static str]) -> bool {
    With(names).of(arguments)
}

/// All operands but the last, which is where they go; with a target option all of them.
fn sources<'a, 'w>(arguments: &'a Arguments<'w>) -> (&'a [&'w Word], Option<&'w Word>) {
    if arguments.has(&["t"]) {
        return (&arguments.operands, None);
    }
    match arguments.operands.split_last() {
        Some((last, before)) => (before, Some(*last)),
        None => (&[], None),
    }
}

fn copy(arguments: &Arguments<'_>, effects: &mut Effects) {
    let deep = is_deep(arguments, &["R", "a"]);
    let (from, to) = sources(arguments);
    for word in from {
        effects.read(word, deep);
    }
    if let Some(to) = to {
        // A single pattern may become sources and a target.
        if from.is_empty() {
            effects.read(to, deep);
        }
        effects.edit(to, deep);
    }
}

fn move_files(arguments: &Arguments<'_>, effects: &mut Effects) {
    let (from, to) = sources(arguments);
    for word in from {
        effects.read(word, true);
        effects.remove(word, true);
    }
    if let Some(to) = to {
        if is_many(to) {
            effects.remove(to, true);
        } else {
            effects.edit(to, true);
        }
    }
}

fn remove(arguments: &Arguments<'_>, effects: &mut Effects) {
    let deep = is_deep(arguments, &["r"]);
    for word in &arguments.operands {
        effects.remove(word, deep);
    }
}

/// With the option for parents, every folder on the way is removed too.
fn remove_folders(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        effects.remove(word, false);
    }
    if arguments.has(&["p"]) {
        for word in &arguments.operands {
            match word.as_literal() {
                Some(path) if path.matches('/').count() <= 64 => {
                    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
                        effects.remove(&Word::literal(&path[..at]), false);
                    }
                }
                Some(_) | None => effects.incomplete("the folders on the way are not known"),
            }
        }
    }
}

fn edit_all(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        if word.as_literal() != Some("-") {
            effects.edit(word, false);
        }
    }
}

/// A link makes its target reachable by another name, so the target counts as read.
fn link(arguments: &Arguments<'_>, effects: &mut Effects) {
    let (from, to) = sources(arguments);
    match (from, to) {
        ([], Some(only)) => {
            effects.read(only, false);
            effects.edit(&here(), false);
        }
        (from, to) => {
            for word in from {
                effects.read(word, false);
            }
            if let Some(to) = to {
                effects.edit(to, false);
            }
        }
    }
}

fn install(arguments: &Arguments<'_>, effects: &mut Effects) {
    if arguments.has(&["d"]) {
        edit_all(arguments, effects);
    } else {
        copy(arguments, effects);
    }
}

/// `dd` takes names and values; what it writes to is overwritten.
fn convert(words: &[Word], effects: &mut Effects) {
    const TEXTS: &[&str] = &[
        "bs=", "cbs=", "conv=", "count=", "ibs=", "iflag=", "obs=", "oflag=", "seek=", "skip=", "status=",
        "oseek=", "iseek=",
    ];
    for word in words {
        if let Some(input) = strip(word, "if=") {
            effects.read(&input, false);
        } else if let Some(output) = strip(word, "of=") {
            effects.remove(&output, false);
        } else if is_many(word) || !TEXTS.iter().any(|name| word.known_start().starts_with(name)) {
            effects.incomplete("an operand of `dd` is not known");
        }
        if is_many(word) {
            effects.incomplete("an operand of `dd` is not known before it runs");
        }
    }
}

/// The first operand is the mode, unless it looked like options or a file is the model.
fn change_mode(arguments: &Arguments<'_>, effects: &mut Effects) {
    let given = arguments.has(&["reference", "r", "w", "x", "X", "s", "t", "u", "g", "o"]);
    change_behind_text(arguments, given || arguments.problem.is_some(), effects);
}

fn change_owner(arguments: &Arguments<'_>, effects: &mut Effects) {
    change_behind_text(arguments, arguments.has(&["reference"]) || arguments.problem.is_some(), effects);
}

fn change_behind_text(arguments: &Arguments<'_>, all: bool, effects: &mut Effects) {
    let deep = is_deep(arguments, &["R"]);
    let skipped = usize::from(!all);
    for word in arguments.operands.iter().skip(skipped) {
        effects.edit(word, deep);
    }
}

/// The files that change are named in the patch.
fn patch(arguments: &Arguments<'_>, effects: &mut Effects) {
    let mut operands = arguments.operands.iter();
    if let Some(original) = operands.next() {
        effects.edit(original, false);
    } else {
        effects.edit(&here(), true);
    }
    for word in operands {
        effects.read(word, false);
    }
    effects.incomplete("the patch names the files that it changes");
}

fn split(arguments: &Arguments<'_>, effects: &mut Effects) {
    if let Some(input) = arguments.operands.first() {
        effects.read_file(input, false);
    }
    for word in arguments.operands.iter().skip(1) {
        effects.edit(word, false);
    }
    effects.incomplete("the names of the parts are made up while it runs");
}

fn edit_opaquely(arguments: &Arguments<'_>, effects: &mut Effects) {
    edit_all(arguments, effects);
    effects.incomplete("it can do anything that it is told to");
}

fn build(_: &Arguments<'_>, effects: &mut Effects) {
    effects.incomplete("it runs what its rules say");
}

fn opaque(_: &Arguments<'_>, effects: &mut Effects) {
    effects.incomplete("not all of its options are known");
}
