//! The gate's judgement and the reading of commands, from outside.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod gate;
mod gate_properties;
mod knowledge;
mod shell;
