//! What must be in force when a git query runs without a question. A repository's own configuration can name programs:
//! for the file-system monitor, hooks, pagers, signatures, transports, filters and diffs; files outside that it would
//! read; and repositories inside it with configurations of their own. Fixed names are overridden by
//! [`SAFE_GIT_CONFIGURATION`] and [`SAFE_GIT_ENVIRONMENT`]. Names that a repository makes up, such as
//! `diff.NAME.textconv`, cannot be listed ahead: the caller that runs the query lists the names of the scopes `local` and
//! `worktree` (`git config --list --name-only --show-scope -z`, which runs nothing), asks [`safe_git_override`] for
//! each and passes the answers in the same way, as `GIT_CONFIG_COUNT`, `GIT_CONFIG_KEY_N` and `GIT_CONFIG_VALUE_N`.
//! Without that step a query that shows differences is safe only with `--no-ext-diff` and `--no-textconv`.

use crate::shell::Word;
use crate::shell::knowledge::git::split;
use crate::shell::knowledge::interpreters::is_version_query;
use crate::shell::knowledge::words::{base_name, joined};

/// Configuration that switches programs off, whatever the repository says. `diff.external` is missing on purpose: an
/// empty value makes every comparison fail, so it is overridden only where a repository sets it.
pub const SAFE_GIT_CONFIGURATION: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("sequence.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("log.showSignature", "false"),
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("safe.bareRepository", "explicit"),
    // What a repository inside this one configures is not listed, so git must not run in there.
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("status.submoduleSummary", "false"),
    // Settings that name files which git would read and show.
    ("blame.ignoreRevsFile", ""),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("diff.orderFile", "/dev/null"),
    ("mailmap.file", "/dev/null"),
    ("mailmap.blob", ""),
    ("gpg.ssh.allowedSignersFile", "/dev/null"),
    ("gpg.ssh.revocationFile", "/dev/null"),
];

/// Environment for the same purpose. A pager in the environment wins over one for a single subcommand, no transport is
/// allowed, missing objects are not fetched, and a query does not write to the index.
pub const SAFE_GIT_ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_PAGER", "cat"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// The value that takes a configured program away, for a name that a repository may make up; `None` when the name
/// runs nothing. A text conversion is replaced by one that changes nothing and a filter by none; a program that
/// compares cannot be replaced, so the query fails instead of running it.
#[must_use]
pub fn safe_git_override(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    let (section, rest) = key.split_once('.')?;
    let (name, last) = match rest.rsplit_once('.') {
        Some((name, last)) => (Some(name), last),
        None => (None, rest),
    };
    match (section, name, last) {
        ("diff", Some(_), "textconv") => Some("cat"),
        ("diff", Some(_), "command") | ("diff", None, "external") => Some(""),
        ("filter", Some(_), "clean" | "smudge" | "process") => Some(""),
        ("filter", Some(_), "required") => Some("false"),
        ("merge", Some(_), "driver") | ("trailer", Some(_), "command" | "cmd") => Some("false"),
        ("gpg", Some(_), "program") | ("gpg", Some(_), "defaultkeycommand") => Some("false"),
        ("pager", None, _) => Some("false"),
        ("interactive", None, "difffilter") | ("core", None, "alternaterefscommand") => Some("false"),
        ("credential", Some(_), "helper") => Some(""),
        ("remote", Some(_), "uploadpack" | "receivepack" | "vcs") => Some("false"),
        ("uploadpack", None, "packobjectshook") => Some("false"),
        // A setting for one submodule outranks the one for all.
        ("submodule", Some(_), "ignore") => Some("dirty"),
        _ => None,
    }
}

/// True when the command is a git command that looks at a repository, so that it must run with the safe configuration
/// when no one was asked.
#[must_use]
pub fn git_needs_safe_configuration(words: &[Word]) -> bool {
    let words: Vec<Word> = words.iter().map(joined).collect();
    let Some((first, rest)) = words.split_first() else { return false };
    first.as_literal().is_some_and(|name| base_name(name) == "git")
        && !is_version_query("git", rest)
        && !split(rest).1.is_empty()
}
