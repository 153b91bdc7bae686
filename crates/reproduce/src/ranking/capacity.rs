//! An upper bound on the goodput of a path, calculated from its scenario alone.

use airlink::rlc::config::{BlockErrors, RlcConfig};
use airlink::rlc::umts::config::Discard;
use airlink::rlc::umts::hs::cqi::Category;
use airlink::rlc::umts::hs::framing::Framing;
use airlink::scenario::{Scenario, StageConfig};
use airlink::stages::loss::{LossConfig, Model};
use airlink::stages::queue::Bounds;
use airlink::stages::traffic::Source;
use airwire::direction::Direction;
use airwire::units::{Probability, Rate};

/// Size of the IPv4 and TCP headers without options, in bytes.
const HEADERS: f64 = 40.0;

/// Capacity × (1 − loss) in bit/s of payload in one direction. This is the payload of segments with `mss` bytes that the
/// narrowest link can carry, without the 40 bytes of headers, minus the losses on this link and on later
/// stages.
///
/// Constant traffic that no queue drops is subtracted, because no sender can use its share. On/off sources are not
/// subtracted, because an aggressive sender displaces them in a bounded queue. So the result is an upper bound.
pub(super) fn of(scenario: &Scenario, mss: u16, direction: Direction) -> f64 {
    let packet = f64::from(mss) + HEADERS;
    let mut most = f64::INFINITY;
    let mut constant: Vec<(&str, f64)> = Vec::new();
    let mut stages: Vec<_> = scenario.stages.iter().collect();
    if direction == Direction::Up {
        stages.reverse();
    }
    for stage in stages {
        match &stage.config {
            StageConfig::Traffic(ways) => {
                if let Some(traffic) = ways.get(direction).filter(|traffic| traffic.source == Source::Cbr) {
                    constant.push((&traffic.leaves_after, f64::from(traffic.sources) * bits(traffic.rate)));
                }
            }
            StageConfig::Link(ways) => {
                if let Some((rate, link)) = ways.get(direction).and_then(|link| Some((link.rate?, link))) {
                    let unbounded = link.queue.bounds == Bounds::default();
                    let taken: f64 = constant.iter().map(|(_, rate)| rate).filter(|_| unbounded).sum();
                    most = most.min(bits(rate) - taken);
                }
            }
            StageConfig::Loss(ways) => {
                most *= 1.0 - ways.get(direction).map_or(0.0, |loss| loss_rate(loss, packet));
            }
            StageConfig::Arq(ways) => {
                if let Some(arq) = ways.get(direction) {
                    // Every transmission occupies the link, and this share of the transmissions arrives.
                    most = most.min(bits(arq.rate) * (1.0 - arq.per.value()));
                }
            }
            StageConfig::Rlc(rlc) => most = most.min(of_downlink_bearer(rlc, packet)),
            // The following stages take no capacity or are not on the papers' paths. Ignoring one keeps the
            // result an upper bound.
            StageConfig::Station(_)
            | StageConfig::Lte(_)
            | StageConfig::Nr(_)
            | StageConfig::Outage(_)
            | StageConfig::Reorder(_)
            | StageConfig::Duplicate(_)
            | StageConfig::Corrupt(_)
            | StageConfig::Truncate(_)
            | StageConfig::Policer(_) => {}
        }
        constant.retain(|(leaves_after, _)| *leaves_after != stage.name);
    }
    most * f64::from(mss) / packet
}

fn bits(rate: Rate) -> f64 {
    rate.as_bits_per_second() as f64
}

/// The long-term share of packets of `packet` bytes that a channel damages.
fn loss_rate(loss: &LossConfig, packet: f64) -> f64 {
    let value = |probability: Option<Probability>| probability.map_or(0.0, Probability::value);
    match loss.model {
        Model::Uniform => value(loss.per),
        Model::BitErrors => 1.0 - (1.0 - value(loss.ber)).powf(8.0 * packet),
        Model::GilbertElliott => {
            let (enters, leaves) = (value(loss.good_to_bad), value(loss.bad_to_good));
            (leaves * value(loss.good) + enters * value(loss.bad)) / (enters + leaves)
        }
        // Not on the papers' paths. Ignoring these models keeps the result an upper bound.
        Model::None | Model::Markov | Model::List | Model::Rayleigh | Model::Shadowing => 0.0,
    }
}

/// Bit/s of packets that RLC delivers. A share of 1 − BLER of all transmissions arrives, including retransmissions.
/// If a PDU fails n times, RLC discards its packet, and the transmissions of the packet's other PDUs are wasted.
fn of_downlink_bearer(rlc: &RlcConfig, packet: f64) -> f64 {
    /// Header of an AMD PDU in bytes (TS 25.322 §9.2.1.4), without length indicators.
    const HEADER: f64 = 2.0;
    let channel = &rlc.down.channel;
    let payload = rlc.down.format.pdu.as_bytes() as f64 - HEADER;
    if let Some(category) = rlc.hsdpa.as_ref().and_then(|hsdpa| Category::of(hsdpa.category)) {
        // Not on the papers' paths. Limits by the channel and by other mobiles are ignored.
        let framing = Framing::of(&rlc.down.format);
        let (octets, pdus) = (framing.octets(category.largest), framing.pdus(category.largest));
        return 8.0 * (octets as f64 - HEADER * pdus as f64) / (0.002 * category.spacing as f64);
    }
    let blocks = f64::from(channel.max_blocks()) / channel.tti().as_secs_f64();
    let bler = match &channel.errors {
        BlockErrors::Independent { bler } | BlockErrors::PerTti { bler } => bler.value(),
        // Not on the papers' paths, as above.
        BlockErrors::GilbertElliott { .. }
        | BlockErrors::Rayleigh { .. }
        | BlockErrors::Shadowing { .. }
        | BlockErrors::Listed { .. } => 0.0,
    };
    let times = match rlc.down.sender.discard {
        Discard::ResetAfterMaxDat { max_dat } | Discard::MrwAfterMaxDat { max_dat, .. } => max_dat - 1,
        _ => return 8.0 * payload * blocks * (1.0 - bler),
    };
    let arrives = 1.0 - bler.powi(i32::from(times));
    8.0 * payload * blocks * (1.0 - bler) * arrives.powf(packet / payload - 1.0)
}

#[cfg(test)]
mod tests {
    use airtcp_sim::run::{Run, run};

    use super::*;
    use crate::Paper;
    use crate::ranking::paths::{PATHS, RankedPath};

    /// In kbit/s, calculated by hand from the papers' numbers.
    #[test]
    fn capacity_minus_loss_matches_paper_numbers() {
        let wire = 56.0 * 832.0 / 170.0;
        let by_hand = [
            // Voice takes half of 128 kbit/s; the loss rate is 8 % in both.
            (128.0 - 64.0) * 0.92 * 472.0 / 512.0,
            (128.0 - 64.0) * 0.92 * 472.0 / 512.0,
            500.0 * 0.98 * 0.96,
            250.0 * 0.98 * 0.96,
            // RLC gives up one of 10^11 PDUs.
            384.0 * 0.9 * 1460.0 / 1500.0,
            384.0 * 0.9 * 1460.0 / 1500.0,
            // Three transmissions: RLC gives up one of 1000 PDUs, and a packet has 37.5 PDUs.
            384.0 * 0.9 * 0.999_f64.powf(36.5) * 1460.0 / 1500.0,
            // The interruption and the two listed losses are ignored.
            384.0 * 1460.0 / 1500.0,
            2000.0 * 0.96 * 1000.0 / 1040.0,
            2000.0 * 0.96 * 1000.0 / 1040.0,
            wire * 0.999_f64.powi(170) * 64.0 / 104.0,
            wire * 0.9999_f64.powi(170) * 64.0 / 104.0,
            // The radio link before the wire loses data, but carries more than the wire.
            wire * 64.0 / 104.0,
            // Half of the bit errors are on the radio link before the wire.
            wire * 0.9995_f64.powi(170) * 64.0 / 104.0,
        ];
        assert_eq!(by_hand.len(), PATHS.len());
        for (path, by_hand) in PATHS.iter().zip(by_hand) {
            let most = path.capacity().unwrap() / 1e3;
            assert!((most / by_hand - 1.0).abs() < 1e-4, "{}: {most} and {by_hand} kbit/s", path.name);
        }
    }

    /// The number of datagrams that arrive. They have the size of segments, and their rate is above the capacity of
    /// the path. If there is voice, their rate equals the voice's rate.
    fn delivered_datagrams(path: &RankedPath) -> f64 {
        let newreno = "newreno".parse().unwrap();
        let plan = path.plan(&[&newreno]).unwrap();
        let packet = u64::from(path.mss) + 40;
        let voice = path.paper == Paper::Pan2004;
        let rate =
            if voice { 64e3 } else { 1.5 * path.capacity().unwrap() * packet as f64 / f64::from(path.mss) };
        let way = if path.uplink { "up" } else { "down" };
        let source = format!(
            "[[stage]]\nkind = \"traffic\"\nname = \"datagrams\"\n\
             {way} = {{ source = \"cbr\", rate = \"{rate:.0}bit\", packet = \"{packet}B\", leaves_after = \"end\" }}\n"
        );
        let end = "[[stage]]\nkind = \"link\"\nname = \"end\"\n";
        // Uplink packets pass the stages from the last to the first.
        let stages = if path.uplink { [end, &source] } else { [&source, end] };
        let datagrams = format!("schema = 1\n{}", stages.concat());
        let [first, last] =
            <[_; 2]>::try_from(Scenario::parse(&datagrams, "datagrams").unwrap().stages).unwrap();
        let mut scenario = plan.scenario.clone();
        scenario.stages.retain(|stage| !stage.name.starts_with("cross-traffic"));
        let nearest = if path.uplink { scenario.stages.first() } else { scenario.stages.last() };
        let nearest = nearest.unwrap().name.clone();
        scenario.stages.insert(0, first);
        scenario.stages.push(last);
        let report = run(&Run { scenario, seed: 1, flows: Vec::new(), ..plan }).unwrap();
        let arrived = &report.stages[&nearest][way];
        let arrived =
            arrived.get("packets_out").or_else(|| arrived.get("delivered")).unwrap().as_f64().unwrap();
        // Voice and datagrams have the same number and size of packets.
        if voice { arrived / 2.0 } else { arrived }
    }

    #[test]
    fn full_rate_datagrams_reach_capacity() {
        for path in &PATHS {
            let most = path.capacity().unwrap() / 8.0 / f64::from(path.mss) * path.seconds as f64;
            let share = delivered_datagrams(path) / most;
            // Where status reports are held back for 500 ms, the RLC window stalls. The bound ignores stalls.
            let least = if path.paper == Paper::Inamura2009 { 0.7 } else { 0.97 };
            assert!((least..1.01).contains(&share), "{}: {share}", path.name);
        }
    }
}
