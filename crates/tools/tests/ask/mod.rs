//! Tools that put something to a person.

mod ask_user_question;
mod exit_plan_mode;
