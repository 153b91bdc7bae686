//! What is said about a path, for programs; `text` says the same to a person.

use std::net::SocketAddr;

use serde::Serialize;

use super::Clock;
use crate::connection::findings::RttFindings;
use crate::problem::Problems;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathFindings {
    /// In the path's order.
    pub captures: Vec<CaptureFindings>,
    /// Packets that were found in two captures at least. None, if a translator of addresses is between them.
    pub found_again: u64,
    /// By their addresses. Those that use the same ports again count as one.
    pub connections: Vec<ConnectionOnPath>,
    pub truth: Option<TruthFindings>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaptureFindings {
    pub name: String,
    pub tcp_packets: u64,
    pub clock: Clock,
    /// Of the first one's.
    pub clock_ahead_seconds: f64,
    /// By the clocks as they were taken, which therefore are not quite right.
    pub arrived_before_they_left: u64,
    pub problems: Problems,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConnectionOnPath {
    pub directions: Vec<FlowFindings>,
}

/// The packets of one sender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowFindings {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// The capture at its sender's end, from 0.
    pub enters_at: usize,
    /// Found in two captures at least.
    pub found: u64,
    /// Octets of payload that entered.
    pub bytes: u64,
    /// Packets with data, SYN or FIN.
    pub data: Transit,
    /// All others: ACKs alone.
    pub acks: Transit,
    /// Of `data`: everything in them had entered before.
    pub sent_again: u64,
    /// Of these: everything in them had arrived before they did, so sending them again was a mistake.
    pub unneeded: u64,
    /// From the sender's end to the other.
    pub delay: RttFindings,
    /// Its parts: between the first capture and the second, the second and the third, …
    pub delay_between: Vec<RttFindings>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Transit {
    pub entered: u64,
    /// At the other end.
    pub arrived: u64,
    pub lost: u64,
    /// Where: between the first capture and the second, the second and the third, …
    pub lost_between: Vec<u64>,
    /// By airlink's events: of `lost`.
    pub lost_by_congestion: u64,
    pub lost_by_radio: u64,
    /// A stage could not carry it.
    pub refused: u64,
    /// Not all captures were being made at that time.
    pub not_told: u64,
    /// Overtaken by packets that had entered later.
    pub reordered: u64,
    /// Copies that the path made.
    pub duplicated: u64,
    /// Seen behind the sender's end, but not there.
    pub came_from_nowhere: u64,
    /// Seen on either side of a capture that does not have them.
    pub missed: u64,
}

/// How what was found compares with what airlink says.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TruthFindings {
    /// TCP packets of the captures that the events know, too.
    pub known: u64,
    pub unknown: u64,
    /// Dropped, and found to be lost: right.
    pub losses_found: u64,
    /// Dropped, and found to have arrived.
    pub losses_missed: u64,
    /// Dropped, and not told what became of them.
    pub losses_not_told: u64,
    /// Left the path, and found to be lost.
    pub losses_invented: u64,
    pub arrivals_found: u64,
    pub arrivals_not_told: u64,
    /// Of the losses that were found, by what airlink says, where they were found: as `lost_between`.
    pub congestion_between: Vec<u64>,
    pub radio_between: Vec<u64>,
}
