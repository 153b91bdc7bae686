//! Formats verdicts as sentences.

use airtcp_numbers::units::show_rate;

use super::facts::Facts;
use crate::connection::findings::{Cause, ConnectionFindings, Verdict};
use crate::text::Seconds;

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share.min(1.0))
}

/// Returns the end of a sentence about a limit: the rate that it permits, and the rate that was reached.
fn rates(verdict: &Verdict) -> String {
    match (verdict.ceiling, verdict.reached) {
        (Some(ceiling), Some(reached)) => {
            format!(": the ceiling is {}, {} were reached", show_rate(ceiling), show_rate(reached))
        }
        (None, Some(reached)) => format!(": {} were reached", show_rate(reached)),
        _ => String::new(),
    }
}

/// Returns the verdict as a sentence. `share` is the cause's share of the time.
pub(super) fn sentence(
    verdict: &Verdict,
    share: f64,
    findings: &ConnectionFindings,
    facts: Option<&Facts<'_>>,
) -> String {
    let Some(facts) = facts else { return of_handshake(verdict.cause, findings) };
    let (of_time, rates) = (percent(share), rates(verdict));
    let sentence = match verdict.cause {
        Cause::ReceiverWindow | Cause::NoWindowScaling | Cause::SlowReader | Cause::SendBuffer => {
            of_window(verdict, facts, &of_time, &rates)
        }
        Cause::SlowWriter
        | Cause::ServerThinkTime
        | Cause::ClientThinkTime
        | Cause::SerialRequests
        | Cause::NagleDelayedAck
        | Cause::IdleRestart => of_application(verdict, facts, &of_time, &rates),
        Cause::HandshakeDelayed => {
            let [syns, syn_acks] = findings.handshake.syns.map(|syn| syn.map_or(0, |syn| syn.times));
            format!(
                "The connection opened late: {} and {} were needed, which took {of_time} of the time.",
                plural(syns, "SYN"),
                plural(syn_acks, "SYN-ACK")
            )
        }
        Cause::NotSlow => {
            let bytes = facts.data.acked_bytes;
            format!("Nothing was slow: {bytes} bytes within one flight over {}.", Seconds(facts.round_trip))
        }
        Cause::Undetermined => return of_undetermined(verdict),
        _ => of_network(verdict, facts, &of_time, &rates),
    };
    if verdict.also.is_empty() { sentence } else { format!("{sentence} Also: {}.", list(&verdict.also)) }
}

fn of_undetermined(verdict: &Verdict) -> String {
    let possible = match verdict.also.is_empty() {
        true => String::new(),
        false => format!(" (possible: {})", list(&verdict.also)),
    };
    let next = verdict.next.as_deref().unwrap_or("capture for longer");
    let reached = verdict.reached.filter(|reached| *reached > 0.0);
    let reached = reached.map(|reached| format!(" {} were reached.", show_rate(reached))).unwrap_or_default();
    format!("The cause cannot be determined from this capture{possible}; {next} to decide.{reached}")
}

fn list(causes: &[Cause]) -> String {
    causes.iter().map(Cause::to_string).collect::<Vec<_>>().join(", ")
}

fn of_application(verdict: &Verdict, facts: &Facts<'_>, of_time: &str, rates: &str) -> String {
    let [client, server] = facts.findings.ends;
    let [client_turns, server_turns] = facts.turns;
    let (from, to) = (facts.data.from.ip(), facts.data.to.ip());
    let rounds = facts.rounds.cloned().unwrap_or_default();
    match verdict.cause {
        Cause::SlowWriter => format!(
            "The application of {from} wrote nothing for {of_time} of the time ({}, at most {}).",
            plural(rounds.pauses + rounds.gaps, "pause"),
            Seconds(rounds.longest_pause_seconds)
        ),
        Cause::ServerThinkTime => {
            let waited = Seconds(server_turns.waited_seconds);
            let rest = Seconds((facts.seconds - server_turns.waited_seconds).max(0.0));
            format!(
                "The server {server} took {waited} to answer {}; everything else accounts for {rest}.",
                plural(server_turns.count, "request")
            )
        }
        Cause::ClientThinkTime => {
            let waited = Seconds(client_turns.waited_seconds);
            let rest = Seconds((facts.seconds - client_turns.waited_seconds).max(0.0));
            let before = if client_turns.count == 1 { "its request" } else { "its requests" };
            format!(
                "The client {client} waited {waited} before {before}; everything else accounts for {rest}."
            )
        }
        Cause::SerialRequests => format!(
            "{} one after the other, each with a round trip of {}, take {of_time} of the time{rates}.",
            plural(server_turns.count, "request"),
            Seconds(facts.round_trip)
        ),
        Cause::NagleDelayedAck => {
            let delay = Seconds(rounds.delayed_ack_stall_seconds / rounds.delayed_ack_stalls.max(1) as f64);
            format!(
                "{from} held back short segments {} until {to} sent an ACK delayed by {delay} (Nagle and delayed ACKs): {of_time} of the time.",
                plural(rounds.delayed_ack_stalls, "time")
            )
        }
        _ => format!(
            "{from} started with a small window {} after a pause{rates}.",
            plural(rounds.restarts, "time")
        ),
    }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Formats a delay that is known within 20 %.
fn about(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms < 1.0 => "less than 1 ms".to_owned(),
        ms if ms < 10.0 => format!("{ms:.0} ms"),
        ms if ms < 1000.0 => format!("{:.0} ms", (ms / 10.0).round() * 10.0),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

fn of_handshake(cause: Cause, findings: &ConnectionFindings) -> String {
    match cause {
        Cause::HandshakeRefused | Cause::HandshakeFailed => {
            format!("The connection did not open: {}.", findings.how_it_ended())
        }
        _ => "The connection carried no data.".to_owned(),
    }
}

fn of_window(verdict: &Verdict, facts: &Facts<'_>, of_time: &str, rates: &str) -> String {
    let to = facts.data.to.ip();
    let rtt = Seconds(facts.round_trip);
    let window = facts.rounds.and_then(|rounds| rounds.limiting_window_bytes).unwrap_or(0.0);
    let largest = facts.data.window.max_receiver_window_bytes;
    match verdict.cause {
        Cause::NoWindowScaling => {
            format!("Slow because {to} offers at most {largest} bytes (no window scaling) over {rtt}{rates}.")
        }
        Cause::ReceiverWindow => {
            format!(
                "Slow because {to} offers only {window:.0} bytes over {rtt} for {of_time} of the time{rates}."
            )
        }
        Cause::SendBuffer => {
            let flight = facts.rounds.and_then(|rounds| rounds.constant_flight_bytes).unwrap_or(0.0);
            let from = facts.data.from.ip();
            format!(
                "Slow because {from} keeps only {flight:.0} bytes in flight over {rtt}, as with a small send buffer{rates}."
            )
        }
        _ => {
            let closed = match facts.data.window.zero_windows {
                0 => String::new(),
                count => format!(" and closed {}", plural(count, "time")),
            };
            format!(
                "Slow because the application of {to} reads slowly: its window was full{closed} for {of_time} of the time{rates}."
            )
        }
    }
}

fn of_network(verdict: &Verdict, facts: &Facts<'_>, of_time: &str, rates: &str) -> String {
    let data = facts.data;
    let rounds = facts.rounds.cloned().unwrap_or_default();
    let (rtt, queue) = (Seconds(facts.round_trip), about(facts.queue()));
    let (lost, episodes) = (rounds.lost_segments, rounds.loss_episodes);
    let rate = verdict.ceiling.map(|rate| format!(" at {}", show_rate(rate))).unwrap_or_default();
    let share = percent(lost as f64 / data.data_packets.max(1) as f64);
    match verdict.cause {
        Cause::RandomLoss => format!(
            "{lost} random losses ({share}) in {episodes} episodes while the round trip stays near its minimum of {rtt}{rates}."
        ),
        Cause::BurstLoss => format!(
            "{lost} losses in {episodes} bursts while the round trip stays near its minimum of {rtt}{rates}."
        ),
        Cause::Policer => format!(
            "Policed{rate}: {lost} losses in {episodes} bursts while the round trip stays near its minimum of {rtt}."
        ),
        Cause::Bufferbloat => {
            format!("Queue of {queue}{rate} (bufferbloat), {}.", losses(lost))
        }
        Cause::LinkRate => {
            format!("The link is full{rate}, with a queue of {queue} and {}.", losses(lost))
        }
        Cause::EcnMarks => format!(
            "A queue marks packets (ECN) in {} of {} round trips, with a delay of {queue} and {}{rates}.",
            rounds.marked,
            rounds.count,
            losses(lost)
        ),
        Cause::Reordering => format!(
            "Packets arrive in another order: {} retransmissions were unnecessary, {} packets out of order{rates}.",
            data.retransmissions.spurious.packets,
            data.arrivals.out_of_order.max(rounds.overtaken_segments)
        ),
        Cause::Duplication => {
            let copies = facts.findings.copies.max(data.acks.dsacks);
            format!("The path duplicates packets: {copies} copies of {} packets{rates}.", data.data_packets)
        }
        Cause::AckLoss => format!(
            "ACKs are lost on their way: {} of {}{rates}.",
            rounds.lost_acks.unwrap_or(0),
            data.acks.packets + rounds.lost_acks.unwrap_or(0)
        ),
        Cause::ThinUplink => {
            let queue = about(rounds.ack_path_queueing_delay.median_seconds.unwrap_or(0.0));
            format!("ACKs wait {queue} in a queue on their way back{rates}.")
        }
        Cause::SlowStart => format!(
            "The transfer ended during slow start: {} bytes in {} round trips of {rtt}{rates}.",
            data.acked_bytes, rounds.count
        ),
        Cause::SpuriousTimeouts => format!(
            "{} of {} without need: nothing was lost, but the ACKs came late ({of_time} of the time).",
            data.retransmissions.spurious.timeouts,
            plural(data.retransmissions.timeouts, "timeout")
        ),
        Cause::Outage => format!(
            "The path failed {}, for {} in total ({of_time} of the time).",
            plural(data.outages.count, "time"),
            Seconds(data.outages.seconds)
        ),
        Cause::PathMtuBlackHole => "Long packets do not arrive (path MTU black hole).".to_owned(),
        Cause::PathDeath if facts.is_at_receiver() => format!(
            "{} stopped sending before its data was complete, and nothing arrived for {}.",
            data.from.ip(),
            Seconds(facts.silence_at_end())
        ),
        Cause::PathDeath => format!(
            "{} stopped answering: {} timeouts without any answer at the end.",
            data.to.ip(),
            data.outages.unanswered_timeouts
        ),
        _ => format!("The cause cannot be determined from this capture{rates}."),
    }
}

fn losses(count: u64) -> String {
    match count {
        0 => "no loss".to_owned(),
        1 => "1 loss".to_owned(),
        count => format!("{count} losses"),
    }
}

/// Returns the next step.
pub(super) fn next_step(
    verdict: &Verdict,
    findings: &ConnectionFindings,
    facts: Option<&Facts<'_>>,
) -> Option<String> {
    let facts = facts?;
    let (from, to) = (facts.data.from.ip(), facts.data.to.ip());
    let text = match verdict.cause {
        Cause::Undetermined if facts.rounds.is_none() || verdict.also.contains(&Cause::Policer) => {
            "capture for longer".to_owned()
        }
        Cause::Undetermined if facts.is_at_sender() => format!("capture at {to}"),
        Cause::Undetermined => format!("capture at {from}"),
        Cause::NoWindowScaling => "enable window scaling at both ends".to_owned(),
        Cause::ReceiverWindow => format!("enlarge the receive buffer of {to}"),
        Cause::SlowReader => format!("look for the delay in the application of {to}"),
        Cause::SendBuffer => format!("enlarge the send buffer of {from}"),
        Cause::SlowWriter => format!("look for the delay in the application of {from}"),
        Cause::ServerThinkTime => {
            format!("look for the delay in the application of {}", findings.ends[1].ip())
        }
        Cause::ClientThinkTime => {
            format!("look for the delay in the application of {}", findings.ends[0].ip())
        }
        Cause::SerialRequests => "send several requests without waiting for the answers".to_owned(),
        Cause::NagleDelayedAck => "set TCP_NODELAY, or write each message at once".to_owned(),
        Cause::RandomLoss | Cause::BurstLoss => {
            "capture at both ends and compare with --path to see where packets are lost".to_owned()
        }
        Cause::Bufferbloat => {
            "shorten the queue of the bottleneck, or use active queue management".to_owned()
        }
        Cause::Policer => "send at most at this rate, or ask the network for a higher one".to_owned(),
        Cause::SlowStart => "reuse one connection for several transfers".to_owned(),
        Cause::PathMtuBlackHole => {
            "let ICMP errors pass, clamp the MSS, or enable MTU probing at the sender".to_owned()
        }
        Cause::PathDeath | Cause::Outage => format!("capture at {to} and compare with --path"),
        _ => return None,
    };
    Some(text)
}
