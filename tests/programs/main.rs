//! Both programs as people and scripts use them: what they promise of all their commands.

mod completion;
mod exits;
mod foreign;
mod log;
mod options;
mod prose;
mod tables;
mod typed;
