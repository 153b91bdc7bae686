//! Packets that the host is expected to send: compares a line with the next packet.

use airwire::time::{Duration, Instant};

use super::{HostPacket, MAX_WAIT, ORIGIN, Runner, stuck};
use crate::ast::{Addressing, Flags, FlowName, Options, Segment, TcpOption};
use crate::check;
use crate::setup::{Mismatch, SegmentMatching, UnlistedPackets};
use crate::verdict::{Problem, Step, clock};
use crate::wire::{Packet, options_len};

impl Runner {
    pub(super) fn outbound(
        &mut self,
        times: Option<(Instant, Instant)>,
        tolerance: Duration,
        addressing: Addressing,
        expected: &Segment,
    ) -> Result<(), Problem> {
        self.sockets()?;
        let limit = times.map_or_else(|| self.now() + MAX_WAIT, |(_, latest)| latest + tolerance);
        self.wait_for_packet(limit)?;
        // As in packetdrill, only the current connection is checked, and packets of other
        // connections are ignored. With `UnlistedPackets::Refused` the script must list every packet.
        while let Some(next) = self.host_packets.front()
            && self.setup.unlisted == UnlistedPackets::Ignored
            && self.is_unrelated(next.flow, addressing)
        {
            self.host_packets.pop_front();
            self.unchecked += 1;
            self.wait_for_packet(limit)?;
        }
        let Some(first) = self.host_packets.pop_front() else {
            return Err(self.missing_packet(expected, times.map(|(earliest, _)| earliest)));
        };
        self.current = Some(self.flow_for(&first, addressing)?);
        let packet = self.concatenate(&first, expected, limit)?;
        let problem = match self.compare(&first, &packet, addressing, expected) {
            Ok(()) => times.and_then(|times| self.time_problem(&first, &packet, times, tolerance, expected)),
            Err(problem) => Some(problem),
        };
        match problem {
            Some(problem) if self.setup.mismatch == Mismatch::Fatal => Err(problem),
            Some(problem) => {
                self.setup.notes.push([vec![problem.message], problem.details].concat().join("; "));
                Ok(())
            }
            None => {
                self.checked += 1;
                Ok(())
            }
        }
    }

    /// Returns whether a line without `[fd N]` does not refer to this connection.
    fn is_unrelated(&self, flow: usize, addressing: Addressing) -> bool {
        addressing.flow == FlowName::Current
            && match self.current {
                Some(current) => flow != current,
                None => flow < self.first_new_flow,
            }
    }

    fn wait_for_packet(&mut self, limit: Instant) -> Result<(), Problem> {
        while self.host_packets.is_empty() {
            if !self.sockets()?.step(limit).map_err(stuck)? {
                break;
            }
            self.collect()?;
        }
        Ok(())
    }

    /// Returns the connection of the packet. Fails if the line refers to another one.
    fn flow_for(&self, sent: &HostPacket, addressing: Addressing) -> Result<usize, Problem> {
        let expected = match addressing.flow {
            FlowName::Fd(fd) => self.flow_of(fd)?,
            FlowName::Current | FlowName::New => self.current.unwrap_or(sent.flow),
        };
        if expected == sent.flow {
            return Ok(expected);
        }
        let name = |flow: usize| match self.flows[flow].fd {
            Some(fd) => format!("the connection of descriptor {}", fd.0),
            None => format!("the connection with {}", self.flows[flow].remote),
        };
        Err(Problem::new(format!(
            "this packet belongs to {}, expected one of {}",
            name(sent.flow),
            name(expected)
        ))
        .with(self.line("actual", sent.at, &self.flows[sent.flow].to_script(&sent.packet))))
    }

    /// Concatenates consecutive segments of equal size up to the length that the line expects.
    fn concatenate(
        &mut self,
        first: &HostPacket,
        expected: &Segment,
        limit: Instant,
    ) -> Result<Packet, Problem> {
        let mut packet = first.packet.clone();
        let size = packet.payload.len();
        while self.setup.segment_matching == SegmentMatching::Merged
            && size > 0
            && packet.payload.len() < expected.len as usize
        {
            self.wait_for_packet(limit)?;
            let next_seq = packet.seq.wrapping_add(packet.payload.len() as u32);
            let Some(next) = self.host_packets.front() else { break };
            let continues = next.flow == first.flow
                && next.packet.seq == next_seq
                && may_share_a_write(&next.packet, &packet);
            let fits = (1..=size).contains(&next.packet.payload.len());
            if !(continues && fits) || packet.flags.contains(Flags::FIN) {
                break;
            }
            packet.flags = packet.flags.with(next.packet.flags);
            packet.payload.extend_from_slice(&next.packet.payload);
            let shorter = next.packet.payload.len() < size;
            self.host_packets.pop_front();
            if shorter {
                break;
            }
        }
        Ok(packet)
    }

    fn compare(
        &mut self,
        first: &HostPacket,
        packet: &Packet,
        addressing: Addressing,
        expected: &Segment,
    ) -> Result<(), Problem> {
        let flow = &mut self.flows[first.flow];
        if expected.has(Flags::SYN) && packet.flags.contains(Flags::SYN) {
            flow.set_script_isn(expected.seq);
        }
        if let Some(script) = expected_timestamp(expected) {
            flow.record_timestamp(script, packet);
        }
        let actual = flow.to_script(packet);
        let mut found = check::differences(self.setup.rules, expected, &actual);
        found.extend(check::ip_differences(addressing.ip, packet));
        if packet.payload != flow.expected_payload(&actual) {
            found.push("the payload differs from the data written".to_owned());
        }
        if found.is_empty() {
            return Ok(());
        }
        let start = Step { position: self.position(), at: first.at - ORIGIN, text: String::new() };
        Err(Problem::new(format!("the packet differs: {}", found.join("; ")))
            .with(format!("expected {:>11}  > {addressing}{expected}", clock(start.at)))
            .with(self.line("actual", first.at, &actual)))
    }

    fn missing_packet(&mut self, expected: &Segment, earliest: Option<Instant>) -> Problem {
        let at = earliest.unwrap_or_else(|| self.now());
        let limit = self.now() + MAX_WAIT;
        let ahead = self.wait_for_packet(limit);
        let problem = Problem::new("the host sent nothing").with(self.line("expected", at, expected));
        match self.host_packets.front() {
            Some(next) => {
                let actual = self.flows[next.flow].to_script(&next.packet);
                problem.with(self.line("next is", next.at, &actual))
            }
            None if ahead.is_err() => problem,
            None => problem.with(format!("and would send nothing in the next {MAX_WAIT}")),
        }
    }

    /// Returns a problem if the packet was sent too early or too late.
    fn time_problem(
        &self,
        first: &HostPacket,
        packet: &Packet,
        (earliest, latest): (Instant, Instant),
        tolerance: Duration,
        expected: &Segment,
    ) -> Option<Problem> {
        let (off, direction) = if first.at + tolerance < earliest {
            (earliest - first.at, "early")
        } else if first.at > latest + tolerance {
            (first.at - latest, "late")
        } else {
            return None;
        };
        let problem = Problem::new(format!("the packet matches but is {off} too {direction}"))
            .with(self.line("expected", earliest, expected))
            .with(self.line("actual", first.at, &self.flows[first.flow].to_script(packet)));
        Some(problem)
    }

    pub(super) fn line(&self, what: &str, at: Instant, segment: &Segment) -> String {
        format!("{what:<8} {:>11}  > {segment}", clock(at - ORIGIN))
    }
}

/// Returns whether two packets may be segments of one write. They must agree in all header fields
/// except FIN, PSH and CWR, which occur only on the first or last segment.
fn may_share_a_write(a: &Packet, b: &Packet) -> bool {
    let edges = Flags::FIN.with(Flags::PSH).with(Flags::CWR);
    (a.flags.without(edges), a.ack, a.win, a.urg) == (b.flags.without(edges), b.ack, b.win, b.urg)
        && options_len(&a.options) == options_len(&b.options)
}

fn expected_timestamp(segment: &Segment) -> Option<u32> {
    let Options::Exactly(options) = &segment.options else { return None };
    options.iter().find_map(|option| match option {
        TcpOption::Timestamps { val, .. } => *val,
        _ => None,
    })
}
