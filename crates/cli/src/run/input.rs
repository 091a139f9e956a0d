//! Where prompts come from: the command line and piped text. Bad input is named and refused; it never becomes half a
//! prompt. Messages as JSON lines are read by `qoder-stdio`.

use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;

use crate::exit::Fault;
use crate::screen::print_note;

/// How long piped text may take to begin when there is a prompt already.
const PATIENCE_SECONDS: i64 = 3;
/// The longest prompt that is accepted.
const LONGEST: u64 = 64 * 1024 * 1024;

/// The prompt from the command line and stdin together; `None` without a prompt.
pub fn prompt(argument: Option<&str>, optional: bool) -> Result<Option<String>, Fault> {
    let piped = match argument {
        Some(_) if !begins_soon() => None,
        None if optional && !begins_soon() => None,
        _ => read_stdin()?,
    };
    let text = match (argument, piped) {
        (Some(argument), Some(piped)) => format!("{argument}\n\n{piped}"),
        (Some(argument), None) => argument.to_owned(),
        (None, Some(piped)) => piped,
        (None, None) => return Ok(None),
    };
    check(&text)?;
    Ok(Some(text))
}

fn check(text: &str) -> Result<(), Fault> {
    if text.trim().is_empty() {
        return Err(Fault::input("the prompt is empty", "give a prompt: qodercli -p \"…\", or pipe one in"));
    }
    if text.contains('\0') {
        return Err(Fault::input("the prompt contains a NUL character", "remove it; prompts are text"));
    }
    Ok(())
}

/// True when stdin is not a terminal and has something, or its end, to read shortly. A program that leaves our stdin
/// open without writing must not make us wait for ever.
fn begins_soon() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return false;
    }
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let wait = Timespec { tv_sec: PATIENCE_SECONDS, tv_nsec: 0 };
    match poll(&mut fds, Some(&wait)) {
        Ok(0) => {
            print_note(&format!(
                "warning: nothing arrived on stdin within {PATIENCE_SECONDS} s; continuing without it (redirect it from \
                 /dev/null to avoid the wait)"
            ));
            false
        }
        Ok(_) => true,
        Err(_) => false,
    }
}

fn read_stdin() -> Result<Option<String>, Fault> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = stdin.lock().take(LONGEST + 1).read_to_end(&mut bytes);
    if let Err(error) = read {
        // A closed descriptor is the same as no input.
        if error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) {
            return Ok(None);
        }
        return Err(Fault::input(format!("cannot read stdin: {error}"), "check what is piped in"));
    }
    if bytes.len() as u64 > LONGEST {
        return Err(Fault::input("the prompt is longer than 64 MiB", "put the text into a file and name it"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Fault::input(
            format!("the text on stdin is not valid UTF-8 (byte {at})"),
            "convert it, for example with iconv -t UTF-8",
        )
    })?;
    let text = text.trim_end().to_owned();
    Ok((!text.is_empty()).then_some(text))
}
