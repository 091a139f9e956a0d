//! Archives and compression: what is packed is read, what is unpacked changes the folder it goes to, and compressing a
//! file in place replaces it. Names inside archives are not known, so unpacking is never complete.

use super::options::{Arguments, Groups, Style, read};
use super::program::Operands::{Special, Words};
use super::program::{Program, apply_options};
use super::{Effects, here};
use crate::shell::Word;

const TAR: Groups = &["
    c create, x extract get, t list, r append, u update, A catenate concatenate, d diff compare, delete,
    f file=, C directory=, z gzip gunzip, j bzip2, J xz, Z compress, zstd, lzma, a auto-compress,
    v verbose, w interactive, k keep-old-files, p preserve-permissions, m touch, h dereference,
    O to-stdout, P absolute-names!!, exclude=, X exclude-from=<, T files-from=<!!, strip-components=,
    transform xform=!!, remove-files, no-same-owner, same-owner, owner=, group=, mtime=, sort=,
    wildcards, one-file-system, overwrite, totals, numeric-owner, exclude-vcs, S sparse,
    I use-compress-program=!!, to-command=!!, checkpoint-action=!!, checkpoint=?, rsh-command=!!,
    rmt-command=!!, F info-script new-volume-script=!!, g listed-incremental=>!!
"];
const ZIP: &str = "
    r recurse-paths, R recurse-patterns, q quiet, v verbose, j junk-paths, m move, d delete, u update,
    f freshen, x exclude=, i include=, 9, 0, 1, y symlinks, e encrypt, P password=, T test,
    TT unzip-command=!!
";
const UNZIP: &str = "l, t, v, Z, q, o, n, u, f, j, a, p, d=>, x=, P=, C, L, X";
const GZIP: &str = "
    c stdout to-stdout, d decompress uncompress, f force, k keep, l list, n no-name, N name, q quiet,
    r recursive, S suffix=, t test, v verbose, z compress, 1 fast, 2, 3, 4, 5, 6, 7, 8, 9 best, 0,
    e extreme, T threads=, rm, h help, V version
";

/// The entries.
pub(super) const TABLE: &[Program] = &[
    Program::changer(&["tar", "gtar", "bsdtar"], TAR, Words(tar)),
    Program::changer(&["zip"], &[ZIP], Special(zip)),
    Program::changer(&["unzip"], &[UNZIP], Special(unzip)),
    Program::changer(
        &["gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "lzma", "compress", "uncompress"],
        &[GZIP],
        Special(compress),
    ),
    Program::changer(&["zstd", "unzstd"], &[GZIP, "o=>"], Special(compress)),
    Program::changer(&["7z", "7za", "rar", "unrar", "cpio", "ar"], &[], Special(opaque)),
];

/// The first word may be a bundle without a dash, whose values follow in order.
fn tar(words: &[Word], effects: &mut Effects) {
    let bundle = words.first().and_then(Word::as_literal).filter(|first| {
        !first.starts_with('-') && !first.is_empty() && first.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let spread: Vec<Word> = match bundle {
        Some(bundle) => spread_bundle(bundle, &words[1..]),
        None => words.to_vec(),
    };
    let arguments = read(&spread, TAR, Style::Permuting, false);
    apply_options(&arguments, effects);
    let folder = arguments.values("C").last().cloned().unwrap_or_else(here);
    let archives: Vec<&Word> = arguments.values("f").collect();
    // A colon in the name of the archive stands for another machine.
    if archives.iter().any(|word| word.known_start().contains(':')) {
        effects.network = true;
        effects.incomplete("the archive is on another machine");
    }
    let packs = arguments.has(&["c", "r", "u", "A"]);
    for archive in archives {
        if packs || arguments.has(&["delete"]) {
            if archive.as_literal() != Some("-") {
                effects.edit(archive, false);
            }
        } else {
            effects.read_file(archive, false);
        }
    }
    if packs || arguments.has(&["d"]) {
        if arguments.has(&["C"]) {
            effects.read(&folder, true);
            effects.incomplete("what is packed is relative to another folder");
        }
        for word in &arguments.operands {
            effects.read(word, true);
            if arguments.has(&["remove-files"]) {
                effects.remove(word, true);
            }
        }
    }
    if arguments.has(&["x"]) && !arguments.has(&["O"]) {
        effects.edit(&folder, true);
        effects.incomplete("the names of what is unpacked are in the archive");
    }
}

fn spread_bundle(bundle: &str, rest: &[Word]) -> Vec<Word> {
    const WITH_VALUE: &str = "fCbgHIKLNTVXF";
    let mut rest = rest.iter();
    let mut spread = Vec::new();
    for letter in bundle.chars() {
        spread.push(Word::literal(format!("-{letter}")));
        if WITH_VALUE.contains(letter) {
            spread.extend(rest.next().cloned());
        }
    }
    spread.extend(rest.cloned());
    spread
}

fn zip(arguments: &Arguments<'_>, effects: &mut Effects) {
    let Some((archive, files)) = arguments.operands.split_first() else { return };
    // `-TT` is an option of its own, whose value names a program: then the next operand is the archive.
    if arguments.given.iter().filter(|given| given.setting.canonical() == "T").count() > 1 {
        effects.incomplete("`zip -TT` runs a program");
        files.iter().for_each(|word| effects.edit(word, false));
    }
    effects.edit(archive, false);
    if let Some(name) = archive.as_literal().filter(|name| !name.ends_with(".zip")) {
        effects.edit(&Word::literal(format!("{name}.zip")), false);
    }
    for word in files {
        effects.read(word, arguments.has(&["r", "R"]));
        if arguments.has(&["m"]) {
            effects.remove(word, true);
        }
    }
}

fn unzip(arguments: &Arguments<'_>, effects: &mut Effects) {
    if let Some(archive) = arguments.operands.first() {
        effects.read(archive, false);
    }
    if !arguments.has(&["l", "t", "v", "Z", "p"]) {
        if !arguments.has(&["d"]) {
            effects.edit(&here(), true);
        }
        effects.incomplete("the names of what is unpacked are in the archive");
    }
}

fn compress(arguments: &Arguments<'_>, effects: &mut Effects) {
    let deep = arguments.has(&["r"]);
    for word in &arguments.operands {
        effects.read_file(word, deep);
        if !arguments.has(&["c", "t", "l"]) && word.as_literal() != Some("-") {
            if arguments.has(&["k"]) {
                effects.edit(word, deep);
            } else {
                effects.remove(word, deep);
            }
        }
    }
}

fn opaque(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in arguments.operands.iter().skip(1) {
        effects.read(word, true);
    }
    effects.incomplete("not all of its options are known");
}
