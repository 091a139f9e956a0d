//! Ending this process by a signal, so that its parent learns why: the handlers of the program are taken off first.

/// Ends this process by the signal of a name, as if it had never been handled.
pub fn end_by_signal(name: &str) -> ! {
    let number = match name {
        "SIGHUP" => libc::SIGHUP,
        "SIGINT" => libc::SIGINT,
        "SIGQUIT" => libc::SIGQUIT,
        _ => libc::SIGTERM,
    };
    // SAFETY: restores the default action and sends a signal to this process; nothing of the program runs afterwards.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut blocked);
        libc::sigaddset(&raw mut blocked, number);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const blocked, std::ptr::null_mut());
        libc::kill(libc::getpid(), number);
    }
    // A signal that is ignored by the parent's wish ends nothing.
    std::process::exit(128 + number)
}
