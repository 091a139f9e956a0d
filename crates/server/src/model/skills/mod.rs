//! Skills: folders with instructions that agents use. A skill has versions, which never change.

pub mod names;
pub mod skill;
pub mod upload;
