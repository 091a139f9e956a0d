//! The filter that makes the kernel hold the calls by which files are changed until the broker has answered them.
//!
//! Calls whose arguments a filter cannot see, and those that are newer than this table, do not exist for confined
//! commands: programs fall back to older ones.

use std::sync::OnceLock;

use seccompiler::{BpfProgram, sock_filter};

use crate::sandbox::broker::numbers;

/// The last call that the table knows; what came later could change files in a way it does not judge.
const LAST_KNOWN: i64 = 451;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const UNKNOWN: u32 = 0x0005_0000 | 38;

const LOAD: u16 = 0x20;
const RETURN: u16 = 0x06;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER: u16 = 0x25;
const JUMP_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;

/// Where the number of the call is.
const NUMBER: u32 = 0;
/// Where the lower half of an argument is.
const fn argument(place: u32) -> u32 {
    16 + 8 * place + if cfg!(target_endian = "big") { 4 } else { 0 }
}

/// The program. Built at the first use.
pub(crate) fn program() -> &'static BpfProgram {
    static BUILT: OnceLock<BpfProgram> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> BpfProgram {
    let step = |code: u16, jt: u8, jf: u8, k: u32| sock_filter { code, jt, jf, k };
    let word = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    // Which flags make opening a change: writing, creating, truncating, and files without a name.
    let changes = (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC).cast_unsigned()
        | (libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();
    let opening = |place: u32| {
        [
            step(LOAD, 0, 0, argument(place)),
            // One that only marks a place changes nothing, whatever else it says.
            step(JUMP_ANY_BIT, 1, 0, libc::O_PATH.cast_unsigned()),
            step(JUMP_ANY_BIT, 1, 0, changes),
            step(RETURN, 0, 0, ALLOW),
            step(RETURN, 0, 0, NOTIFY),
        ]
    };
    let mut program = vec![
        step(LOAD, 0, 0, NUMBER),
        // The other numbering is refused elsewhere.
        step(JUMP_GREATER_OR_EQUAL, 0, 1, 0x4000_0000),
        step(RETURN, 0, 0, ALLOW),
        step(JUMP_GREATER, 0, 1, word(LAST_KNOWN)),
        step(RETURN, 0, 0, UNKNOWN),
        step(JUMP_EQUAL, 0, 1, word(libc::SYS_openat2)),
        step(RETURN, 0, 0, UNKNOWN),
        step(JUMP_EQUAL, 0, 5, word(libc::SYS_openat)),
    ];
    program.extend(opening(2));
    #[cfg(target_arch = "x86_64")]
    {
        program.push(step(JUMP_EQUAL, 0, 5, word(libc::SYS_open)));
        program.extend(opening(1));
    }
    for number in numbers() {
        program.push(step(JUMP_EQUAL, 0, 1, word(number)));
        program.push(step(RETURN, 0, 0, NOTIFY));
    }
    program.push(step(RETURN, 0, 0, ALLOW));
    program
}

/// Installs the filter in this process and returns the descriptor at which its calls arrive, or a negative number.
///
/// # Safety
/// Only in a child process between fork and exec, whose next such call the broker answers.
pub(crate) unsafe fn install(program: &BpfProgram) -> i64 {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap_or(0),
        filter: program.as_ptr().cast_mut().cast(),
    };
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A signal must not make a call happen twice; kernels before 5.19 cannot promise that.
    for flags in [listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listener] {
        // SAFETY: the kernel reads the program, which outlives the call.
        let installed = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        };
        if installed >= 0 {
            return installed;
        }
    }
    -1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_stays_inside() {
        let program = program();
        assert!(program.len() < 256);
        for (place, step) in program.iter().enumerate() {
            let jumps = step.code & 0x07 == 0x05;
            let furthest = place + 1 + usize::from(step.jt.max(step.jf));
            assert!(!jumps || furthest < program.len(), "{place}");
        }
        assert_eq!(program.last().map(|step| (step.code, step.k)), Some((RETURN, ALLOW)));
    }
}
