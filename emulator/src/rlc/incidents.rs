//! Incidents of a bearer other than packet events: resets, window changes, and PDUs that contradict each
//! other.

use super::umts::entity::{Entity, ResetCause};
use super::umts::reassembly::Faults;
use crate::packet::Direction;
use crate::stage::{IncidentKind, Outbox};

/// State of one direction at the time of the last report.
pub(super) struct Told {
    /// Number of resets that the sender has initiated, by cause.
    resets: [u64; ResetCause::ALL.len()],
    /// VT(WS) of the sender.
    window: u16,
    /// Whether the sender is in LOCAL_SUSPEND.
    suspended: bool,
    /// Contradictions that the receiver has found.
    faults: Faults,
}

impl Told {
    /// Creates the state before any report. `window` is Configured_Tx_Window_Size.
    pub(super) fn new(window: u16) -> Self {
        Self { resets: Default::default(), window, suspended: false, faults: Faults::default() }
    }

    /// Reports changes since the last call. `sender` is the entity that sends in this direction, `receiver`
    /// the other one.
    pub(super) fn tell(
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
        self.resets = resets;
        let pdus = sender.window();
        if pdus != self.window {
            out.report_incident(IncidentKind::RlcWindow { direction, pdus });
        }
        self.window = pdus;
        let suspended = sender.suspended();
        match suspended {
            Some(pdus) if !self.suspended => {
                out.report_incident(IncidentKind::RlcSuspended { direction, pdus })
            }
            None if self.suspended => out.report_incident(IncidentKind::RlcResumed { direction }),
            _ => {}
        }
        self.suspended = suspended.is_some();
        let faults = receiver.faults();
        for ((fault, now), (_, before)) in faults.each().into_iter().zip(self.faults.each()) {
            if now > before {
                out.report_incident(IncidentKind::RlcFault { direction, fault });
            }
        }
        self.faults = faults;
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

    fn end(config: &RlcConfig, direction: Direction) -> EntityConfig {
        let (sends, receives) = match direction {
            Direction::Down => (&config.down, &config.up),
            Direction::Up => (&config.up, &config.down),
        };
        EntityConfig {
            sender: sends.sender.clone(),
            receiver: receives.receiver.clone(),
            sends: (&sends.format).into(),
            receives: (&receives.format).into(),
            timers: TimersStart::WhenSubmitted,
            incoming: Incoming { tti: receives.channel.tti, blocks: 1 },
        }
    }

    /// Returns the incidents after each of these PDUs, when the mobile receives them in order.
    fn incidents_after_each(pdus: &[Pdu<'_>]) -> (Vec<Vec<IncidentKind>>, Entity) {
        let config = RlcConfig::wcdma_384();
        let [sender, mut receiver] = [Direction::Down, Direction::Up]
            .map(|direction| Entity::new(end(&config, direction), Instant::ZERO));
        let mut told = Told::new(sender.window());
        let mut out = Outbox::new(Recording::Incidents, false);
        out.begin(Instant::ZERO, Some(0));
        let each = pdus.iter().map(|pdu| {
            receiver.handle_pdu(Instant::ZERO, &encode(pdu, (&config.down.format).into()));
            told.tell(Direction::Down, &sender, &receiver, &mut out);
            out.take_incidents().into_iter().map(|incident| incident.kind).collect()
        });
        (each.collect(), receiver)
    }

    #[test]
    fn each_rlc_fault_is_reported_and_counted() {
        let whole =
            |sn: u16| Amd { sn: Sn::new(sn), ends: vec![39], data: vec![1; 39].into(), ..Amd::default() };
        let ends_nothing = |sn: u16| Amd {
            sn: Sn::new(sn),
            previous: Previous::EndedExactly,
            rest: Rest::Padding,
            ..Amd::default()
        };
        let pdus = [whole(0), ends_nothing(1), ends_nothing(2), whole(3)].map(Pdu::Amd);
        let fault = IncidentKind::RlcFault { direction: Direction::Down, fault: "nothing-to-end" };
        let (incidents, receiver) = incidents_after_each(&pdus);
        assert_eq!(incidents, [vec![], vec![fault], vec![fault], vec![]]);
        let faults = &receiver_stats(&receiver)["faults"];
        assert_eq!((&faults["nothing_to_end"], &faults["nlength"]), (&2.into(), &0.into()));
    }

    #[test]
    fn sender_window_change_is_reported_once() {
        let config = RlcConfig::wcdma_384();
        let [mut sender, receiver] = [Direction::Down, Direction::Up]
            .map(|direction| Entity::new(end(&config, direction), Instant::ZERO));
        let mut told = Told::new(sender.window());
        let mut out = Outbox::new(Recording::Incidents, false);
        out.begin(Instant::ZERO, Some(0));
        for (wsn, pdus) in [(64, Some(64)), (64, None), (512, Some(512)), (600, None)] {
            let status = Pdu::Status(Status(vec![Sufi::Window { wsn }, Sufi::NoMore]));
            sender.handle_pdu(Instant::ZERO, &encode(&status, (&config.up.format).into()));
            told.tell(Direction::Down, &sender, &receiver, &mut out);
            let what: Vec<_> = out.take_incidents().into_iter().map(|incident| incident.kind).collect();
            let expected = pdus.map(|pdus| IncidentKind::RlcWindow { direction: Direction::Down, pdus });
            assert_eq!(what, Vec::from_iter(expected), "{wsn}");
        }
    }
}
