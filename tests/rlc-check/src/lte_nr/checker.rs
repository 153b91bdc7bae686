//! Follows the PDUs of both directions.

use std::collections::BTreeMap;

use super::Generation;
use super::capture::Frame;
use super::codec::{Data, Pdu, Status, decode};
use super::receiver::{DataArrival, Receiver};
use super::sender::{Sender, Transmission};
use super::settings::DirectionSettings;
use crate::findings::{Counts, Findings, Invariant};
use crate::settings::Time;

pub(super) struct Checker {
    generation: Generation,
    settings: [DirectionSettings; 2],
    /// Senders of downlink and uplink data, and the receivers of the same data at the other ends.
    senders: [Sender; 2],
    receivers: [Receiver; 2],
    /// PDUs in flight, by the time of their arrival and their order.
    in_flight: BTreeMap<(Time, u64), (usize, Arrival)>,
    arrivals: u64,
    ue: Option<u16>,
    now: Time,
    counts: [Counts; 2],
    findings: Findings,
}

enum Arrival {
    Data(DataArrival),
    Status(Status),
}

impl Checker {
    pub(super) fn new(generation: Generation, settings: [DirectionSettings; 2]) -> Self {
        let (senders, receivers) = ends(generation, &settings);
        Self {
            generation,
            settings,
            senders,
            receivers,
            in_flight: BTreeMap::new(),
            arrivals: 0,
            ue: None,
            now: 0,
            counts: Default::default(),
            findings: Findings::new(&Invariant::LTE_NR),
        }
    }

    pub(super) fn frame(&mut self, frame: &Frame) {
        let direction = frame.direction as usize;
        if self.ue != Some(frame.ue) {
            self.reestablish(frame);
        }
        self.run_until(frame.at);
        let counts = &mut self.counts[direction];
        counts.pdus += 1;
        counts.lost += u64::from(frame.lost);
        for sender in &self.senders {
            let failed = sender.exhausted().is_some_and(|at| at <= frame.at);
            self.findings.expect(Invariant::RetxCount, frame.number, !failed, || {
                "RETX_COUNT has reached maxRetxThreshold, but no re-establishment follows".to_owned()
            });
        }
        let pdu = match decode(self.generation, &frame.pdu) {
            Ok(pdu) => pdu,
            Err(error) => {
                self.findings.expect(Invariant::Format, frame.number, false, || error);
                return;
            }
        };
        self.findings.expect(Invariant::Format, frame.number, true, String::new);
        let arrival = match &pdu {
            Pdu::Data(data) => Arrival::Data(self.check_data(frame, data)),
            Pdu::Status(status) => {
                self.counts[direction].status += 1;
                let receiver = &mut self.receivers[1 - direction];
                receiver.check_report(frame.at, frame.number, status, &mut self.findings);
                Arrival::Status(status.clone())
            }
        };
        if !frame.lost {
            let at = frame.at + frame.delay.unwrap_or(self.settings[direction].flight);
            self.in_flight.insert((at, self.arrivals), (direction, arrival));
            self.arrivals += 1;
        }
    }

    /// Checks a data PDU against the state of the end that sends it.
    fn check_data(&mut self, frame: &Frame, data: &Data<'_>) -> DataArrival {
        let direction = frame.direction as usize;
        let octets = Some(data.octets.len());
        // The end that sends data in this direction receives data in the other one.
        self.receivers[1 - direction].check_due(frame.at, frame.number, octets, &mut self.findings);
        let (at, count) = (frame.at, frame.transmission);
        let transmission = Transmission { at, frame: frame.number, count, data };
        let sender = &mut self.senders[direction];
        let is_new = sender.check_data(&transmission, &mut self.findings);
        count_data(&mut self.counts[direction], is_new, sender.next(), self.generation);
        let end = data.start + data.octets.len() as u32;
        DataArrival { sn: data.sn, poll: data.poll, octets: data.start..end, ends: data.ends }
    }

    /// Handles the re-establishment of both ends before this PDU.
    fn reestablish(&mut self, frame: &Frame) {
        for counts in &mut self.counts {
            counts.resets += u64::from(self.ue.is_some());
        }
        (self.senders, self.receivers) = ends(self.generation, &self.settings);
        self.in_flight.clear();
        self.ue = Some(frame.ue);
    }

    /// Handles arrivals and timers up to and including `now`.
    fn run_until(&mut self, now: Time) {
        loop {
            let arrival = self.in_flight.first_key_value().map(|((at, _), _)| *at);
            let receivers = self.receivers.iter().filter_map(Receiver::next_expiry);
            let timer = receivers.chain(self.senders.iter().filter_map(Sender::next_expiry)).min();
            let Some(at) = arrival.into_iter().chain(timer).min().filter(|at| *at <= now) else { break };
            if arrival == Some(at) {
                if let Some((_, (direction, arrival))) = self.in_flight.pop_first() {
                    match arrival {
                        Arrival::Data(data) => self.receivers[direction].receive(at, &data),
                        Arrival::Status(status) => self.senders[1 - direction].handle_report(at, &status),
                    }
                }
            } else {
                self.senders.iter_mut().for_each(|sender| sender.expire(at));
                self.receivers.iter_mut().for_each(|receiver| receiver.expire(at));
            }
        }
        self.findings.expect(Invariant::Format, 0, self.now <= now, || "PDUs are not in order".to_owned());
        self.now = now;
    }

    /// Ends the check. `until` is the end of the capture. If `until` is unknown, a missing reaction to the
    /// last PDUs is not a violation.
    pub(super) fn finish(mut self, until: Option<Time>) -> Findings {
        if let Some(until) = until.filter(|until| *until > self.now) {
            self.run_until(until);
            for direction in [0, 1] {
                self.senders[direction].check_end(until, &mut self.findings);
                self.receivers[direction].check_due(until, 0, None, &mut self.findings);
            }
        }
        [self.findings.down, self.findings.up] = self.counts;
        self.findings
    }
}

/// The senders and receivers of downlink and uplink data.
fn ends(generation: Generation, settings: &[DirectionSettings; 2]) -> ([Sender; 2], [Receiver; 2]) {
    let [down, up] = settings;
    (
        [Sender::new(generation, down), Sender::new(generation, up)],
        // Reports about downlink data wait for transport blocks of the uplink.
        [Receiver::new(generation, down, up.patience), Receiver::new(generation, up, down.patience)],
    )
}

fn count_data(counts: &mut Counts, is_new: bool, next: u64, generation: Generation) {
    counts.new += u64::from(is_new);
    counts.resent += u64::from(!is_new);
    counts.laps = counts.laps.max(next.saturating_sub(1) / generation.modulus());
}
