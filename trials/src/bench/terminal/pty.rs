//! The program in a pseudo-terminal: keys go in, an emulator reads what comes out, and the kernel says what the process
//! cost so far.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use qoder_testkit::{Sandbox, ScriptedServer};

/// No benchmark waits longer for anything.
const LIMIT: Duration = Duration::from_secs(60);
/// Columns and rows of the window.
pub(super) const WINDOW: (u16, u16) = (100, 30);

struct Seen {
    parser: vt100::Parser,
    written: usize,
    last: Instant,
    is_over: bool,
}

/// The program in a pseudo-terminal.
pub(super) struct Pty {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    started: Instant,
}

impl Pty {
    /// Starts the program.
    pub(super) fn start(
        binary: &Path,
        sandbox: &Sandbox,
        server: &ScriptedServer,
        arguments: &[&str],
    ) -> Result<Self> {
        let pair = native_pty_system().openpty(size(WINDOW))?;
        let mut command = CommandBuilder::new(binary);
        command.args(arguments);
        command.env_clear();
        command.cwd(sandbox.project());
        for (name, value) in sandbox.command_with(binary, server).get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", "xterm-256color");
        let (columns, rows) = WINDOW;
        let parser = vt100::Parser::new(rows.try_into()?, columns.try_into()?, 100_000);
        let started = Instant::now();
        let seen = Seen { parser, written: 0, last: started, is_over: false };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let child = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let reader = pair.master.try_clone_reader()?;
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || read_all(reader, &shared));
        let keys = pair.master.take_writer()?;
        Ok(Self { seen, keys, master: pair.master, child, started })
    }

    /// Types, and answers with the moment before.
    pub(super) fn send(&mut self, keys: &str) -> Result<Instant> {
        let begun = Instant::now();
        self.keys.write_all(keys.as_bytes())?;
        self.keys.flush()?;
        Ok(begun)
    }

    /// Waits until the screen satisfies this; answers with how long it took since `begun`.
    pub(super) fn until(
        &self,
        what: &str,
        begun: Instant,
        is_met: impl Fn(&vt100::Screen) -> bool,
    ) -> Result<Duration> {
        let until = Instant::now() + LIMIT;
        let mut seen = self.lock();
        while !is_met(seen.parser.screen()) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || seen.is_over {
                bail!("waited for {what}; the screen is\n{}", seen.parser.screen().contents());
            }
            let waited = self.seen.1.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(seen.last.saturating_duration_since(begun))
    }

    /// Waits until the prompt is there and nothing runs; answers with how long that took since the start.
    pub(super) fn until_idle(&self) -> Result<Duration> {
        self.until("the prompt", self.started, |screen| {
            let text = screen.contents();
            text.lines().any(|row| row.starts_with('>')) && !text.contains("Esc stops")
        })
    }

    /// Waits until nothing was written for `quiet`; answers with how long the writing took since `begun`.
    pub(super) fn settle(&self, begun: Instant, quiet: Duration) -> Duration {
        let until = Instant::now() + LIMIT;
        loop {
            let last = self.lock().last;
            let silent = last.max(begun).elapsed();
            if silent >= quiet || Instant::now() > until {
                return last.saturating_duration_since(begun);
            }
            std::thread::sleep(quiet - silent);
        }
    }

    /// How many bytes the program has written.
    pub(super) fn written(&self) -> usize {
        self.lock().written
    }

    /// How many rows have scrolled off.
    pub(super) fn scrolled(&self) -> usize {
        let mut seen = self.lock();
        let screen = seen.parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let rows = screen.scrollback();
        screen.set_scrollback(0);
        rows
    }

    /// Gives the window another size.
    pub(super) fn resize(&self, window: (u16, u16)) -> Result<Instant> {
        let mut seen = self.lock();
        seen.parser.screen_mut().set_size(window.1.try_into()?, window.0.try_into()?);
        drop(seen);
        let begun = Instant::now();
        self.master.resize(size(window))?;
        Ok(begun)
    }

    /// The processor time of the process so far, in all its threads.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both calls write into locals that outlive them; the process has not been waited for.
        let failed = unsafe {
            libc::clock_getcpuclockid(self.pid()?, &raw mut clock) != 0
                || libc::clock_gettime(clock, &raw mut time) != 0
        };
        if failed {
            bail!("the kernel does not say what the process cost");
        }
        Ok(Duration::new(u64::try_from(time.tv_sec)?, u32::try_from(time.tv_nsec)?))
    }

    /// The most memory that the process had so far, in bytes.
    pub(super) fn peak(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no peak")?;
        let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kibibytes * 1024)
    }

    /// Waits for the end; answers with how long it took since `begun`.
    pub(super) fn end(mut self, begun: Instant) -> Result<Duration> {
        let until = Instant::now() + LIMIT;
        let mut seen = self.lock();
        while !seen.is_over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("the program does not end");
            }
            seen = self.seen.1.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(seen);
        self.child.wait()?;
        Ok(begun.elapsed())
    }

    fn pid(&self) -> Result<libc::pid_t> {
        Ok(libc::pid_t::try_from(self.child.process_id().context("the process has ended")?)?)
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // One that has ended is what was wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size((columns, rows): (u16, u16)) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn read_all(mut reader: Box<dyn Read + Send>, shared: &(Mutex<Seen>, Condvar)) {
    let mut buffer = [0; 65_536];
    loop {
        let count = reader.read(&mut buffer).unwrap_or(0);
        let arrived = Instant::now();
        let mut seen = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.parser.process(&buffer[..count]);
        seen.written += count;
        if count == 0 {
            seen.is_over = true;
        } else {
            seen.last = arrived;
        }
        drop(seen);
        shared.1.notify_all();
        if count == 0 {
            return;
        }
    }
}
