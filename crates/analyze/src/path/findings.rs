//! The results for a path, serialized as JSON. `Display` formats them as text.

use std::net::SocketAddr;

use serde::Serialize;

use super::Clock;
use crate::connection::findings::RttFindings;
use aircaptures::problem::Problems;

/// All results for a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathFindings {
    /// The captures, in the order of the path.
    pub captures: Vec<CaptureFindings>,
    /// Number of packets found in at least two captures. It is 0 if a device on the path translates
    /// addresses.
    pub matched: u64,
    /// The connections, in the order of their addresses. Successive connections with the same ports count as
    /// one.
    pub connections: Vec<ConnectionOnPath>,
    /// The comparison with airlink's events, if given.
    pub truth: Option<TruthFindings>,
}

/// The results for one capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaptureFindings {
    /// The file name as the user typed it.
    pub name: String,
    /// Number of TCP packets that passed the filter.
    pub tcp_packets: u64,
    /// The assumed clock of the capture.
    pub clock: Clock,
    /// Seconds by which its clock is assumed to be ahead of the first capture's clock.
    pub clock_ahead_seconds: f64,
    /// Number of packets whose capture time is earlier than their sending time, because the assumed clock is
    /// inexact.
    pub negative_delays: u64,
    /// The problems of the capture.
    pub problems: Problems,
}

/// The directions of a connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConnectionOnPath {
    /// The directions, the one with more data first. Only one if the other direction does not have packets.
    pub directions: Vec<FlowFindings>,
}

/// The packets of one sender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowFindings {
    /// The sender's address.
    pub from: SocketAddr,
    /// The receiver's address.
    pub to: SocketAddr,
    /// The index of the capture at the sender's end, counted from 0.
    pub enters_at: usize,
    /// Number of packets found in at least two captures.
    pub matched: u64,
    /// Bytes of payload that entered.
    pub bytes: u64,
    /// Packets with payload, SYN or FIN.
    pub data: Transit,
    /// All other packets, which are pure ACKs.
    pub acks: Transit,
    /// Number of retransmissions: packets of `data` whose complete data had entered before.
    pub retransmitted: u64,
    /// Number of spurious retransmissions: packets of `retransmitted` whose complete data had arrived before.
    pub spurious: u64,
    /// The delay from the sender's end to the other end.
    pub delay: RttFindings,
    /// The parts of the delay between successive captures, in the order of the path.
    pub delay_between: Vec<RttFindings>,
}

/// The fates of the packets of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Transit {
    /// Packets that passed the sender's end.
    pub entered: u64,
    /// Packets that passed the other end.
    pub arrived: u64,
    /// Packets that did not pass the other end, although its capture was in progress.
    pub lost: u64,
    /// The lost packets by gap between successive captures, in the order of the path.
    pub lost_between: Vec<u64>,
    /// The part of `lost` that airlink attributes to a full queue.
    pub lost_by_congestion: u64,
    /// The part of `lost` that airlink attributes to the radio link.
    pub lost_by_radio: u64,
    /// The part of `lost` that a stage could not carry, according to airlink.
    pub refused: u64,
    /// Packets with an unknown fate, because not all captures were in progress.
    pub undetermined: u64,
    /// Packets that were overtaken by packets that had entered later.
    pub reordered: u64,
    /// Copies that the path made.
    pub duplicated: u64,
    /// Packets that passed the other end, but not the sender's end.
    pub unmatched_arrivals: u64,
    /// Number of times that a capture lacks a packet that passed the captures on both sides.
    pub missed: u64,
}

/// The results of the captures compared with airlink's events.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TruthFindings {
    /// Captured TCP packets that are in the events.
    pub known: u64,
    /// Captured TCP packets that are not in the events.
    pub unknown: u64,
    /// Packets that were dropped, or damaged so that a receiver drops them, and that the captures show as
    /// lost.
    pub losses_found: u64,
    /// Packets that were dropped, but that the captures show as arrived.
    pub losses_missed: u64,
    /// Packets that were dropped, but whose fate the captures do not show.
    pub losses_undetermined: u64,
    /// Packets that left the path, but that the captures show as lost.
    pub false_losses: u64,
    /// Packets that left the path, and that the captures show as arrived.
    pub arrivals_found: u64,
    /// Packets that left the path, but whose fate the captures do not show.
    pub arrivals_undetermined: u64,
    /// Packets that left the path with changed headers that no checksum detects, so that the capture at the
    /// far end contains different packets.
    pub altered_arrivals: u64,
    /// The congestion losses among `losses_found`, by gap as in [`Transit::lost_between`].
    pub congestion_between: Vec<u64>,
    /// The radio losses among `losses_found`, by gap as in [`Transit::lost_between`].
    pub radio_between: Vec<u64>,
}
