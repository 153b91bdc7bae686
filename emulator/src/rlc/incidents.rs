//! Incidents of a bearer other than packet events: resets, window changes, and PDUs that contradict each
//! other.

use super::umts::entity::{Entity, ResetCause};
use super::umts::reassembly::Faults;
use crate::packet::Direction;
use crate::stage::{IncidentKind, Outbox};

/// State of one direction at the time of the last report.
pub(super) struct ReportedState {
    /// Number of resets that the sender has initiated, by cause.
    resets: [u64; ResetCause::ALL.len()],
    /// VT(WS) of the sender.
    window: u16,
    /// Whether the sender is in LOCAL_SUSPEND.
    suspended: bool,
    /// Contradictions that the receiver has found.
    faults: Faults,
}

impl ReportedState {
    /// Creates the state before any report. `window` is Configured_Tx_Window_Size.
    pub(super) fn new(window: u16) -> Self {
        Self { resets: Default::default(), window, suspended: false, faults: Faults::default() }
    }

    /// Reports changes since the last call. `sender` is the entity that sends in this direction, `receiver`
    /// the other one.
    pub(super) fn report_changes(
        &mut self,
        direction: Direction,
        sender: &Entity,
        receiver: &Entity,
        out: &mut Outbox,
    ) {
        let resets = sender.resets();
        for cause in ResetCause::ALL {
            if resets[cause as usize] > self.resets[cause as usize] {
                out.report_incident(IncidentKind::RlcReset { direction, cause: cause.name() });
            }
        }
        let window = sender.window();
        if window != self.window {
            out.report_incident(IncidentKind::RlcWindow { direction, pdus: window });
        }
        let suspended = sender.suspended();
        match suspended {
            Some(pdus) if !self.suspended => {
                out.report_incident(IncidentKind::RlcSuspended { direction, pdus });
            }
            None if self.suspended => out.report_incident(IncidentKind::RlcResumed { direction }),
            _ => {}
        }
        let faults = receiver.faults();
        for ((fault, now), (_, before)) in faults.each().into_iter().zip(self.faults.each()) {
            if now > before {
                out.report_incident(IncidentKind::RlcFault { direction, fault });
            }
        }
        *self = Self { resets, window, suspended: suspended.is_some(), faults };
    }
}

#[cfg(test)]
mod tests {
    use airwire::time::Instant;

    use super::*;
    use crate::rlc::bearer::statistics::receiver_stats;
    use crate::rlc::config::RlcConfig;
    use crate::rlc::umts::codec::encode;
    use crate::rlc::umts::entity::{EntityConfig, Incoming, TimersStart};
    use crate::rlc::umts::pdu::{Amd, Pdu, Previous, Rest, Sn, Status, Sufi};
    use crate::stage::Recording;

    /// The two entities of a bearer, and the incidents of its downlink.
    struct Downlink {
        sender: Entity,
        receiver: Entity,
        reported: ReportedState,
        out: Outbox,
    }

    impl Downlink {
        fn new() -> Self {
            let config = RlcConfig::wcdma_384();
            let [sender, receiver] = [Direction::Down, Direction::Up].map(|direction| {
                let (own, other) = (config.direction(direction), config.direction(direction.reversed()));
                let config = EntityConfig {
                    sender: own.sender.clone(),
                    receiver: other.receiver.clone(),
                    sends: (&own.format).into(),
                    receives: (&other.format).into(),
                    timers: TimersStart::WhenSubmitted,
                    incoming: Incoming { tti: other.channel.tti, blocks: 1 },
                };
                Entity::new(config, Instant::ZERO)
            });
            let mut out = Outbox::new(Recording::Incidents, false);
            out.begin(Instant::ZERO, Some(0));
            Self { reported: ReportedState::new(sender.window()), sender, receiver, out }
        }

        /// Incidents after a PDU has arrived at the receiver, or at the sender if it is a STATUS PDU.
        fn incidents_after(&mut self, pdu: &Pdu<'_>) -> Vec<IncidentKind> {
            let Self { sender, receiver, reported, out } = self;
            let octets = encode(pdu, (&RlcConfig::wcdma_384().down.format).into());
            let entity = if matches!(pdu, Pdu::Status(_)) { &mut *sender } else { &mut *receiver };
            entity.handle_pdu(Instant::ZERO, &octets);
            reported.report_changes(Direction::Down, sender, receiver, out);
            out.take_incidents().into_iter().map(|incident| incident.kind).collect()
        }
    }

    #[test]
    fn each_rlc_fault_is_reported_and_counted() {
        let one_sdu =
            |sn: u16| Amd { sn: Sn::new(sn), ends: vec![39], data: vec![1; 39].into(), ..Amd::default() };
        let ends_nothing = |sn: u16| Amd {
            sn: Sn::new(sn),
            previous: Previous::EndedExactly,
            rest: Rest::Padding,
            ..Amd::default()
        };
        let fault = IncidentKind::RlcFault { direction: Direction::Down, fault: "nothing-to-end" };
        let mut downlink = Downlink::new();
        for (amd, incidents) in [
            (one_sdu(0), vec![]),
            (ends_nothing(1), vec![fault]),
            (ends_nothing(2), vec![fault]),
            (one_sdu(3), vec![]),
        ] {
            let sn = amd.sn;
            assert_eq!(downlink.incidents_after(&Pdu::Amd(amd)), incidents, "SN {sn}");
        }
        let faults = &receiver_stats(&downlink.receiver)["faults"];
        assert_eq!((&faults["nothing_to_end"], &faults["nlength"]), (&2.into(), &0.into()));
    }

    #[test]
    fn sender_window_change_is_reported_once() {
        let mut downlink = Downlink::new();
        for (wsn, pdus) in [(64, Some(64)), (64, None), (512, Some(512)), (600, None)] {
            let status = Pdu::Status(Status(vec![Sufi::Window { wsn }, Sufi::NoMore]));
            let expected = pdus.map(|pdus| IncidentKind::RlcWindow { direction: Direction::Down, pdus });
            assert_eq!(downlink.incidents_after(&status), Vec::from_iter(expected), "WSN {wsn}");
        }
    }
}
