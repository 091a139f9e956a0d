//! The terminal that this process holds, for the watchdog: its settings as they were, and the bytes that undo what was switched
//! on. Words on the watchdog's connection say when it is given back, taken again, and when the alternate screen is shown.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use crate::tree::watchdog;

/// Words about the terminal; numbers of processes are never so small.
const RELEASED: i32 = i32::MIN;
const TAKEN: i32 = i32::MIN + 1;
const OVERLAY: i32 = i32::MIN + 2;
const NO_OVERLAY: i32 = i32::MIN + 3;

/// The most bytes that give a terminal back.
const MOST_BYTES: usize = 512;
/// What leaves the alternate screen.
const LEAVE_OVERLAY: &[u8] = b"\x1b[?1007l\x1b[?1049l";

/// A terminal that is held.
#[derive(Clone)]
pub(crate) struct HeldTerminal {
    descriptor: i32,
    settings: libc::termios,
    bytes: [u8; MOST_BYTES],
    length: usize,
    is_taken: bool,
}

static HELD: Mutex<Option<HeldTerminal>> = Mutex::new(None);

/// The terminal that is held now.
pub(crate) fn held() -> Option<HeldTerminal> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Holds the terminal on standard input: if this process dies, the watchdog restores its present settings and writes these bytes
/// to it. To be called before the settings are changed.
///
/// # Errors
/// When standard input is not a terminal.
pub fn hold_terminal(restore: &[u8]) -> std::io::Result<()> {
    // SAFETY: asks for settings and duplicates a descriptor; both write to locals.
    let (descriptor, settings) = unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(0, &raw mut settings) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let descriptor = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3);
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error());
        }
        (descriptor, settings)
    };
    let mut bytes = [0; MOST_BYTES];
    let length = restore.len().min(MOST_BYTES);
    bytes[..length].copy_from_slice(&restore[..length]);
    let fresh = HeldTerminal { descriptor, settings, bytes, length, is_taken: true };
    let before = HELD.lock().unwrap_or_else(PoisonError::into_inner).replace(fresh);
    if let Some(before) = before {
        // SAFETY: it was duplicated here and is no longer used.
        drop(unsafe { OwnedFd::from_raw_fd(before.descriptor) });
    }
    watchdog::replace();
    Ok(())
}

/// The terminal was given back, or is taken again.
pub fn set_terminal_taken(is_taken: bool) {
    if let Some(held) = HELD.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        held.is_taken = is_taken;
    }
    watchdog::send_terminal_state(if is_taken { TAKEN } else { RELEASED });
}

/// The alternate screen is shown, or no longer.
pub fn set_terminal_overlay(is_shown: bool) {
    watchdog::send_terminal_state(if is_shown { OVERLAY } else { NO_OVERLAY });
}

/// What the watchdog knows of the terminal.
pub(crate) struct State<'a> {
    held: Option<&'a HeldTerminal>,
    is_taken: bool,
    has_overlay: bool,
}

impl<'a> State<'a> {
    pub(crate) fn new(held: Option<&'a HeldTerminal>) -> Self {
        Self { held, is_taken: held.is_some_and(|held| held.is_taken), has_overlay: false }
    }

    /// Puts the pipe and the terminal in the first places; answers with the first descriptor that is not needed.
    ///
    /// # Safety
    /// Must be called in the watchdog only.
    pub(crate) unsafe fn keep(&self, reader: i32) -> i32 {
        // SAFETY: plain system calls on descriptors that this process has. Both sources are above the targets.
        unsafe {
            match self.held {
                Some(held) => {
                    libc::dup2(held.descriptor, 1);
                    libc::dup2(reader, 0);
                    2
                }
                None => {
                    libc::dup2(reader, 0);
                    1
                }
            }
        }
    }

    /// Takes a word. False when it is not about the terminal.
    pub(crate) fn take(&mut self, word: i32) -> bool {
        match word {
            RELEASED => (self.is_taken, self.has_overlay) = (false, false),
            TAKEN => self.is_taken = true,
            OVERLAY => self.has_overlay = true,
            NO_OVERLAY => self.has_overlay = false,
            _ => return false,
        }
        true
    }

    /// Gives the terminal back, unless that was done.
    ///
    /// # Safety
    /// Must be called in the watchdog only, after `keep`.
    pub(crate) unsafe fn give_back(&self) {
        let Some(held) = self.held.filter(|_| self.is_taken) else { return };
        // SAFETY: plain system calls on a descriptor of the watchdog and on bytes that live here.
        unsafe {
            libc::tcflow(1, libc::TCOON);
            if self.has_overlay {
                libc::write(1, LEAVE_OVERLAY.as_ptr().cast(), LEAVE_OVERLAY.len());
            }
            libc::write(1, held.bytes.as_ptr().cast(), held.length);
            libc::tcsetattr(1, libc::TCSANOW, &raw const held.settings);
        }
    }
}

impl std::fmt::Debug for HeldTerminal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HeldTerminal")
            .field("descriptor", &self.descriptor.as_raw_fd())
            .finish_non_exhaustive()
    }
}
