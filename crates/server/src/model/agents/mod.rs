//! Agents: what they are made of, their tools, and how clients read them.

pub mod agent;
pub mod agent_view;
pub mod roster;
pub mod tools;
pub mod toolset;
