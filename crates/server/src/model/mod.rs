//! Rules without IO: what the things of the interface are made of, what may be done with them when, and how clients read them.

mod agents;
mod automation;
pub mod dialect;
pub mod environment;
pub mod fields;
pub mod files;
pub mod ids;
mod memory;
pub mod metadata;
pub mod problem;
pub mod refusal;
mod sessions;
mod skills;
pub mod time;
mod vaults;

pub use agents::{agent, agent_view, roster, tools, toolset};
pub use automation::{delivery, deployment, endpoint, happening, run, schedule};
pub use memory::{memories, memory_mount, memory_path, memory_store};
pub use sessions::{
    admission, budget, content, event, inputs, outcome, resources, session, status, thread, usage, work_items,
};
pub use skills::{names, skill, upload};
pub use vaults::{auth, vault};
