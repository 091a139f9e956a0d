//! Child processes: starting them, ending them with everything they started, their environment, their bounded output, and
//! the sandbox that confines them.
//!
//! A [`tree::ProcessTree`] is a program with all its descendants. A [`shell::Shell`] is bash in such a tree, confined when a
//! [`sandbox::Confinement`] was prepared. Nothing here decides whether a program may run.

mod captured;
mod end_by_signal;
pub mod environment;
mod memory;
pub mod output;
pub mod sandbox;
mod server_process;
pub mod shell;
mod task_file;
pub mod tree;

pub use captured::{
    CAPTURED_BYTES, Captured, CapturedListener, CapturedProgram, CapturedRun, CapturedStream,
};
pub use end_by_signal::end_by_signal;
pub use memory::return_free_memory;
pub use sandbox::loopback_to_socket;
pub use server_process::ServerProcess;
pub use task_file::TaskFile;
pub use tree::{hold_terminal, own_process_tree, set_terminal_overlay, set_terminal_taken};
