//! The gate against real scripts, hooks, sessions through their handles, and a page that is made from the code.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod gate_oracle;
mod hooks;
mod permission_cases;
mod permissions_page;
mod sessions;
