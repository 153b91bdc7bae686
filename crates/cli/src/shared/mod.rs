//! Code that several subcommands share.

pub(crate) mod cookies;
pub(crate) mod csv;
pub(crate) mod decisions;
pub(crate) mod digest;
pub(crate) mod failure;
pub(crate) mod input;
pub(crate) mod monitor;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod reporter;
pub(crate) mod say;
pub(crate) mod scale;
pub(crate) mod senders;
pub(crate) mod station;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod summary;
pub(crate) mod unanswered;
