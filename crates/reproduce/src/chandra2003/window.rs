//! §IV and §V: E-TCP's congestion window, and the delay until it retransmits a lost packet.

use std::collections::BTreeMap;

use airtcp::recovery::{Decision, What};
use airtcp_numbers::statistics::gains;
use airtcp_sim::run::{Report, Run};
use airtcp_sim::world::{DevicePacket, Dropped, PacketKind, Watch, World, WorldError};
use airwire::time::{Duration, Instant};
use serde::Serialize;

use super::measured::{percent, received, share, watch};
use super::readings::{BER_1E_6, REFERENCE};
use super::setting::Variant::{Etcp, EtcpEarly, Reno};
use super::setting::{BIT_ERROR_RATES, Ber, Setting, Variant, Way};
use crate::chart::{Axis, Chart, Scale};
use crate::grid::Grid;
use crate::{At, Claim, Effort, Finding, Judged, Table, cell, claim, column, mean};

const SENDERS: [Variant; 3] = [Reno, Etcp, EtcpEarly];
/// Minimum RTO of all senders here, in seconds. A timer does not cause an earlier retransmission.
const MIN_RTO: f64 = 1.0;

/// Measurements of one run.
#[derive(Clone, Copy, Serialize)]
struct OneRun {
    #[serde(rename = "packets received")]
    packets: f64,
    #[serde(rename = "mean of cwnd, segments")]
    cwnd: f64,
    #[serde(rename = "share of losses detected by ACKs")]
    by_acks: f64,
    #[serde(rename = "share of lost packets retransmitted within 1 s")]
    share_within_min_rto: f64,
}

/// The mean of cwnd over time, up to `end`.
fn mean_window(decisions: &[Decision], end: Instant) -> f64 {
    let changes = decisions.iter().filter_map(|decision| match decision.what {
        What::Window { cwnd, was_cwnd, .. } => Some((decision.at, was_cwnd, cwnd)),
        _ => None,
    });
    let (mut since, mut window, mut sum) = (Instant::ZERO, 1.0, 0.0);
    for (at, was, cwnd) in changes {
        sum += was * at.saturating_since(since).as_secs_f64();
        (since, window) = (at, cwnd);
    }
    sum += window * end.saturating_since(since).as_secs_f64();
    sum / end.as_secs_f64()
}

/// The time from the transmission of each lost packet to the next copy. Packets without a next copy are left out.
fn retransmission_delays(lost: &[Dropped], packets_at_device: &[DevicePacket]) -> Vec<f64> {
    let sent: BTreeMap<(u64, u32), Instant> = packets_at_device
        .iter()
        .filter_map(|packet| match packet.kind {
            PacketKind::Sent { offset, copy, .. } => Some(((offset, copy), packet.at)),
            PacketKind::Ack { .. } => None,
        })
        .collect();
    let delay = |lost: &Dropped| {
        let next = sent.get(&(lost.offset, lost.copy + 1))?;
        Some(next.saturating_since(lost.sent).as_secs_f64())
    };
    lost.iter().filter_map(delay).collect()
}

fn share_within_min_rto(retransmission_delays: &[f64]) -> f64 {
    let share_within_min_rto = retransmission_delays.iter().filter(|seconds| **seconds < MIN_RTO).count();
    share_within_min_rto as f64 / retransmission_delays.len().max(1) as f64
}

type Case = (Way, Ber);
type Runs = Grid<Variant, Case, OneRun>;

impl OneRun {
    fn of(length: Duration, report: &Report, world: &mut World) -> Self {
        let counters = &report.flows[0].counters;
        let detected = counters.fast_retransmits + counters.timeouts;
        Self {
            packets: received(report),
            cwnd: mean_window(world.decisions(0), Instant::ZERO + length),
            by_acks: counters.fast_retransmits as f64 / detected.max(1) as f64,
            share_within_min_rto: share_within_min_rto(&retransmission_delays(
                world.losses(0).as_slice(),
                world.device_packets(0),
            )),
        }
    }
}

fn run(effort: &Effort, length: Duration) -> Result<Runs, WorldError> {
    let plan = |sender, (direction, (_, rate)): Case| Ok(Setting::new(direction, sender, rate));
    let packets = |run: &mut Run| run.flows[0].watch = Watch::Packets;
    Grid::run(&SENDERS, &Way::cases(), plan, |settings| {
        watch(effort, settings, length, packets, |report, world| OneRun::of(length, report, world))
    })
}

/// Measures congestion windows and the delay of retransmissions (§IV and §V).
pub fn window(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let runs = run(effort, length)?;
    Ok(Finding {
        tables: vec![table(&runs, length)],
        charts: vec![chart(&runs)],
        claims: claims(&runs),
        remarks: vec![
            "A large window can lose several packets at once. Reno's fast recovery, which E-TCP also uses, \
             ends with the first of them (RFC 5681 §3.2). So a larger window can also leave more losses to \
             timeouts. The table of numbers shows at which BERs this happens."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

fn table(runs: &Runs, length: Duration) -> Table {
    type Row = (Case, Variant);
    let number = |value: fn(&OneRun) -> f64, digits| {
        move |(case, sender): &Row| cell(&runs.at(*sender, *case, value), digits)
    };
    let part =
        |value: fn(&OneRun) -> f64| move |(case, sender): &Row| share(&mean(&runs.at(*sender, *case, value)));
    Table::of(
        format!(
            "Means over {} s: congestion window, share of losses detected by ACKs and not by a timeout, and \
             share of lost packets retransmitted within {MIN_RTO} s",
            length.as_secs_f64()
        ),
        [
            column("direction", |((direction, _), _): &Row| direction.name().to_owned()),
            column("BER", |((_, (name, _)), _): &Row| (*name).to_owned()),
            column("sender", |(_, sender): &Row| sender.name().to_owned()),
            column("packets received", number(|run| run.packets, 0)),
            column("window (segments)", number(|run| run.cwnd, 2)),
            column("detected by ACKs", part(|run| run.by_acks)),
            column("retransmitted quickly", part(|run| run.share_within_min_rto)),
        ],
        Way::cases().into_iter().flat_map(|case| SENDERS.map(|sender| (case, sender))),
    )
}

fn claims(runs: &Runs) -> Vec<Claim> {
    let (windows, packets) =
        (runs.pooled(Etcp, Reno, |run| run.cwnd), runs.pooled(Etcp, Reno, |run| run.packets));
    let by_acks = runs.pooled(EtcpEarly, Etcp, |run| run.by_acks);
    let retransmitted_sooner = runs.pooled(EtcpEarly, Etcp, |run| run.share_within_min_rto);
    // As in Table 3.
    let worst = (Way::FixedToMobile, BIT_ERROR_RATES[0]);
    let at_worst = runs.gain(Etcp, Reno, worst, |run| run.cwnd);
    let [.., lowest] = BIT_ERROR_RATES;
    let at_lowest = runs.at(Etcp, (Way::FixedToMobile, lowest), |run| run.cwnd);
    let smaller = mean(&gains(&runs.at(Etcp, worst, |run| run.cwnd), &at_lowest));
    let [etcp, reno] = [Etcp, Reno].map(|sender| runs.at(sender, worst, |run| run.cwnd));
    vec![
        claim(
            At("§IV, of F to M at BER 1e-3"),
            "“The reason is that E-TCP could maintain its congestion window size.”",
            format!(
                "mean window of {} segments, {} with Reno-TCP: {}. Compared with BER 1e-6: {}",
                cell(&etcp, 2),
                cell(&reno, 2),
                percent(&at_worst),
                percent(&smaller)
            ),
            Judged::better(&at_worst),
        )
        .with(REFERENCE, BER_1E_6, Judged::similar(&smaller)),
        claim(
            At("§V"),
            "“Since our proposed transport protocol could maintain large congestion window size, more \
             packets could be sent to the receiver and throughput could be increased.”",
            format!(
                "window {}, packets received {}, compared with Reno-TCP",
                percent(&windows),
                percent(&packets)
            ),
            Judged::all([Judged::better(&windows), Judged::better(&packets)]),
        ),
        claim(
            At("§V"),
            "“This scheme also allows the sender to quickly discover packet loss without having to wait \
             until it has received three duplicate acknowledgments.”",
            format!(
                "share of losses that ACKs detect: {} on the first mark, compared with three duplicate ACKs",
                percent(&by_acks)
            ),
            Judged::better(&by_acks),
        ),
        claim(
            At("§V"),
            "“Furthermore, the sender can quickly retransmit the lost packets.”",
            format!(
                "share of lost packets retransmitted within {MIN_RTO} s on the first mark: {} compared \
                 with three duplicate ACKs, {} compared with Reno-TCP",
                percent(&retransmitted_sooner),
                percent(&runs.pooled(EtcpEarly, Reno, |run| run.share_within_min_rto))
            ),
            Judged::better(&retransmitted_sooner),
        ),
    ]
}

fn chart(runs: &Runs) -> Chart {
    let cases = Way::cases().into_iter().map(|(direction, (ber, _))| format!("{}, {ber}", direction.name()));
    Chart {
        title: "Mean congestion window".to_owned(),
        x: Axis::new("direction and bit error rate", Scale::Names(cases.collect())),
        y: Axis::new("window (segments)", Scale::FromZero),
        curves: SENDERS.map(|sender| runs.bars(sender, sender.name(), |run| run.cwnd)).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use airlink::stage::DropReason;
    use airtcp::recovery::RecoveryState;
    use airtcp::recovery::catalogue::Question;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn change(seconds: u64, was_cwnd: f64, cwnd: f64) -> Decision {
        let what = What::Window { cwnd, ssthresh: 8.0, was_cwnd, was_ssthresh: 8.0 };
        let (question, state) = (Question::Window, RecoveryState::Open);
        Decision { at: at(seconds), state, question, by: "aimd", what, why: "" }
    }

    #[test]
    fn mean_window_is_weighted_by_time() {
        let decisions = [change(2, 1.0, 4.0), change(6, 4.0, 2.0)];
        assert_eq!(mean_window(&decisions, at(10)), (2.0 + 16.0 + 8.0) / 10.0);
    }

    #[test]
    fn lost_copy_is_repaired_by_next_copy() {
        let sent = |seconds, offset, copy| DevicePacket {
            at: at(seconds),
            kind: PacketKind::Sent { offset, len: 64, copy },
        };
        let lost = |offset, copy, seconds| Dropped {
            at: at(seconds),
            sent: at(seconds),
            offset,
            len: 64,
            copy,
            why: DropReason::Loss,
            stage: Some(0),
        };
        let packets_at_device = [sent(1, 1, 1), sent(2, 65, 1), sent(4, 1, 2), sent(9, 1, 3)];
        assert_eq!(
            retransmission_delays(&[lost(1, 1, 1), lost(65, 1, 2), lost(1, 2, 4)], &packets_at_device),
            [3.0, 5.0]
        );
    }
}
