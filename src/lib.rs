//! A userspace TCP: everything above IP, with swappable loss recovery.
//!
//! The crate is *sans-I/O*: it has no clock, sockets, threads or source of randomness. A driver passes in the
//! time and IP packets, and receives IP packets and the next deadline. The same code therefore runs over a
//! TUN device in real time and in a simulation in virtual time. It never calls an operating system, so it
//! builds for `wasm32-unknown-unknown`.
//!
//! # Driving a host
//!
//! A [`Host`] holds the connections and listeners of its addresses. Its methods are of four kinds:
//!
//! * **Input** from the network and the clock: [`handle_packet`](Host::handle_packet) and
//!   [`handle_deadline`](Host::handle_deadline).
//! * **Commands** from the application: [`connect`](Host::connect), [`listen`](Host::listen),
//!   [`accept`](Host::accept), [`read`](Host::read), [`write`](Host::write), [`close`](Host::close) and
//!   others.
//! * **Output**: packets to send ([`poll_packet`](Host::poll_packet)), the next deadline
//!   ([`next_deadline`](Host::next_deadline)), connections whose state changed
//!   ([`poll_changed`](Host::poll_changed)) and log events ([`poll_event`](Host::poll_event)).
//! * **Getters** such as [`connection`](Host::connection) and [`counters`](Host::counters), which change
//!   nothing.
//!
//! After any input or command:
//!
//! 1. call [`Host::poll_packet`] and send the packet it wrote, until it returns false;
//! 2. if [`Host::note_changes`] was called, call [`Host::poll_changed`] until it returns `None`, let the
//!    application act on each of these connections, and repeat step 1;
//! 3. wait for a packet, or for [`Host::next_deadline`].
//!
//! Two hosts in memory that exchange packets:
//!
//! ```
//! use airtcp::{Host, HostConfig, Profile, Recipe, SocketOptions};
//! use airwire::time::Instant;
//!
//! fn host(address: &str) -> Host {
//!     let recipe: Recipe = "sack+limited-transmit".parse().unwrap();
//!     let addrs = vec![address.parse().unwrap()];
//!     Host::new(HostConfig { addrs, mtu: 1500, profile: Profile::default(), recipe, seed: 1 })
//! }
//!
//! /// Exchanges packets until neither host has one to send.
//! fn exchange(now: Instant, a: &mut Host, b: &mut Host) {
//!     let mut packet = Vec::new();
//!     while a.poll_packet(now, &mut packet) {
//!         b.handle_packet(now, &packet);
//!         while b.poll_packet(now, &mut packet) {
//!             a.handle_packet(now, &packet);
//!         }
//!     }
//! }
//!
//! let (mut client, mut server) = (host("192.0.2.1"), host("192.0.2.2"));
//! let options = SocketOptions::of(client.profile());
//! let port_80 = "192.0.2.2:80".parse()?;
//! let mut now = Instant::ZERO;
//!
//! let listener = server.listen(port_80, 16, options.clone())?;
//! let ours = client.connect(now, None, port_80, options)?;
//! exchange(now, &mut client, &mut server);
//! let theirs = server.accept(listener).expect("SYN, SYN,ACK and ACK were exchanged");
//!
//! client.write(now, ours, b"through the air")?;
//! client.close(now, ours);
//! exchange(now, &mut client, &mut server);
//! let mut buffer = [0; 100];
//! let count = server.read(theirs, &mut buffer)?;
//! assert_eq!(&buffer[..count], b"through the air");
//! assert_eq!(server.read(theirs, &mut buffer)?, 0, "the end of the stream");
//!
//! server.close(now, theirs);
//! exchange(now, &mut server, &mut client);
//! assert_eq!((server.connections(), client.in_time_wait()), (0, 1));
//! // TIME-WAIT ends when its time has come, which here is at once.
//! now = client.next_deadline().expect("TIME-WAIT has a timer");
//! client.handle_deadline(now);
//! exchange(now, &mut client, &mut server);
//! assert_eq!(client.connections(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/in_memory.rs` does the same over a path that takes time and loses packets.
//!
//! # Modules
//!
//! * [`recovery`] holds the loss recovery algorithms: six questions, one answer each. A [`Recipe`] names the
//!   answers.
//! * [`flight`], [`rtt`] and [`ranges`] hold the data that the algorithms use. A [`Profile`] holds everything
//!   else in which standard TCP stacks differ. A [`SenderSpec`] names a recipe and a profile.
//! * [`tcp`] implements one connection, and [`host`] many connections behind one address.
//! * [`events`] defines the events that a host reports for logs. [`memory`] limits what its connections may
//!   buffer. Both are off unless requested.
//! * [`explain`](mod@explain) describes a recipe.
//! * [`relay`] forwards the streams of one connection over another.
//!
//! `airwire` provides time, headers and randomness, which the network emulator shares.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    expect(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may have one entry")
)]

#[cfg(feature = "serde")]
mod decision_line;
pub mod events;
pub mod explain;
pub mod flight;
pub mod host;
pub mod memory;
pub mod profile;
pub mod ranges;
pub mod recovery;
pub mod relay;
pub mod rtt;
pub mod sender;
pub mod tcp;

#[cfg(feature = "serde")]
pub use decision_line::DecisionLine;
pub use host::{ConnId, ConnectError, Host, HostConfig, HostCounters, IoError, ListenError, ListenId};
pub use profile::{Profile, ProfileName};
pub use recovery::{Recipe, RecipeError};
pub use sender::SenderSpec;
pub use tcp::{
    Connection, Ended, Info, KeepAlive, Linger, Patience, SocketOptions, State, Statistics, Threshold,
    Unreachable,
};
