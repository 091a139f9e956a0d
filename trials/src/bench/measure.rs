//! The cost of a child process as the kernel counts it: wall time, processor time and peak memory,
//! the last two from `wait4`, which counts exactly this child. A watchdog kills a child that does not
//! end.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// No benchmark runs a child for longer than this.
const LIMIT: Duration = Duration::from_secs(600);

/// What a child cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    /// User and system time.
    pub(super) cpu: Duration,
    /// Peak resident memory in bytes.
    pub(super) peak: u64,
}

/// Runs a command with its output thrown away and fails if it fails.
pub(super) fn run(command: &mut Command) -> Result<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let pid = libc::pid_t::try_from(child.id()).context("the process id is out of range")?;
    let (ended, watched) = mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if watched.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: `kill` has no memory effects; `ended` is dropped as soon as the child is reaped.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    });
    let (status, usage) = wait(pid)?;
    let wall = start.elapsed();
    drop(ended);
    if watchdog.join().is_err() {
        bail!("the watchdog died");
    }
    if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        bail!("{command:?} failed with wait status {status:#x}");
    }
    let time = |value: libc::timeval| {
        Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or_default())
            + Duration::from_micros(u64::try_from(value.tv_usec).unwrap_or_default())
    };
    // Linux counts in kibibytes, macOS in bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    let peak = u64::try_from(usage.ru_maxrss).unwrap_or_default() * unit;
    Ok(Cost { wall, cpu: time(usage.ru_utime) + time(usage.ru_stime), peak })
}

fn wait(pid: libc::pid_t) -> Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which all zeros is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to locals that outlive the call.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if waited == pid {
            return Ok((status, usage));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error).context("cannot wait for the child");
        }
    }
}

/// Runs the same command several times and takes the median of each figure.
pub(super) fn repeat(times: usize, mut command: impl FnMut() -> Command) -> Result<Cost> {
    let costs: Vec<Cost> = (0..times).map(|_| run(&mut command())).collect::<Result<_>>()?;
    median_cost(&costs)
}

/// The median of each figure.
pub(super) fn median_cost(costs: &[Cost]) -> Result<Cost> {
    let wall = median(costs.iter().map(|cost| cost.wall)).context("nothing was measured")?;
    let cpu = median(costs.iter().map(|cost| cost.cpu)).context("nothing was measured")?;
    let peak = median(costs.iter().map(|cost| cost.peak)).context("nothing was measured")?;
    Ok(Cost { wall, cpu, peak })
}

/// The middle of the sorted values; the upper one of two.
pub(super) fn median<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = values.collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3, 1, 2].into_iter()), Some(2));
        assert_eq!(median([4, 1].into_iter()), Some(4));
        assert_eq!(median(std::iter::empty::<u8>()), None);
    }

    #[test]
    fn a_child_has_a_cost() {
        let cost = run(Command::new("sh").args(["-c", "exit 0"])).unwrap();
        assert!(cost.peak > 100_000, "{cost:?}");
        assert!(cost.wall > Duration::ZERO);
    }

    #[test]
    fn a_failing_child_is_an_error() {
        assert!(run(Command::new("sh").args(["-c", "exit 3"])).is_err());
        assert!(run(Command::new("sh").args(["-c", "kill -9 $$"])).is_err());
        assert!(run(&mut Command::new("there-is-no-such-program")).is_err());
    }
}
