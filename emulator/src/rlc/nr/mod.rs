//! RLC of 5G NR, 3GPP TS 38.322: acknowledged mode (AM) and unacknowledged mode (UM).
//!
//! A sequence number counts SDUs. A PDU carries one SDU or a segment of one, and the receiver delivers each
//! SDU as soon as it is complete.
//!
//! # Use
//!
//! [`AmEntity`] sends and receives. For each transport block of `octets` octets, the caller calls
//! [`pull`](AmEntity::pull), which appends a STATUS PDU, then retransmissions, then new data, as many PDUs as
//! fit. The caller hands each arriving PDU to [`receive`](AmEntity::receive). At
//! [`next_deadline`](AmEntity::next_deadline) it calls [`on_deadline`](AmEntity::on_deadline), before `pull`
//! for the same instant. [`UmSender`] and [`UmReceiver`] are the two ends of UM.
//!
//! ```
//! use airlink::rlc::nr::{AmConfig, AmEntity};
//! use airlink::rlc::service::{Event, Sdu};
//! use airwire::time::Instant;
//!
//! let (mut network, mut terminal) = (AmEntity::new(AmConfig::default()), AmEntity::new(AmConfig::default()));
//! network.submit(Sdu { id: 7, octets: vec![1; 100].into() });
//! let (mut pdus, mut events) = (Vec::new(), Vec::new());
//! network.pull(Instant::ZERO, 200, &mut pdus);
//! terminal.receive(Instant::ZERO, &pdus[0].octets, &mut events)?;
//! assert_eq!(events, [Event::Delivered(vec![1; 100])]);
//!
//! // The last PDU polls. The answer confirms the SDU.
//! let (mut pdus, mut events) = (Vec::new(), Vec::new());
//! terminal.pull(Instant::ZERO, 200, &mut pdus);
//! network.receive(Instant::ZERO, &pdus[0].octets, &mut events)?;
//! assert_eq!(events, [Event::Confirmed(7)]);
//! # Ok::<(), airlink::rlc::am::ReceiveError>(())
//! ```
//!
//! In this module, "§" with a number is a clause of TS 38.322 V16. State variables and timers have the names
//! of the standard. `Choice:` marks a decision that the standard leaves open.

mod am;
pub mod codec;
mod segmentation;
mod subheader;
mod um;

pub use am::{AmConfig, AmEntity};
pub use codec::{AmSnLength, UmSnLength};
pub use um::{UmConfig, UmReceiver, UmSender};
