//! Folds, rules of the loop, recovery and timelines, from outside.
//! One program for the whole crate, one module per subject: each further program would be linked with everything again.

mod cuts_and_answers_in_the_fold;
mod hooks_in_the_fold;
mod recover;
mod rules;
mod timeline;
