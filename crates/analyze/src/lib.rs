//! What a capture says about the TCP connections in it, whoever made it.
//!
//! From frames to packets: [`capture`], [`link_layer`], [`ip`]; from packets to connections: [`connections`], and what is
//! said about one: [`connection`]. [`survey`] puts them together.

pub mod airlink_events;
pub mod capture;
pub mod comments;
pub mod connection;
pub mod connections;
pub mod decisions;
mod endpoints;
pub mod ip;
pub mod link_layer;
pub mod packet;
pub mod path;
pub mod problem;
#[cfg(test)]
mod scenarios;
pub mod survey;
pub mod trace;
