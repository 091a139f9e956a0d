//! Searching in files: grep and ripgrep. The first operand is the pattern unless an option brought one; the rest is
//! searched. Options that run a program on each file or follow links out of a folder are not reads.

use super::Effects;
use super::options::Arguments;
use super::program::Operands::Special;
use super::program::{Program, read_files, text_then_files};

const GREP: &str = "
    E extended-regexp, F fixed-strings, G basic-regexp, P perl-regexp, e regexp==, f file==<,
    i y ignore-case, no-ignore-case, w word-regexp, x line-regexp, z null-data, s no-messages,
    v invert-match, V version, help, m max-count=, b byte-offset, n line-number, line-buffered,
    H with-filename, h no-filename, label=, o only-matching, q quiet silent, binary-files=, a text, I,
    d directories=, D devices=, r recursive, include=, exclude=, exclude-from=<, exclude-dir=,
    L files-without-match, l files-with-matches, c count, T initial-tab, Z null, B before-context=,
    A after-context=, C context=, group-separator=, no-group-separator, color=?, colour=?, U binary,
    u unix-byte-offsets, #, R dereference-recursive!
";
const RIPGREP: &str = "
    A after-context=, auto-hybrid-regex, no-auto-hybrid-regex, B before-context=, binary, no-binary,
    block-buffered, no-block-buffered, b byte-offset, no-byte-offset, s case-sensitive, color=, colors=,
    column, no-column, C context=, context-separator=, no-context-separator, c count, count-matches,
    crlf, no-crlf, debug, trace, dfa-size-limit=, E encoding=, no-encoding, engine=,
    field-context-separator=, field-match-separator=, f file=<, files, l files-with-matches,
    files-without-match, F fixed-strings, no-fixed-strings, no-follow, g glob=, glob-case-insensitive,
    no-glob-case-insensitive, h help, heading, no-heading, . hidden, no-hidden, hyperlink-format=,
    iglob=, i ignore-case, ignore-file=<, ignore-file-case-insensitive, include-zero, no-include-zero,
    v invert-match, no-invert-match, json, no-json, line-buffered, no-line-buffered, n line-number,
    N no-line-number, x line-regexp, M max-columns=, max-columns-preview, no-max-columns-preview,
    m max-count=, d max-depth maxdepth=, max-filesize=, mmap, no-mmap, U multiline, no-multiline,
    multiline-dotall, no-multiline-dotall, no-config, I no-filename, no-ignore, ignore, no-ignore-dot,
    no-ignore-exclude, no-ignore-files, no-ignore-global, no-ignore-messages, no-ignore-parent,
    no-ignore-vcs, no-messages, messages, no-pcre2-unicode, no-require-git, no-unicode, unicode, 0 null,
    null-data, one-file-system, no-one-file-system, o only-matching, passthru passthrough,
    path-separator=, P pcre2, no-pcre2, pcre2-version, p pretty, q quiet, regex-size-limit=, e regexp==,
    r replace=, S smart-case, sort=, sortr=, sort-files, stats, no-stats, stop-on-nonmatch, a text,
    no-text, j threads=, trim, no-trim, t type=, type-add=, type-clear=, type-list, T type-not=,
    u unrestricted, V version, vimgrep, H with-filename, w word-regexp, no-pre, no-search-zip, L follow!,
    pre=!!, pre-glob=!!, z search-zip!!, hostname-bin=!!
";

/// The entries. No option of grep writes or runs anything, but a file called `-R` would make it follow links.
pub(super) const TABLE: &[Program] = &[
    Program::reader(&["grep", "egrep", "fgrep"], &[GREP], Special(grep)),
    Program::reader(&["rg"], &[RIPGREP], Special(ripgrep)),
];

fn grep(arguments: &Arguments<'_>, effects: &mut Effects) {
    let recursive = arguments.has(&["r", "R", "d"]);
    if arguments.has(&["e", "f"]) {
        read_files(&arguments.operands, recursive, recursive, effects);
    } else if !arguments.has(&["V", "help"]) {
        text_then_files(&arguments.operands, recursive, recursive, effects);
    }
}

fn ripgrep(arguments: &Arguments<'_>, effects: &mut Effects) {
    if arguments.has(&["e", "f", "files"]) {
        read_files(&arguments.operands, true, true, effects);
    } else if !arguments.has(&["V", "h", "type-list", "pcre2-version"]) {
        text_then_files(&arguments.operands, true, true, effects);
    }
}
