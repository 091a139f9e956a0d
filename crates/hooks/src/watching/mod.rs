//! What hooks want to know the changes of: paths that they named, and the workspace. The kernel is asked where it can say.

pub(crate) mod kernel_watch;
pub(crate) mod watch;
pub(crate) mod workspace;
