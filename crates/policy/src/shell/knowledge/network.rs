//! Programs that reach the network, name lookups included: what they send is read, what they fetch is changed. Options
//! that are not on the list may take a value or write a file, so the lists of such a command are not complete.

use super::options::{Arguments, Style};
use super::program::Operands::{Special, Text};
use super::program::Program;
use super::words::{behind, strip};
use super::{Effects, here};
use crate::shell::Word;

const CURL: &str = "
    s silent, S show-error, f fail, fail-with-body, L location, location-trusted, i include, I head,
    v verbose, k insecure, g globoff, G get, O remote-name, J remote-header-name, remote-name-all,
    N no-buffer, n netrc, netrc-file=<, a append, p proxytunnel, R remote-time, Z parallel,
    # progress-bar, no-progress-meter, compressed, http1.1, http2, http3, 0 http1.0, 1 tlsv1, tlsv1.2,
    tlsv1.3, 4 ipv4, 6 ipv6, create-dirs, X request=, H header=, d data=, data-ascii=, data-binary=,
    data-raw=, data-urlencode=, json=, F form=, form-string=, T upload-file=<, o output=>, output-dir=>,
    u user=, U proxy-user=, A user-agent=, e referer=, b cookie=, c cookie-jar=>, D dump-header=>,
    m max-time=, connect-timeout=, retry=, retry-delay=, retry-max-time=, retry-all-errors,
    retry-connrefused, max-redirs=, max-filesize=, limit-rate=, r range=, C continue-at=, w write-out=,
    x proxy=, noproxy=, resolve=, connect-to=, interface=, url=, url-query=, E cert=<, key=<, cacert=<,
    capath=<, cert-type=, pass=, oauth2-bearer=, aws-sigv4=, digest, basic, ntlm, stderr=>, trace=>,
    trace-ascii=>, trace-time, etag-save=>, etag-compare=<, hsts=>, alt-svc=>, unix-socket=>,
    abstract-unix-socket=, proto=, proto-redir=, path-as-is, raw, tcp-nodelay, ssl, ssl-reqd,
    z time-cond=, Y speed-limit=, y speed-time=, next, q disable, V version, h help=?, K config=<!!,
    engine=!!, libcurl=>, P ftp-port=, Q quote=, t telnet-option=, l list-only, B use-ascii, M manual,
    j junk-session-cookies
";
const WGET: &str = "
    q quiet, v verbose, nv no-verbose, O output-document=>, o output-file=>, a append-output=>,
    P directory-prefix=>, i input-file=<!!, c continue, N timestamping, r recursive, l level=,
    k convert-links, p page-requisites, np no-parent, nc no-clobber, nd no-directories,
    nH no-host-directories, m mirror, A accept=, R reject=, D domains=, H span-hosts, S server-response,
    spider, T timeout=, t tries=, w wait=, U user-agent=, header=, user=, password=, post-data=,
    post-file=<, method=, body-data=, body-file=<, no-check-certificate, certificate=<, private-key=<,
    ca-certificate=<, load-cookies=<, save-cookies=>, show-progress, progress=, limit-rate=,
    content-disposition, max-redirect=, rejected-log=>, warc-file=>, e execute=!!, use-askpass=!!,
    config=<!!, b background, 4 inet4-only, 6 inet6-only, V version, h help, E adjust-extension,
    x force-directories, K backup-converted
";
const SSH: &str = "
    i=<, F=<!!, E=>, S=>, p=, l=, o=!!, J=, L=, R=, D=, W=, b=, c=, m=, e=, w=, B=, I=!!, O=, Q=, 4, 6,
    A, a, C, f, G, g, K, k, M, N, n, q, s, T, t, V, v, X, x, Y, y
";
const SCP: &str = "
    i=<, F=<!!, P=, o=!!, S=!!, J=, l=, c=, D=!!, X=, 3, 4, 6, A, B, C, O, p, q, R, r, s, T, v
";
const RSYNC: &str = "
    a archive, v verbose, z compress, r recursive, n dry-run, u update, l links, L copy-links, p perms,
    o owner, g group, t times, D, P, progress, partial, h human-readable, i itemize-changes, q quiet,
    c checksum, H hard-links, A acls, X xattrs, W whole-file, x one-file-system, R relative, b backup,
    backup-dir=>, exclude=, include=, exclude-from=<, include-from=<, f filter=!!, C cvs-exclude, delete,
    del, delete-before, delete-during, delete-delay, delete-after, delete-excluded, delete-missing-args,
    force, remove-source-files, ignore-existing, existing, inplace, append, stats, info=, bwlimit=,
    timeout=, port=, chmod=, chown=, numeric-ids, size-only, max-size=, min-size=, delete-delayed,
    log-file=>, password-file=<, T temp-dir=>, compare-dest=<, copy-dest=<, link-dest=<, files-from=<!!,
    e rsh=!!, rsync-path=!!, write-batch=>!!, read-batch=<!!, M remote-option=!!
";

/// The entries.
pub(super) const TABLE: &[Program] = &[
    Program::network(&["curl"], &[CURL], Special(curl)),
    Program::network(&["wget"], &[WGET], Special(wget)),
    Program::network(&["ssh"], &[SSH], Special(shell)).style(Style::Leading),
    Program::network(&["sftp", "ftp", "telnet", "nc", "ncat", "netcat", "socat"], &[], Special(shell)),
    Program::network(&["scp"], &[SCP], Special(transfer)),
    Program::network(&["rsync"], &[RSYNC], Special(transfer)),
    Program::network(
        &[
            "ping",
            "ping6",
            "dig",
            "host",
            "nslookup",
            "traceroute",
            "tracepath",
            "mtr",
            "whois",
            "drill",
            "getent",
        ],
        &["c=, n, W=, w=, i=, t=, 4, 6, q, v, a, x"],
        Text,
    ),
];

fn curl(arguments: &Arguments<'_>, effects: &mut Effects) {
    for name in ["d", "data-ascii", "data-binary", "json", "H", "w"] {
        for file in arguments.values(name).filter_map(|value| strip(value, "@")) {
            effects.read_file(&file, false);
        }
    }
    for value in arguments.values("data-urlencode").chain(arguments.values("url-query")) {
        if let Some(at) = value.known_start().find('@').filter(|at| !value.known_start()[..*at].contains('='))
        {
            effects.read_file(&behind(value, at + 1), false);
        }
    }
    for value in arguments.values("F") {
        if let Some(at) = value.known_start().find("=@").or_else(|| value.known_start().find("=<")) {
            // More settings of the part may follow the name.
            let file = behind(value, at + 2);
            match file.as_literal().and_then(|text| text.split_once(';')) {
                Some((name, _)) => effects.read_file(&Word::literal(name), false),
                None => effects.read_file(&file, false),
            }
        }
    }
    for value in arguments.values("b").filter(|value| !value.known_start().contains('=')) {
        effects.read_file(value, false);
    }
    if arguments.has(&["O", "remote-name-all", "J"]) {
        effects.edit(&here(), false);
    }
    for address in arguments.operands.iter().copied().chain(arguments.values("url")) {
        local_address(address, effects);
    }
}

/// An address may name a file of this machine.
fn local_address(address: &Word, effects: &mut Effects) {
    let start = address.known_start();
    let prefix = start.get(..7).filter(|prefix| prefix.eq_ignore_ascii_case("file://"));
    if prefix.is_some() {
        effects.read(&behind(address, 7), false);
    } else if start.get(..5).is_some_and(|prefix| prefix.eq_ignore_ascii_case("file:")) {
        effects.read(&behind(address, 5), false);
    }
}

/// Without the name of a file it writes to the folder.
fn wget(arguments: &Arguments<'_>, effects: &mut Effects) {
    if !arguments.has(&["O", "P", "spider", "V", "h"]) {
        effects.edit(&here(), arguments.has(&["r", "m", "p"]));
    }
}

fn shell(_: &Arguments<'_>, effects: &mut Effects) {
    effects.incomplete("it runs commands on another machine");
}

/// Copies between machines: what has no colon is a place on this one. The last is where everything goes.
fn transfer(arguments: &Arguments<'_>, effects: &mut Effects) {
    let Some((to, from)) = arguments.operands.split_last() else { return };
    for word in from.iter().filter(|word| is_local(word)) {
        effects.read(word, true);
        if arguments.has(&["remove-source-files"]) {
            effects.remove(word, true);
        }
    }
    if is_local(to) {
        if arguments.given.iter().any(|given| given.setting.canonical().starts_with("del")) {
            effects.remove(to, true);
        } else {
            effects.edit(to, true);
        }
    }
}

fn is_local(word: &Word) -> bool {
    let start = word.known_start();
    match (start.find(':'), start.find('/')) {
        (Some(colon), Some(slash)) => slash < colon,
        (Some(_), None) => false,
        (None, _) => true,
    }
}
