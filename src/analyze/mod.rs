//! What a capture says about the TCP connections in it, whoever made it.

pub mod packet;
pub mod trace;
