//! A userspace TCP: everything above IP, with a loss recovery that is put together from named parts.
//!
//! It is *sans-I/O*: it knows no clock, no socket, no thread and no randomness of its own. A driver hands in the time
//! and IP packets, and gets IP packets and the next deadline back. So the same code runs over a TUN device in real
//! time and in a simulation in virtual time. Nothing in it calls an operating system: it builds for
//! `wasm32-unknown-unknown`.
//!
//! # Driving a host
//!
//! A [`Host`] has connections and listeners behind its addresses. Its methods are of four kinds:
//!
//! | | | |
//! |---|---|---|
//! | **in** | [`handle_packet`](Host::handle_packet), [`handle_deadline`](Host::handle_deadline) | what the network and the clock have to say |
//! | **commands** | [`connect`](Host::connect), [`listen`](Host::listen), [`accept`](Host::accept), [`read`](Host::read), [`write`](Host::write), [`close`](Host::close), … | what the application wants |
//! | **out** | [`poll_packet`](Host::poll_packet), [`next_deadline`](Host::next_deadline), [`poll_changed`](Host::poll_changed), [`poll_event`](Host::poll_event) | what has to leave, when to come back, who has news, what there is to log |
//! | **getters** | [`connection`](Host::connection), [`counters`](Host::counters), … | they change nothing |
//!
//! After anything of the first two kinds:
//!
//! 1. call [`Host::poll_packet`] and send what it writes, until it says false;
//! 2. if [`Host::note_changes`] was asked for, call [`Host::poll_changed`] until it says `None`, let the application
//!    act on each connection named, and drain again;
//! 3. wait for a packet, or for [`Host::next_deadline`].
//!
//! Two hosts in memory, which hand their packets to each other:
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
//! /// Until neither has anything more to say at this instant.
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
//! let count = server.read(now, theirs, &mut buffer)?;
//! assert_eq!(&buffer[..count], b"through the air");
//! assert_eq!(server.read(now, theirs, &mut buffer)?, 0, "the end of the stream");
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
//! # What stands where
//!
//! * [`recovery`] holds the algorithms: six questions, one answer each. A [`Recipe`] names the answers.
//! * [`flight`], [`rtt`], [`ranges`] are what they look at; a [`Profile`] is everything else in which one standard TCP
//!   differs from another; a [`SenderSpec`] names a recipe and a profile.
//! * [`tcp`] is one connection, [`host`] many behind one address.
//! * [`events`] is what a host tells for logs, if it is asked to; [`memory`] is the limit that it keeps to, if it has one.
//! * [`explain`](mod@explain) says what a recipe means.
//! * [`relay`] carries the streams of one connection over to another.
//!
//! Time, headers and randomness are those of `airwire`, which the network below shares.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    expect(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may have one entry")
)]

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

pub use host::{ConnId, ConnectError, Host, HostConfig, HostCounters, IoError, ListenError, ListenId};
pub use profile::{Profile, ProfileName};
pub use recovery::{Recipe, RecipeError};
pub use sender::SenderSpec;
pub use tcp::{
    Connection, Ended, Info, KeepAlive, Linger, Patience, SocketOptions, State, Statistics, Threshold,
    Unreachable,
};
