//! Background tasks and the list of things to do.

mod task_output;
mod task_stop;
mod todo_write;
