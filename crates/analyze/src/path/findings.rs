//! What is said about a path, for programs: serialized as JSON. `Display` says the same to a person.

use std::net::SocketAddr;

use serde::Serialize;

use super::Clock;
use crate::connection::findings::RttFindings;
use aircaptures::problem::Problems;

/// Everything that is said about a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathFindings {
    /// In the path's order.
    pub captures: Vec<CaptureFindings>,
    /// Packets that were found in two captures at least: 0 if addresses are translated between them.
    pub found_again: u64,
    /// In the order of their addresses. Connections that use the same ports again count as one.
    pub connections: Vec<ConnectionOnPath>,
    /// The comparison with airlink's events, if there are any.
    pub truth: Option<TruthFindings>,
}

/// What is said about one capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaptureFindings {
    /// The file, as a person typed it.
    pub name: String,
    /// Those that passed the filter.
    pub tcp_packets: u64,
    /// What its clock was taken for.
    pub clock: Clock,
    /// By how much its clock was taken to be ahead of the first one's.
    pub clock_ahead_seconds: f64,
    /// Packets that are in it earlier than they left: the clocks were not taken quite right.
    pub arrived_before_they_left: u64,
    /// What is wrong with it.
    pub problems: Problems,
}

/// Both directions of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConnectionOnPath {
    /// The one with most data first; one only if no packet of the other was seen.
    pub directions: Vec<FlowFindings>,
}

/// The packets of one sender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowFindings {
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// The capture at its sender's end, from 0.
    pub enters_at: usize,
    /// Packets that were found in two captures at least.
    pub found: u64,
    /// Octets of payload that entered.
    pub bytes: u64,
    /// Packets with data, SYN or FIN.
    pub data: Transit,
    /// All other packets: ACKs alone.
    pub acks: Transit,
    /// Packets of `data` all of which had entered before.
    pub sent_again: u64,
    /// Packets of `sent_again` all of which had arrived before: sending them again was a mistake.
    pub unneeded: u64,
    /// From the sender's end to the other end.
    pub delay: RttFindings,
    /// Its parts, in the order of the captures: between the first capture and the second, the second and the third, …
    pub delay_between: Vec<RttFindings>,
}

/// What became of packets of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Transit {
    /// Seen at the sender's end.
    pub entered: u64,
    /// Seen at the other end.
    pub arrived: u64,
    /// Not seen at the other end, although its capture was being made.
    pub lost: u64,
    /// Where they were lost: between the first capture and the second, the second and the third, …
    pub lost_between: Vec<u64>,
    /// Of `lost`: airlink says that a queue was full.
    pub lost_by_congestion: u64,
    /// Of `lost`: airlink says that the radio lost it.
    pub lost_by_radio: u64,
    /// Of `lost`: airlink says that a stage could not carry it.
    pub refused: u64,
    /// What became of them is not known: not all captures were being made.
    pub not_told: u64,
    /// Overtaken by packets that had entered later.
    pub reordered: u64,
    /// Copies that the path made.
    pub duplicated: u64,
    /// Seen at the other end, but not at the sender's.
    pub came_from_nowhere: u64,
    /// How often a capture does not have a packet that was seen on both sides of it.
    pub missed: u64,
}

/// What was found, compared with what airlink says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TruthFindings {
    /// TCP packets of the captures that are in the events.
    pub known: u64,
    /// TCP packets of the captures that are not in the events.
    pub unknown: u64,
    /// Dropped, or damaged so that a receiver drops it, and found to be lost.
    pub losses_found: u64,
    /// Dropped, and found to have arrived.
    pub losses_missed: u64,
    /// Dropped, and the captures do not tell.
    pub losses_not_told: u64,
    /// Left the path, and found to be lost.
    pub losses_invented: u64,
    /// Left the path, and found to have arrived.
    pub arrivals_found: u64,
    /// Left the path, and the captures do not tell.
    pub arrivals_not_told: u64,
    /// Left the path with other headers, which no checksum finds, so that the captures do not have it at the far end.
    pub arrived_as_others: u64,
    /// The losses of `losses_found` by congestion, by the gap where they were found: as [`Transit::lost_between`].
    pub congestion_between: Vec<u64>,
    /// The same for losses by the radio.
    pub radio_between: Vec<u64>,
}
