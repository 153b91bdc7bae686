//! RLC of LTE, 3GPP TS 36.322: acknowledged mode (AM) and unacknowledged mode (UM).
//!
//! A sequence number counts PDUs. A PDU is as large as its grant and carries octets of any number of SDUs, and
//! the receiver delivers SDUs in sequence.
//!
//! # Use
//!
//! [`AmEntity`] sends and receives. For each transport block of `octets` octets, the caller calls
//! [`pull`](AmEntity::pull), which appends at most one STATUS PDU, and one PDU or segment with data that
//! fills the rest. The caller hands each arriving PDU to [`receive`](AmEntity::receive). At
//! [`next_deadline`](AmEntity::next_deadline) it calls [`on_deadline`](AmEntity::on_deadline), before `pull`
//! for the same instant. [`UmSender`] and [`UmReceiver`] are the two ends of UM.
//!
//! ```
//! use airlink::rlc::lte::{AmConfig, AmEntity};
//! use airlink::rlc::service::{Event, Sdu};
//! use airwire::time::Instant;
//!
//! let (mut network, mut terminal) = (AmEntity::new(AmConfig::default()), AmEntity::new(AmConfig::default()));
//! for id in [7, 8] {
//!     network.submit(Sdu { id, octets: vec![1; 100].into() });
//! }
//! // One PDU carries both SDUs: 2 octets of header, and a Length Indicator.
//! let (mut pdus, mut events) = (Vec::new(), Vec::new());
//! assert_eq!(network.pull(Instant::ZERO, 300, &mut pdus), 204);
//! terminal.receive(Instant::ZERO, &pdus[0].octets, &mut events)?;
//! assert_eq!(events, [Event::Delivered(vec![1; 100]), Event::Delivered(vec![1; 100])]);
//!
//! // The PDU polls. The answer confirms the SDUs.
//! let (mut pdus, mut events) = (Vec::new(), Vec::new());
//! terminal.pull(Instant::ZERO, 200, &mut pdus);
//! network.receive(Instant::ZERO, &pdus[0].octets, &mut events)?;
//! assert_eq!(events, [Event::Confirmed(7), Event::Confirmed(8)]);
//! # Ok::<(), airlink::rlc::am::ReceiveError>(())
//! ```
//!
//! In this module, "§" with a number is a clause of TS 36.322 V13.2.0. State variables and timers have the
//! names of the standard. `Choice:` marks a decision that the standard leaves open.

mod am;
mod bits;
pub mod codec;
mod concatenation;
mod reassembly;
mod subheader;
mod um;

pub use am::{AmConfig, AmEntity};
pub use codec::{AmFormat, AmSnLength, LiLength, UmSnLength};
pub(crate) use subheader::length as subheader_length;
pub use um::{UmConfig, UmReceiver, UmSender};
