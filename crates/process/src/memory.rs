//! Memory of this process that is free but not yet the system's again.

/// Gives memory that was freed back to the system. An allocator that does so by itself, or cannot, has nothing to do.
pub fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function takes a number and may be called from any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
