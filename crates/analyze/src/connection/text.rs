//! Formats findings as text. Counts of 0 are omitted.

use std::fmt;

use airtcp_numbers::units::show_rate;

use super::findings::{
    AckPolicy, AckPolicyFindings, AfterTimeout, BlackHole, CapturePoint, Close, CongestionControlFindings,
    CongestionFindings, ConnectionFindings, DirectionFindings, Evidence, Handshake, HandshakeOutcome,
    HandshakeSeen, IcmpFindings, NamedBy, PartialAcks, RttOf, SenderFindings,
};
use crate::text::{MeasuredTime, Seconds, list};

impl fmt::Display for ConnectionFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.ends;
        write!(f, "{first} ↔ {second}: {} packets in {}", self.packets, Seconds(self.seconds))?;
        writeln!(f, ", {}", self.how_it_ended())?;
        writeln!(f, "  {}", self.verdict.sentence)?;
        if let Some(name) = &self.name {
            let by = match name.by {
                NamedBy::TlsServerName => "TLS server name",
                NamedBy::HttpHost => "HTTP Host",
            };
            writeln!(f, "  named {name} ({by})")?;
        }
        self.write_capture_point(f)?;
        match (self.handshake.seen, self.handshake.rtt_seconds) {
            (HandshakeSeen::None, _) => writeln!(f, "; the connection began before the capture")?,
            (_, Some(rtt)) => writeln!(f, "; handshake {}", Seconds(rtt))?,
            _ if self.is_handshake_invisible() => {
                let handshake = MeasuredTime { seconds: None, resolution: self.clock_resolution_seconds };
                writeln!(f, "; handshake {handshake}")?;
            }
            _ => writeln!(f)?,
        }
        self.write_syns(f)?;
        for message in &self.icmp {
            self.write_icmp(f, message)?;
        }
        if let (Some(first), Some(mean), Some(longest)) =
            (self.answers.first_seconds, self.answers.mean_seconds, self.answers.max_seconds)
        {
            let [first, mean, max] = [first, mean, longest].map(Seconds);
            match self.answers.count {
                1 => writeln!(f, "  {second} answered 1 request, after {first}")?,
                count => writeln!(
                    f,
                    "  {second} answered {count} requests: the first after {first}, mean {mean}, max {max}"
                )?,
            }
        }
        for remark in self.remarks() {
            writeln!(f, "  {remark}")?;
        }
        for direction in self.directions.iter().filter(|direction| direction.data_packets > 0) {
            write!(f, "{direction}")?;
        }
        Ok(())
    }
}

impl ConnectionFindings {
    /// Returns whether the handshake was shorter than a step of the clock.
    fn is_handshake_invisible(&self) -> bool {
        let Handshake { rtt_seconds, syn_to_syn_ack_seconds, syn_ack_to_ack_seconds, .. } = self.handshake;
        rtt_seconds.is_none() && syn_to_syn_ack_seconds.is_some() && syn_ack_to_ack_seconds.is_some()
    }

    /// Writes the capture point and its evidence.
    fn write_capture_point(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.capture_at {
            CapturePoint::End { end } => {
                write!(f, "  captured at {}", self.ends[end])?;
                end
            }
            CapturePoint::Between { share } => {
                write!(f, "  captured between the ends: {:.0} % of the round-trip time", share * 100.0)?;
                write!(f, " is on the side of {}", self.ends[0])?;
                0
            }
            CapturePoint::Unknown => return write!(f, "  capture point unknown"),
        };
        // A time of 0 is shorter than a step of the clock.
        let step = self.clock_resolution_seconds.unwrap_or(0.0).max(1e-6);
        let after = |end: usize| Seconds(self.answers_after_seconds[end].unwrap_or(0.0).max(step));
        let (this, other) = (after(end), after(1 - end));
        write!(f, ", which answers within {this}; the other end answers within {other}")
    }

    /// Returns sentences about how the capture shows the connection.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.copies > 0 {
            remarks.push(format!("{} packets captured twice", self.copies));
        }
        if self.clock_went_back > 0 {
            remarks.push(format!("{} backward steps of the clock", self.clock_went_back));
        }
        if let Some(seconds) = self.clock_difference_seconds {
            let least = Seconds(seconds);
            remarks.push(format!(
                "the clocks of the two directions differ by {least} or more, because packets follow the responses to them: round trips, flight and most causes are unknown"
            ));
        }
        remarks
    }

    /// Returns a short description of the end of the connection, or of the handshake if it failed.
    pub fn how_it_ended(&self) -> String {
        let syns = self.handshake.syns.map(|syn| syn.map_or(0, |syn| syn.times));
        let times = |count: u64, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let (syns, syn_acks) = (times(syns[0], "SYN"), times(syns[1], "SYN-ACK"));
        match (self.handshake.outcome, self.close) {
            (HandshakeOutcome::Refused, _) => format!("refused by RST ({syns})"),
            (HandshakeOutcome::Reset { by }, _) => {
                format!("reset by {} during the handshake ({syns})", self.ends[by])
            }
            (HandshakeOutcome::Unreachable, _) => {
                let error = self.icmp.iter().find(|error| error.kind.is_unreachable());
                let reason = error.map_or_else(|| "unreachable".to_owned(), |error| error.kind.to_string());
                format!("{reason} by ICMP ({syns})")
            }
            (HandshakeOutcome::NoAnswer, _) => format!("no answer to {syns}"),
            (HandshakeOutcome::HalfOpen, _) => format!("half open: no ACK for {syn_acks}"),
            (HandshakeOutcome::Open | HandshakeOutcome::Unseen, Close::Open) => "not closed".to_owned(),
            (HandshakeOutcome::Open | HandshakeOutcome::Unseen, Close::Closed) => "closed".to_owned(),
            (HandshakeOutcome::Open | HandshakeOutcome::Unseen, Close::Reset { by }) => {
                format!("reset by {}", self.ends[by])
            }
        }
    }

    /// Writes the options in both SYNs.
    fn write_syns(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let syns = self.handshake.syns;
        let Some(known) = syns[0].or(syns[1]) else { return Ok(()) };
        let of_both = |option: &dyn Fn(&super::findings::SynFindings) -> Option<u64>| {
            syns.map(|syn| match syn.map(|syn| (option(&syn), syn.options_cut)) {
                Some((Some(value), _)) => value.to_string(),
                Some((None, false)) => "none".to_owned(),
                Some((None, true)) | None => "not seen".to_owned(),
            })
        };
        let [mss, other] = of_both(&|syn| syn.mss.map(u64::from));
        let [scale, other_scale] = of_both(&|syn| syn.window_scale.map(u64::from));
        write!(f, "  SYNs            MSS {mss}, {other}; window scale {scale}, {other_scale}")?;
        // A single SYN does not show which options are in use.
        if syns.iter().all(Option::is_some) || known.options_cut {
            let options = [(self.sack, "SACK"), (self.timestamps, "timestamps")];
            let used = options.iter().filter(|(used, _)| *used).map(|(_, option)| format!("; {option}"));
            write!(f, "{}", used.collect::<String>())?;
        }
        writeln!(f)
    }

    fn write_icmp(&self, f: &mut fmt::Formatter<'_>, message: &IcmpFindings) -> fmt::Result {
        let IcmpFindings { kind, from, caused_by_end, count, first_frame, first_seconds, mtu, .. } = message;
        let mtu = mtu.map(|mtu| format!(", MTU {mtu}")).unwrap_or_default();
        let (about, at) = (self.ends[*caused_by_end], Seconds(*first_seconds));
        writeln!(
            f,
            "  ICMP            {count} × {kind}{mtu}, from {from}, about packets of {about}; first in frame {first_frame} at {at}"
        )
    }
}

impl fmt::Display for DirectionFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {} → {}", self.from, self.to)?;
        self.write_rows(&mut |name, text| writeln!(f, "    {name:<17}{text}"))
    }
}

type Row<'a> = dyn FnMut(&str, String) -> fmt::Result + 'a;

impl DirectionFindings {
    /// Returns the lines of the `Display` output, each with its name.
    pub fn rows(&self) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        // Writing to a vector cannot fail.
        let _ = self.write_rows(&mut |name, text| {
            rows.push((name.to_owned(), text));
            Ok(())
        });
        rows
    }

    fn write_rows(&self, row: &mut Row<'_>) -> fmt::Result {
        self.write_data(row)?;
        self.write_retransmissions(row)?;
        self.write_path_mtu(row)?;
        self.write_rtt(row)?;
        self.write_window(row)?;
        self.write_time(row)?;
        let Self { acks, arrivals, marks, .. } = self;
        if acks.packets > 0 {
            let counts = list(&[
                (acks.packets, "total"),
                (acks.duplicate, "duplicate"),
                (acks.old, "old"),
                (acks.with_sack, "with SACK"),
                (acks.dsacks, "D-SACK"),
                (acks.ece, "ECE"),
            ]);
            row("ACKs", format!("{counts}{}", acks.policy))?;
        }
        let observed = [
            (arrivals.out_of_order, "out of order"),
            (arrivals.duplicate, "repeated"),
            (marks.ecn_ce, "ECN CE"),
            (marks.resets, "RST"),
            (marks.ob, "Ob"),
            (marks.db, "Db"),
            (marks.loss_reports, "loss reports"),
        ];
        write_list(row, "observed", "", &observed)?;
        self.write_sender(row)?;
        let SenderFindings { congestion_control, congestion, .. } = &self.sender;
        let has_numbers = congestion.falls > 0 || congestion.min_rtt_probes > 0;
        if has_numbers || congestion_control.name.is_some() {
            row("congestion", congestion_control.to_string())?;
        }
        if has_numbers {
            row("", congestion.to_string())?;
        }
        Ok(())
    }

    fn write_data(&self, row: &mut Row<'_>) -> fmt::Result {
        let Self { acked_bytes, data_packets, sent_bytes, acked_unseen_bytes, .. } = self;
        let seconds = Seconds(self.transfer_seconds);
        let [goodput, throughput] = [self.goodput_bit_per_s, self.throughput_bit_per_s].map(show_rate);
        let acked = match self.acks.packets {
            0 => "no ACKs in the capture".to_owned(),
            _ => format!("{acked_bytes} bytes acknowledged in {seconds}: {goodput}"),
        };
        row("data", format!("{acked}; {data_packets} packets with {sent_bytes} bytes sent: {throughput}"))?;
        if *acked_unseen_bytes > 0 {
            row("", format!("{acked_unseen_bytes} of the acknowledged bytes are not in the capture"))?;
        }
        Ok(())
    }

    fn write_retransmissions(&self, row: &mut Row<'_>) -> fmt::Result {
        let found = &self.retransmissions;
        let kinds = list(&[
            (found.fast, "fast"),
            (found.timeout, "by timeout"),
            (found.tail, "tail probes"),
            (found.unexplained, "unexplained"),
            (found.lost_before_capture, "of them lost before the capture point"),
        ]);
        row("retransmissions", format!("{} packets{}", found.packets, prefixed(": ", kinds)))?;
        let others = [
            (found.syns, "SYNs"),
            (found.window_probes, "window probes"),
            (found.keep_alives, "keep-alives"),
        ];
        write_list(row, "", "in addition: ", &others)?;
        let detected = list(&[(found.fast_retransmits, "without a timeout"), (found.timeouts, "by timeout")]);
        if !detected.is_empty() {
            let [none, one, two, more] = found.timeouts_by_dupacks;
            let after = list(&[
                (none, "after no duplicate ACK"),
                (one, "after 1"),
                (two, "after 2"),
                (more, "after 3 or more"),
                (found.failed_dupack, "of them after all possible duplicate ACKs"),
            ]);
            row(
                "losses detected",
                if after.is_empty() { detected } else { format!("{detected} ({after})") },
            )?;
        }
        let spurious = &found.spurious;
        if spurious.packets > 0 {
            let proofs = list(&[
                (spurious.by_timestamp, "by timestamp"),
                (spurious.by_dsack, "by D-SACK"),
                (spurious.by_ack, "already acknowledged"),
            ]);
            let starts = list(&[
                (spurious.timeouts, "of the timeouts"),
                (spurious.fast_retransmits, "of the losses detected without a timeout"),
            ]);
            row("spurious", format!("{} packets ({proofs}){}", spurious.packets, prefixed("; ", starts)))?;
        }
        Ok(())
    }

    fn write_path_mtu(&self, row: &mut Row<'_>) -> fmt::Result {
        let Some(path) = &self.path_mtu else { return Ok(()) };
        if let (Some(bytes), Some(frame)) = (path.lost_segment_bytes, path.lost_segment_frame) {
            let verdict = match path.black_hole {
                BlackHole::Likely => "path MTU black hole",
                BlackHole::Possible => "path MTU black hole, or the other end has disappeared",
                BlackHole::No => "no path MTU black hole",
            };
            let split = match path.lost_segment_split {
                true => ", but its data was acknowledged in shorter segments",
                false => "",
            };
            let longest = match path.longest_acked_bytes {
                0 => "no segment with data was acknowledged".to_owned(),
                bytes => format!("the longest acknowledged segment has {bytes} bytes"),
            };
            let times = path.lost_segment_times;
            let sent = format!("{times} times (first retransmission in frame {frame})");
            let lost =
                format!("a segment of {bytes} bytes was sent {sent} and never acknowledged as a whole");
            row("path MTU", format!("{verdict}: {lost}{split}; {longest}"))?;
        }
        if path.above_icmp_mtu > 0 {
            let (above, mtu) = (path.above_icmp_mtu, path.icmp_mtu.unwrap_or(0));
            let text =
                format!("{above} packets longer than {mtu} bytes sent after ICMP had reported this MTU");
            row("path MTU", text)?;
        }
        Ok(())
    }

    fn write_rtt(&self, row: &mut Row<'_>) -> fmt::Result {
        let rtt = &self.rtt;
        if rtt.samples == 0 {
            return Ok(());
        }
        let measured = |seconds: Option<f64>| MeasuredTime { seconds, resolution: rtt.resolution_seconds };
        let [median, p90, p99] = [rtt.median_seconds, rtt.p90_seconds, rtt.p99_seconds].map(measured);
        let deviation = Seconds(rtt.mean_deviation_seconds.unwrap_or(0.0));
        let [min, mean, max] = [rtt.min_seconds, rtt.mean_seconds, rtt.max_seconds].map(measured);
        let name = match self.rtt_of {
            RttOf::RoundTrip => "round-trip time",
            RttOf::PartOfRoundTrip => "partial RTT",
            RttOf::ReceiverDelay => "receiver delay",
            RttOf::Unknown => "RTT",
        };
        let quantiles = format!("median {median}, 90 % {p90}, 99 % {p99}");
        let samples = rtt.samples;
        row(name, format!("min {min}, mean {mean} ± {deviation}, {quantiles}, max {max}; {samples} samples"))
    }

    fn write_window(&self, row: &mut Row<'_>) -> fmt::Result {
        let window = &self.window;
        let unscaled = if window.unscaled { " (scale unknown)" } else { "" };
        let offered = format!("at most {}{unscaled}", window.max_receiver_window_bytes);
        match (window.max_flight_bytes, window.mean_flight_bytes) {
            (Some(max), Some(mean)) => {
                row("in flight", format!("max {max} bytes, mean {mean:.0}; receiver window {offered}"))?;
            }
            _ if self.acks.packets > 0 => row("receiver window", offered)?,
            _ => {}
        }
        let changes = [(window.zero_windows, "times closed"), (window.shrunk, "times shrunk")];
        write_list(row, "receiver window", "", &changes)
    }

    fn write_time(&self, row: &mut Row<'_>) -> fmt::Result {
        let time = &self.time;
        if time.total_seconds <= 0.0 {
            return Ok(());
        }
        let parts = [
            (time.network_limited_seconds.unwrap_or(0.0), "network"),
            (time.application_limited_seconds.unwrap_or(0.0), "nothing to send"),
            (time.undetermined_seconds, "network or nothing to send (unknown at this capture point)"),
            (time.window_limited_seconds, "receiver window"),
            (time.zero_window_seconds, "zero window"),
            (time.waiting_for_timeout_seconds, "waiting for timeouts"),
        ];
        let parts = parts.iter().filter(|(seconds, _)| *seconds > 0.0).map(|(seconds, what)| {
            format!("{what} {} ({:.0} %)", Seconds(*seconds), 100.0 * seconds / time.total_seconds)
        });
        row("time", parts.collect::<Vec<_>>().join(", "))
    }

    fn write_sender(&self, row: &mut Row<'_>) -> fmt::Result {
        let sender = &self.sender;
        let merged = match sender.longest_segment_bytes {
            longest if longest > sender.segment_bytes => {
                format!(" (in packets of up to {longest} bytes, which a device splits or has merged)")
            }
            _ => String::new(),
        };
        let segments = format!("segments of {} bytes{merged}", sender.segment_bytes);
        let window = sender.initial_window_segments.map(|segments| format!("initial window of {segments}"));
        let growth = sender.growth_per_round_trip;
        let growth = growth.map(|growth| format!("window grows by a factor of {growth:.2} per round trip"));
        let partial = match sender.partial_acks {
            PartialAcks::Tahoe => Some("no fast recovery (Tahoe)"),
            PartialAcks::Reno => Some("a partial ACK ends recovery (Reno)"),
            PartialAcks::NewReno => Some("a partial ACK triggers the next retransmission (NewReno)"),
            PartialAcks::Sack => Some("retransmits what SACK reports as missing"),
            PartialAcks::Undetermined => None,
        };
        let after = match sender.after_timeout {
            AfterTimeout::GoBackN => Some("go-back-N after a timeout"),
            AfterTimeout::HolesOnly => Some("retransmits only missing data after a timeout"),
            AfterTimeout::Undetermined => None,
        };
        let limited = match sender.limited_transmit {
            Evidence::Yes => Some("limited transmit"),
            Evidence::No => Some("no limited transmit"),
            Evidence::Undetermined => None,
        };
        let figures = [Some(segments), window, growth].into_iter().flatten();
        let habits = [partial, after, limited].into_iter().flatten().map(str::to_owned);
        row("sender", figures.chain(habits).collect::<Vec<_>>().join(", "))
    }
}

/// Writes a row with the counts that are not 0, if there are any.
fn write_list(row: &mut Row<'_>, name: &str, prefix: &str, counts: &[(u64, &str)]) -> fmt::Result {
    let text = list(counts);
    if text.is_empty() { Ok(()) } else { row(name, format!("{prefix}{text}")) }
}

/// Returns the text after the prefix, or nothing if the text is empty.
fn prefixed(prefix: &str, text: String) -> String {
    if text.is_empty() { text } else { format!("{prefix}{text}") }
}

impl fmt::Display for AckPolicyFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.looks_like {
            AckPolicy::EverySegment => Some("every segment"),
            AckPolicy::EverySecondSegment => Some("every second segment"),
            AckPolicy::Fewer => Some("every third segment or less often"),
            AckPolicy::Mixed => Some("mixed"),
            AckPolicy::Undetermined => None,
        };
        if let Some(what) = what {
            let [one, two, more] = [self.for_one_segment, self.for_two_segments, self.for_more_segments];
            let counts = list(&[(one, "for 1 segment"), (two, "for 2"), (more, "for 3 or more")]);
            write!(f, "; ACK frequency: {what} ({counts})")?;
        }
        if let Some(by) = self.delayed_by_median_seconds {
            let acks = if self.delayed == 1 { "ACK" } else { "ACKs" };
            write!(f, "; {} delayed {acks}, median delay {}", self.delayed, Seconds(by))?;
        }
        Ok(())
    }
}

impl fmt::Display for CongestionControlFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(name) = self.name else { return f.write_str("cannot be determined") };
        write!(f, "{name}")?;
        for other in &self.or {
            write!(f, " or {other}")?;
        }
        if let Some(evidence) = &self.evidence {
            write!(f, ": {evidence}")?;
        }
        Ok(())
    }
}

impl fmt::Display for CongestionFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut evidence = Vec::new();
        if let (Some(to), Some(least), Some(most)) = (self.falls_to, self.falls_to_least, self.falls_to_most)
        {
            let losses = if self.falls == 1 { "loss" } else { "losses" };
            evidence.push(format!(
                "flight after {} {losses} reduced to {to:.2} ({least:.2} to {most:.2}) of its size",
                self.falls
            ));
        }
        if let Some(growth) = self.grows_segments_per_round_trip {
            evidence.push(format!("growth of {growth:.2} segments per round trip"));
        }
        if self.min_rtt_probes > 0 {
            evidence.push(format!("{} times at most four segments in flight for 0.2 s", self.min_rtt_probes));
        }
        f.write_str(&evidence.join(", "))
    }
}
