//! Taking the terminal and giving it back. What is on is switched on blindly: no terminal is asked what it knows. Giving back is
//! one function that may be called at any time and any number of times, also by a panic, and whatever the terminal knows it
//! leaves as it was.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::pen::CLEAR_BELOW;
use rustix::termios::{Action, OptionalActions, Termios, tcflow, tcgetattr, tcsetattr};

/// What is switched on: pastes in brackets and reports of focus.
const ON: &str = "\u{1b}[?2004h\u{1b}[?1004h";
/// Keys that can be told apart (kitty's protocol, the first flag), and the title put aside.
const ON_RICH: &str = "\u{1b}[>1u\u{1b}[22;2t";
/// Everything that may be on, off: an update that was begun, keys, pastes, focus, mouse, styles; the cursor shown.
const OFF: &str = "\u{1b}[?2026l\u{1b}[?2004l\u{1b}[?1004l\u{1b}[?1000l\u{1b}[?1002l\u{1b}[?1003l\u{1b}[?1006l\u{1b}[?25h\u{1b}[m";
/// What `ON_RICH` switched on. The second sequence is for terminals whose stack of keys others filled.
const OFF_RICH: &str = "\u{1b}[<u\u{1b}[=0;1u\u{1b}[23;2t";
/// The alternate screen, for overlays.
const ENTER_OVERLAY: &str = "\u{1b}[?1049h\u{1b}[?1007h";
const LEAVE_OVERLAY: &str = "\u{1b}[?1007l\u{1b}[?1049l";

/// What the terminal was before.
struct Saved {
    settings: Termios,
    rich: bool,
}

static SAVED: Mutex<Option<Saved>> = Mutex::new(None);
static IN_OVERLAY: AtomicBool = AtomicBool::new(false);

/// True when the terminal knows more than the simplest ones.
fn is_rich(environment: &BTreeMap<String, String>) -> bool {
    !matches!(
        environment.get("TERM").map(String::as_str),
        None | Some("" | "dumb" | "linux" | "vt100" | "vt220")
    )
}

/// Takes the terminal. What was typed before stays to be read.
///
/// # Errors
/// When stdin is not a terminal that can be set.
pub(crate) fn take(environment: &BTreeMap<String, String>) -> std::io::Result<()> {
    let settings = tcgetattr(std::io::stdin())?;
    let mut raw = settings.clone();
    raw.make_raw();
    tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
    let rich = is_rich(environment);
    *SAVED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Saved { settings, rich });
    write_all(&opening(rich))
}

fn opening(rich: bool) -> String {
    if rich { format!("{ON}{ON_RICH}") } else { ON.to_owned() }
}

/// The bytes that give a terminal back.
pub(crate) fn closing(rich: bool, in_overlay: bool) -> String {
    let overlay = if in_overlay { LEAVE_OVERLAY } else { "" };
    let rich = if rich { OFF_RICH } else { "" };
    format!("{overlay}{rich}{OFF}")
}

/// The bytes with which others give the terminal back when this process is gone: what is left of the live area goes, too.
pub(crate) fn closing_for_others(environment: &BTreeMap<String, String>) -> Vec<u8> {
    format!("\r{CLEAR_BELOW}{}", closing(is_rich(environment), false)).into_bytes()
}

/// Gives the terminal back, if it is taken.
pub(crate) fn give_back() {
    // A panic while the lock is held must not wait for itself.
    let saved = match SAVED.try_lock() {
        Ok(mut saved) => saved.take(),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
        Err(std::sync::TryLockError::WouldBlock) => None,
    };
    let Some(saved) = saved else { return };
    // Output that Ctrl+S stopped would hold the exit up.
    let _ = tcflow(std::io::stdout(), Action::OOn);
    let _ = write_all(&closing(saved.rich, IN_OVERLAY.swap(false, Ordering::SeqCst)));
    // The settings count even when the output is gone.
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &saved.settings);
}

/// The bytes that enter the alternate screen.
pub(crate) fn enter_overlay() -> &'static str {
    IN_OVERLAY.store(true, Ordering::SeqCst);
    ENTER_OVERLAY
}

/// The bytes that leave it.
pub(crate) fn leave_overlay() -> &'static str {
    IN_OVERLAY.store(false, Ordering::SeqCst);
    LEAVE_OVERLAY
}

/// Gives the terminal back before a panic is reported.
pub(crate) fn give_back_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        report(panic);
    }));
}

fn write_all(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_switched_on_is_switched_off() {
        let off = closing(true, false);
        for on in ["?2004h", "?1004h"] {
            assert!(off.contains(&on.replace('h', "l")), "{on}");
        }
        assert!(off.contains("\u{1b}[<u") && off.contains("\u{1b}[=0;1u") && off.contains("\u{1b}[23;2t"));
        assert!(!off.contains("1049"));
        assert!(closing(true, true).contains("\u{1b}[?1049l"));
        assert!(!closing(false, false).contains("\u{1b}[<u"));
    }

    #[test]
    fn simple_terminals_get_no_rich_keys() {
        let with = |term: &str| is_rich(&BTreeMap::from([("TERM".to_owned(), term.to_owned())]));
        assert!(with("xterm-256color") && with("tmux") && with("screen"));
        assert!(!with("linux") && !with("dumb"));
    }
}
