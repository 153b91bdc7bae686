//! Code that several subcommands share.

pub(crate) mod cookies;
pub(crate) mod digest;
pub(crate) mod input;
pub(crate) mod monitor;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod scale;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod summary;

// `airtcp-serve` shares these modules.
pub(crate) use airtcp_command::{console, decisions, failure, host_args, reporter, senders};
