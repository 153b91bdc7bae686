//! Charts of single runs: sequence numbers (Figs. 8 to 11, 14 to 16) and round-trip times (Figs. 12, 13, 17 to 19).

use airtcp_sim::run::run_watched;
use airtcp_sim::world::{DevicePacket, PacketKind, Watch, World, WorldError};
use airwire::time::Instant;

use super::observed::timeouts;
use super::round_trips::{RoundTrip, as_defined};
use super::setting::{MSS, Setting};
use crate::chart::{Axis, Chart, Curve, Scale};

/// The seed of the run that is shown.
const SEED: u64 = 1;
/// End of the time axis. Points of all 400 s would overlap.
const SHOWN_UNTIL: Instant = Instant::from_secs(40);

fn watched(setting: &Setting) -> Result<World, WorldError> {
    let setting = Setting { watch: Watch::Packets, ..setting.clone() };
    run_watched(&setting.run(SEED), |_| {}).map(|(_, world)| world)
}

/// The number of the packet with this byte: "Packets are numbered starting with packet 0" (§4.2.2). The SYN occupies
/// the first sequence number.
fn packet_number(offset: u64) -> f64 {
    (offset.saturating_sub(1) / u64::from(MSS)) as f64
}

/// Packets sent, dropped and acknowledged against time, without control packets.
pub(super) fn sequence(title: &str, setting: &Setting) -> Result<Chart, WorldError> {
    let world = watched(setting)?;
    let (mut sent, mut acked) = (Vec::new(), Vec::new());
    for DevicePacket { at, kind } in world.device_packets(0) {
        if *at > SHOWN_UNTIL {
            break;
        }
        let at = at.as_secs_f64();
        match *kind {
            // A SYN and a FIN occupy one sequence number.
            PacketKind::Sent { offset, len: 2.., .. } => sent.push((at, packet_number(offset))),
            PacketKind::Ack { ack, .. } if ack > 1 => acked.push((at, packet_number(ack - 1))),
            PacketKind::Sent { .. } | PacketKind::Ack { .. } => {}
        }
    }
    // An ACK can cover the FIN, which is not a numbered packet.
    let last = sent.iter().map(|(_, number)| *number).fold(0.0, f64::max);
    acked.iter_mut().for_each(|(_, number)| *number = number.min(last));
    let lost = world.losses(0).as_slice().iter().filter(|lost| lost.len > 1 && lost.at <= SHOWN_UNTIL);
    let dropped: Vec<_> = lost.map(|lost| (lost.at.as_secs_f64(), packet_number(lost.offset))).collect();
    Ok(Chart {
        title: title.to_owned(),
        x: Axis::new("time (s)", Scale::FromZero),
        y: Axis::new("packet number", Scale::FromZero),
        curves: vec![Curve::dots("sent", sent), Curve::dots("dropped", dropped), Curve::dots("ACK", acked)],
    })
}

/// Round-trip times as defined in §3.1 against the time of sending, with one curve per setting.
pub(super) fn round_trips(title: &str, settings: &[(String, Setting)]) -> Result<Chart, WorldError> {
    let mut curves = Vec::new();
    for (name, setting) in settings {
        let mut world = watched(setting)?;
        let timeouts = timeouts(&mut world);
        let round_trips = as_defined(world.device_packets(0), &timeouts);
        let shown = round_trips.into_iter().take_while(|round_trip| round_trip.sent <= SHOWN_UNTIL);
        let point = |RoundTrip { sent, rtt, .. }: RoundTrip| (sent.as_secs_f64(), 1e3 * rtt.as_secs_f64());
        curves.push(Curve::dots(name.clone(), shown.map(point)));
    }
    Ok(Chart {
        title: title.to_owned(),
        x: Axis::new("time (s)", Scale::FromZero),
        y: Axis::new("RTT (ms)", Scale::FromZero),
        curves,
    })
}
