//! Which variables may be set in front of a command without changing what code it runs, what it loads or where it looks.
//! The list is short on purpose: dozens of variables make a harmless program start another one.

/// Names that only change language, time zone, colour, width or the "no person is here" hint.
const SKIPPED: [&str; 15] = [
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "TZ",
];
/// Parts of the locale. `LOCPATH`, `NLSPATH` and the like are not among them: they name files.
const LOCALE: [&str; 13] = [
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
];

/// True for a variable that an allow rule may skip in front of a command.
#[must_use]
pub fn is_skippable_variable(name: &str) -> bool {
    SKIPPED.binary_search(&name).is_ok() || LOCALE.binary_search(&name).is_ok()
}

/// Variables of the shell itself that change how it finds, splits, starts or remembers things, what `~` and relative
/// names mean, and those whose values it evaluates: as arithmetic, which may run commands, or as a prompt.
const SHELL: [&str; 42] = [
    "BASHOPTS",
    "BASHPID",
    "BASH_ALIASES",
    "BASH_ARGC",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_CMDS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "CDPATH",
    "DIRSTACK",
    "ENV",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EUID",
    "EXECIGNORE",
    "FUNCNEST",
    "GLOBIGNORE",
    "GLOBSORT",
    "HISTCMD",
    "HOME",
    "IFS",
    "LINENO",
    "MAILCHECK",
    "OLDPWD",
    "OPTIND",
    "PATH",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS4",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "SRANDOM",
    "TMOUT",
    "UID",
];

/// True for a variable that changes how the shell itself runs later commands.
pub(super) fn steers_the_shell(name: &str) -> bool {
    SHELL.binary_search(&name).is_ok()
        || name.starts_with("LD_")
        || name.starts_with("DYLD_")
        || name.starts_with("GIT_CONFIG")
}

/// True for a variable that changes what the words of a command mean in front of that command. `PATH`
/// and what is loaded into programs say nothing about which commands the line has.
pub(super) fn steers_in_front(name: &str) -> bool {
    name != "PATH" && (SHELL.binary_search(&name).is_ok() || name.starts_with("GIT_CONFIG"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(SKIPPED.is_sorted() && LOCALE.is_sorted() && SHELL.is_sorted());
    }
}
