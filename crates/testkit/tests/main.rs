//! The test kit as its users have it.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod built_logs_are_well_formed;
mod client;
mod documented_records_are_real;
mod prompt_is_snapshotted;
mod sandbox_is_clean;
mod server_makes_faults;
mod server_remembers_requests;
mod server_speaks_three_protocols;
