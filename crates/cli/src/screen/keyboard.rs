//! What is typed as answers: through stdin, or through the terminal itself where stdin is a pipe or a file.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, fstat};
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use tokio::sync::mpsc;

/// Where answers are typed.
pub enum Keyboard {
    /// Stdin is the terminal.
    Stdin,
    /// The terminal of the process; stdin brings something else.
    Terminal(File),
}

impl Keyboard {
    /// The keyboard of the person in front of the program. `None` when there is no terminal, the program runs in its
    /// background, or stdin is `/dev/null`, which says that no one answers.
    pub fn open() -> Option<Self> {
        let stdin = std::io::stdin();
        if stdin.is_terminal() {
            return Some(Self::Stdin);
        }
        let status = fstat(&stdin).ok()?;
        if FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice {
            return None;
        }
        let terminal = File::open("/dev/tty").ok()?;
        let is_foreground = tcgetpgrp(&terminal).ok()? == rustix::process::getpgrp();
        is_foreground.then_some(Self::Terminal(terminal))
    }

    /// The lines that are typed from now on. They are read on a thread of their own, which ends with the terminal.
    pub fn lines(&self) -> mpsc::UnboundedReceiver<String> {
        let (sender, lines) = mpsc::unbounded_channel();
        let reader: Option<Box<dyn BufRead + Send>> = match self {
            Self::Stdin => Some(Box::new(BufReader::new(std::io::stdin()))),
            Self::Terminal(file) => file.try_clone().ok().map(|file| Box::new(BufReader::new(file)) as _),
        };
        std::thread::spawn(move || {
            for line in reader.into_iter().flat_map(BufRead::lines) {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        lines
    }

    /// Forgets what was typed and not yet read.
    pub fn forget(&self) {
        // A terminal that does not obey has nothing to forget.
        let _ = tcflush(self, QueueSelector::IFlush);
    }
}

impl AsFd for Keyboard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            // Stdin is open for as long as the program runs.
            Self::Stdin => rustix::stdio::stdin(),
            Self::Terminal(file) => file.as_fd(),
        }
    }
}
