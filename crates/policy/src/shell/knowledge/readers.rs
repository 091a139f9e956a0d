//! Programs that read files or tell about the machine: their options, those that write or run something included, and
//! the few whose second operand is a file that they write. Options that follow links below a folder are not harmless,
//! because a link inside the workspace may lead out of it.

use super::options::{Arguments, Style};
use super::program::Depth::{Deep, Flat};
use super::program::Operands::{Files, FilesOrHere, Nothing, Special, Text, Words};
use super::program::{Program, read_files};
use super::words::{is_many, shown};
use super::{Effects, here};
use crate::shell::Word;

const HELP: &str = "help, version";

const LS: &str = "
    a all, A almost-all, author, b escape, block-size=, B ignore-backups, c, C, color=?, d directory,
    D dired, f, F, classify=?, file-type, format=, full-time, g, group-directories-first, G no-group,
    h human-readable, si, H dereference-command-line, dereference-command-line-symlink-to-dir, hide=,
    hyperlink=?, indicator-style=, i inode, ignore=, k kibibytes, l, L dereference, m,
    n numeric-uid-gid, N literal, o, p, q hide-control-chars, show-control-chars, Q quote-name,
    quoting-style=, r reverse, R recursive, s size, S, sort=, time=, time-style=, t, tabsize=, u, U, v,
    width=, x, X, Z context, zero, 1
";
const CAT: &str = "
    A show-all, b number-nonblank, e, E show-ends, n number, s squeeze-blank, t, T show-tabs, u,
    v show-nonprinting
";
const HEAD: &str = "c bytes=, n lines=, q quiet silent, v verbose, z zero-terminated, #";
/// Following a file never ends, so it is not a plain read.
const TAIL: &str = "f!, follow=?!, F!, retry!, pid=!, s sleep-interval=!, max-unchanged-stats=!";
const WC: &str = "c bytes, m chars, l lines, L max-line-length, w words, total=, files0-from=<!!";
const STAT: &str = "L dereference, f file-system, c format=, printf=, t terse, cached=";
const SORT: &str = "
    b ignore-leading-blanks, d dictionary-order, f ignore-case, g general-numeric-sort,
    i ignore-nonprinting, M month-sort, h human-numeric-sort, n numeric-sort, R random-sort,
    random-source=<, r reverse, sort=, V version-sort, batch-size=, c, check=?, C, debug, k key=,
    m merge, s stable, S buffer-size=, t field-separator=, parallel=, u unique, z zero-terminated,
    o output=>, T temporary-directory=>, compress-program=!!, files0-from=<!!
";
const UNIQ: &str = "
    c count, d repeated, D, all-repeated=?, f skip-fields=, group=?, i ignore-case, s skip-chars=,
    u unique, z zero-terminated, w check-chars=
";
const CUT: &str = "
    b bytes=, c characters=, d delimiter=, f fields=, n, complement, s only-delimited, output-delimiter=,
    z zero-terminated
";
const DIFF: &str = "
    normal, q brief, s report-identical-files, c, C=, context=?, u, U=, unified=?, e ed, n rcs,
    y side-by-side, W width=, left-column, suppress-common-lines, p show-c-function,
    F show-function-line=, label=, t expand-tabs, T initial-tab, tabsize=, suppress-blank-empty,
    r recursive, no-dereference, N new-file, unidirectional-new-file, ignore-file-name-case,
    no-ignore-file-name-case, x exclude=, X exclude-from=<, S starting-file=, from-file=, to-file=,
    i ignore-case, E ignore-tab-expansion, Z ignore-trailing-space, b ignore-space-change,
    w ignore-all-space, B ignore-blank-lines, I ignore-matching-lines=, a text, strip-trailing-cr,
    D ifdef=, line-format=, old-line-format=, new-line-format=, unchanged-line-format=,
    old-group-format=, new-group-format=, changed-group-format=, unchanged-group-format=, d minimal,
    horizon-lines=, H speed-large-files, color=?, palette=, v, #, l paginate!!
";
const DATE: &str = "
    d date=, f file=<, I iso-8601=?, R rfc-email, rfc-3339=, r reference=<, u utc universal, debug,
    resolution, s set=!
";
const FILE: &str = "
    b brief, i mime, mime-type, mime-encoding, L dereference, h no-dereference, k keep-going, r raw,
    0 print0, N no-pad, F separator=, e exclude=, extension, apple, n no-buffer, v, z uncompress!!,
    Z uncompress-noreport!!, f files-from=<!!, m magic-file=<!!, C compile!!, s special-files!,
    p preserve-date!
";
const TREE: &str = "
    a, d, f, i, x, L=, P=, I=, ignore-case, matchdirs, prune, filelimit=, gitignore, noreport, charset=,
    q, N, Q, p, u, g, s, h, si, du, D, timefmt=, F, inodes, device, v, t, c, U, r, dirsfirst, filesfirst,
    sort=, A, S, n, C, J, X, H=, T=, nolinks, metafirst, l!, R!, o=>, fromfile!!, gitfile=<, infofile=<
";
const DU: &str = "
    0 null, a all, apparent-size, B block-size=, b bytes, c total, D dereference-args, d max-depth=, H,
    h human-readable, inodes, k, l count-links, m, P no-dereference, S separate-dirs, si, s summarize,
    t threshold=, time=?, time-style=, X exclude-from=<, exclude=, x one-file-system, L dereference!,
    files0-from=<!!
";
const DF: &str = "
    a all, B block-size=, h human-readable, H si, i inodes, k, l local, m, no-sync, output=?,
    P portability, total, t type=, T print-type, x exclude-type=, v
";
const COLUMN: &str = "
    t table, n table-name=, O table-order=, N table-columns=, l table-columns-limit=, E table-noextreme=,
    d table-noheadings, e table-header-repeat, H table-hide=, R table-right=, T table-truncate=,
    W table-wrap=, L keep-empty-lines, J json, r tree=, i tree-id=, p tree-parent=, c output-width=,
    o output-separator=, s separator=, x fillrows, h, V
";
/// Checking a list opens every file that the list names.
const SUM: &str = "
    a algorithm=, b binary, l length=, tag, untagged, t text, z zero, ignore-missing, quiet, status,
    strict, w warn, c check!!
";
const NL: &str = "
    b body-numbering=, d section-delimiter=, f footer-numbering=, h header-numbering=, i line-increment=,
    l join-blank-lines=, n number-format=, p no-renumber, s number-separator=, v starting-line-number=,
    w number-width=
";
const OD: &str = "
    A address-radix=, endian=, j skip-bytes=, N read-bytes=, S=, strings=?, t format=,
    v output-duplicates, w width=?, traditional, a, b, c, d, f, i, l, o, s, x
";
const HEXDUMP: &str = "
    b one-byte-octal, c one-byte-char, C canonical, d two-bytes-decimal, o two-bytes-octal,
    x two-bytes-hex, L color=?, e format=, f format-file=<, n length=, s skip=, v no-squeezing, h, V
";
const STRINGS: &str = "
    a all, d data, f print-file-name, n bytes=, t radix=, w include-all-whitespace, o, e encoding=,
    unicode=, U=, s output-separator=, v V, h, #
";
const XXD: &str = "
    a autoskip, b bits, C capitalize, c cols=, d, E EBCDIC, e, g groupsize=, h help, i include, l len=,
    n name=, o offset=, p ps plain postscript, s seek skip=, u uppercase, v version, r revert!
";
const JOIN: &str = "
    a=, e=, i ignore-case, j=, o=, t=, v=, 1=, 2=, check-order, nocheck-order, header, z zero-terminated
";
const UNAME: &str = "
    a all, s kernel-name, n nodename, r kernel-release, v kernel-version, m machine, p processor,
    i hardware-platform, o operating-system
";
const REALPATH: &str = "
    e canonicalize-existing, m canonicalize-missing, L logical, P physical, q quiet, relative-to=,
    relative-base=, s strip no-symlinks, z zero
";
const READLINK: &str = "
    f canonicalize, e canonicalize-existing, m canonicalize-missing, n no-newline, q quiet, s silent,
    v verbose, z zero
";

/// The entries.
pub(super) const TABLE: &[Program] = &[
    Program::reader(&["ls", "dir", "vdir"], &[LS, HELP], Special(list)).steady(),
    Program::reader(&["cat"], &[CAT, HELP], Files(Flat)).steady(),
    Program::reader(&["head"], &[HEAD, HELP], Files(Flat)).steady(),
    // A name that begins with a dash can at worst make it wait for more.
    Program::reader(&["tail"], &[HEAD, TAIL, HELP], Files(Flat)).steady(),
    // It prints counts only, whatever list of names it is made to read.
    Program::reader(&["wc"], &[WC, HELP], Files(Flat)).steady(),
    Program::reader(&["stat"], &[STAT, HELP], Files(Flat)).steady(),
    Program::reader(&["sort"], &[SORT, HELP], Files(Flat)),
    Program::reader(&["uniq"], &[UNIQ, HELP], Special(second_is_written)),
    Program::reader(&["cut"], &[CUT, HELP], Files(Flat)).steady(),
    Program::reader(&["diff"], &[DIFF, HELP], Special(diff)),
    Program::reader(
        &["cmp"],
        &["b print-bytes, i ignore-initial=, l verbose, n bytes=, s quiet silent, v", HELP],
        Files(Flat),
    )
    .steady(),
    Program::reader(
        &["comm"],
        &["1, 2, 3, check-order, nocheck-order, output-delimiter=, total, z zero-terminated", HELP],
        Files(Flat),
    )
    .steady(),
    Program::reader(&["join"], &[JOIN, HELP], Files(Flat)).steady(),
    Program::reader(&["date"], &[DATE, HELP], Special(date)),
    Program::reader(&["file"], &[FILE, HELP], Files(Flat)),
    Program::reader(&["tree"], &[TREE, HELP], FilesOrHere(Deep)),
    Program::reader(&["du"], &[DU, HELP], FilesOrHere(Deep)),
    Program::reader(&["df"], &[DF, HELP], Files(Flat)),
    Program::reader(&["column"], &[COLUMN, HELP], Files(Flat)).steady(),
    Program::reader(&["nl"], &[NL, HELP], Files(Flat)).steady(),
    Program::reader(&["tac"], &["b before, r regex, s separator=", HELP], Files(Flat)).steady(),
    Program::reader(&["rev"], &["0 zero, h, V", HELP], Files(Flat)).steady(),
    Program::reader(&["fold"], &["b bytes, s spaces, w width=, #", HELP], Files(Flat)).steady(),
    Program::reader(
        &["fmt"],
        &[
            "
            c crown-margin, p prefix=, s split-only, t tagged-paragraph, u uniform-spacing,
            w width=, g goal=, #
        ",
            HELP,
        ],
        Files(Flat),
    )
    .steady(),
    Program::reader(&["paste"], &["d delimiters=, s serial, z zero-terminated", HELP], Files(Flat)).steady(),
    Program::reader(&["expand", "unexpand"], &["i initial, t tabs=, a all, first-only", HELP], Files(Flat))
        .steady(),
    Program::reader(&["base64", "base32"], &["d decode, i ignore-garbage, w wrap=", HELP], Files(Flat)),
    Program::reader(
        &["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum"],
        &[SUM, HELP],
        Files(Flat),
    ),
    Program::reader(&["od"], &[OD, HELP], Files(Flat)).steady(),
    Program::reader(&["hexdump", "hd"], &[HEXDUMP, HELP], Files(Flat)),
    Program::reader(&["strings"], &[STRINGS, HELP], Special(strings)),
    Program::reader(&["xxd"], &[XXD], Special(second_is_written)).style(Style::WholeWords),
    Program::reader(&["realpath"], &[REALPATH, HELP], Files(Flat)).steady(),
    Program::reader(&["readlink"], &[READLINK, HELP], Files(Flat)).steady(),
    Program::reader(&["basename"], &["a multiple, s suffix=, z zero", HELP], Text).steady(),
    Program::reader(&["dirname"], &["z zero", HELP], Text).steady(),
    Program::reader(&["seq"], &["f format=, s separator=, w equal-width, #", HELP], Text),
    Program::reader(&["sleep"], &[HELP], Text),
    Program::reader(&["tr"], &["c C complement, d delete, s squeeze-repeats, t truncate-set1", HELP], Text)
        .steady(),
    Program::reader(&["whoami", "logname", "tty"], &["s silent quiet", HELP], Nothing),
    Program::reader(&["arch", "groups", "uptime"], &["p pretty, s since", HELP], Nothing),
    Program::reader(
        &["free"],
        &["h human, b bytes, k kibi, m mebi, g gibi, t total, w wide, si", HELP],
        Nothing,
    ),
    Program::reader(&["lscpu"], &[HELP], Nothing),
    Program::reader(&["nproc"], &["all, ignore=", HELP], Nothing),
    Program::reader(
        &["id"],
        &["a, g group, G groups, n name, r real, u user, z zero, Z context", HELP],
        Text,
    ),
    Program::reader(&["uname"], &[UNAME, HELP], Nothing),
    // Longer forms of the name are looked up in the network, and an operand sets it.
    Program::reader(&["hostname"], &["s short"], Nothing),
    // What is in the environment may be a secret, and with a word `env` runs a program.
    Program::changer(&["env", "printenv"], &[], Words(environment)),
    Program::reader(&["which"], &["a all, s", HELP], Text),
    Program::reader(
        &["cal", "ncal"],
        &["1 one, 3 three, m monday, s sunday, j julian, y year, w week=?", HELP],
        Text,
    ),
    // What they show may be run through a program that the environment names.
    Program::changer(&["less", "more", "most"], &[], Special(pager)),
    Program::changer(&["zcat", "zless", "zgrep", "bzcat", "xzcat", "zstdcat", "pr", "bat"], &[], Files(Flat)),
];

/// Files that are shown; a word with a plus in front is a command of the pager, which may run a program.
fn pager(arguments: &Arguments<'_>, effects: &mut Effects) {
    read_files(&arguments.operands, false, false, effects);
    effects.incomplete("it may run a program on what it shows");
}

/// An input and then a file that is written.
fn second_is_written(arguments: &Arguments<'_>, effects: &mut Effects) {
    let mut operands = arguments.operands.iter();
    if let Some(input) = operands.next() {
        effects.read_file(input, false);
        if is_many(input) {
            effects.incomplete(format!("the second name of `{}` would be written", shown(input)));
            effects.edit(input, false);
        }
    }
    for output in operands {
        effects.edit(output, false);
    }
}

/// Compares files, or the files of two folders by their names. It follows links in folders unless an option forbids it.
fn diff(arguments: &Arguments<'_>, effects: &mut Effects) {
    let recursive = arguments.has(&["r"]);
    let sides = ["from-file", "to-file"].into_iter().flat_map(|name| arguments.values(name));
    for word in arguments.operands.iter().copied().chain(sides) {
        if word.as_literal() == Some("-") {
            continue;
        }
        if arguments.has(&["no-dereference"]) {
            effects.read(word, true);
        } else {
            effects.read_following(word, recursive);
        }
    }
    if recursive && !arguments.has(&["no-dereference"]) {
        effects.not_read_only("below folders it follows links, unless `--no-dereference` is given");
    }
}

/// Lists names. With `-L` it looks at what links lead to.
fn list(arguments: &Arguments<'_>, effects: &mut Effects) {
    let recursive = arguments.has(&["R"]);
    if !arguments.has(&["L"]) {
        return read_files(&arguments.operands, recursive, true, effects);
    }
    for word in &arguments.operands {
        effects.read_following(word, recursive);
    }
    if arguments.operands.is_empty() {
        effects.read_following(&here(), recursive);
    }
}

/// Every operand but a format sets the clock.
fn date(arguments: &Arguments<'_>, effects: &mut Effects) {
    for word in &arguments.operands {
        if !word.known_start().starts_with('+') || is_many(word) {
            effects.not_read_only(format!("`{}` would set the clock", shown(word)));
        }
    }
}

fn environment(_: &[Word], effects: &mut Effects) {
    effects.why_not = Some(super::builtins::PRINTS_ENVIRONMENT.to_owned());
}

/// An operand with `@` in front names a file with more words.
fn strings(arguments: &Arguments<'_>, effects: &mut Effects) {
    read_files(&arguments.operands, false, false, effects);
    let opaque = |start: &str| start.starts_with('@') || start.is_empty();
    if arguments.operands.iter().any(|word| is_many(word) && opaque(word.known_start()))
        || arguments.operands.iter().any(|word| word.known_start().starts_with('@'))
    {
        effects.incomplete("a word that begins with `@` names a file with more words");
    }
}
