//! MAC and HARQ of LTE and NR, as far as TCP can observe them: when a bearer may transmit, how many octets,
//! and when they arrive.
//!
//! - [`grid`] divides time into slots, which the TDD pattern assigns to directions;
//! - [`transport_block`] computes the size of transport blocks, and [`link_adaptation`] changes it over time;
//! - [`harq`] retransmits transport blocks, and [`in_flight`] orders them by the time of their arrival;
//! - [`pdu`] encodes transport blocks for records;
//! - [`grants`] models scheduling requests, buffer status reports and grants of the uplink;
//! - [`drx`] models when a terminal with discontinuous reception can be reached;
//! - [`scheduler`] assigns slots or TTIs to mobiles, and [`other_users`] competes for the downlink.
//!
//! All of these are sans-I/O machines. Random numbers come from the caller.

pub mod drx;
pub mod grants;
pub mod grid;
pub mod harq;
pub mod in_flight;
pub mod link_adaptation;
pub mod other_users;
pub mod pdu;
pub mod scheduler;
pub mod transport_block;
