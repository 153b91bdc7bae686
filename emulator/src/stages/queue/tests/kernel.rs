//! Compares the disciplines with the kernel's, packet by packet, with the same arrivals and random numbers.
//! `tests/queues` contains the vectors and the way to create them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::{Probability, Rate, Size};
use serde::Deserialize;

use crate::packet::{Direction, PacketId};
use crate::stage::{Event, Mark, Outbox, Recording};
use crate::stages::duplex::OneWay;
use crate::stages::link::{Link, LinkConfig};
use crate::stages::queue::testing::udp;
use crate::stages::queue::{
    Bounds, CodelConfig, Discipline, FqCodelConfig, Length, PieConfig, QueueConfig, RedConfig,
};
use crate::stages::testing::packet;

#[derive(Deserialize)]
struct Vector {
    name: String,
    discipline: String,
    rate: u64,
    ecn: bool,
    limit: usize,
    settings: BTreeMap<String, u64>,
    seed: u64,
    flows: Vec<Flow>,
    packets: usize,
    /// Dropped packets and the times of their drops.
    drops: Vec<(u64, u64)>,
    marks: Vec<u64>,
    /// Order of transmission, as differences between successive packet numbers. Absent: the order of arrival.
    order: Option<Vec<i64>>,
}

#[derive(Deserialize)]
struct Flow {
    gap: u64,
    from: u64,
    to: u64,
    min: u64,
    max: u64,
    ect: bool,
}

#[derive(Deserialize)]
struct Expected {
    deviation: Vec<Deviation>,
}

#[derive(Deserialize)]
struct Deviation {
    name: String,
    /// Number of packets that only one of the two drops or marks. 0: only the order differs.
    packets: usize,
    reason: String,
}

/// The packets that a queue drops, marks and sends.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    drops: BTreeMap<u64, u64>,
    marks: Vec<u64>,
    order: Vec<u64>,
}

/// The random number generator of `record.py`.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Vector {
    fn queue(&self) -> QueueConfig {
        let number = |key: &str| self.settings[key];
        let time = |key| Duration::from_nanos(number(key));
        let mtu = Size::bytes(number("mtu"));
        let codel = || CodelConfig { target: time("target"), interval: time("interval"), mtu, ecn: self.ecn };
        let discipline = match self.discipline.as_str() {
            "codel" => Discipline::Codel(codel()),
            "fq-codel" => Discipline::FqCodel(FqCodelConfig {
                flows: number("flows") as u32,
                quantum: Size::bytes(number("quantum")),
                codel: codel(),
            }),
            // The kernel counts α and β in sixteenths.
            "pie" => Discipline::Pie(PieConfig {
                target: time("target"),
                t_update: time("t_update"),
                alpha: number("alpha") as f64 / 16.0,
                beta: number("beta") as f64 / 16.0,
                max_burst: time("max_burst"),
                mtu,
                ecn: self.ecn,
                ..PieConfig::default()
            }),
            "red" => Discipline::Red(RedConfig {
                min: Length::Bytes(Size::bytes(number("min"))),
                max: Length::Bytes(Size::bytes(number("max"))),
                weight: Probability::new(0.5_f64.powi(number("wlog") as i32)),
                max_p: Probability::new(number("max_p") as f64 / 2_f64.powi(32)),
                gentle: false,
                ecn: self.ecn,
            }),
            other => panic!("{other}"),
        };
        QueueConfig { bounds: Bounds { packets: Some(self.limit), bytes: None }, discipline }
    }

    /// Returns times, lengths and flows, drawn as in `record.py`.
    fn arrivals(&self) -> Vec<(u64, u64, usize)> {
        let mut packets = Vec::new();
        for (number, flow) in self.flows.iter().enumerate() {
            let mut rng = SplitMix(self.seed + number as u64);
            let mut at = flow.from;
            loop {
                at += rng.next() % (2 * flow.gap);
                let length = flow.min + rng.next() % (flow.max - flow.min + 1);
                if at >= flow.to {
                    break;
                }
                packets.push((at, length, number));
            }
        }
        packets.sort_by_key(|(at, _, flow)| (*at, *flow));
        packets
    }

    /// Returns the outcome in the kernel.
    fn recorded(&self) -> Outcome {
        let drops: BTreeMap<u64, u64> = self.drops.iter().copied().collect();
        let order = match &self.order {
            None => (0..self.packets as u64).filter(|id| !drops.contains_key(id)).collect(),
            Some(steps) => steps
                .iter()
                .scan(0, |at, step| {
                    *at += step;
                    Some(*at as u64)
                })
                .collect(),
        };
        Outcome { drops, marks: self.marks.clone(), order }
    }

    /// Returns a link with this queue and with the random numbers of the recording.
    fn link(&self) -> Link {
        let config = LinkConfig {
            rate: Some(Rate::bits_per_second(self.rate)),
            queue: self.queue(),
            ..LinkConfig::default()
        };
        let mut link = Link::new(&config, Stream::new(1, "link").into()).unwrap();
        let mut random = SplitMix(self.seed);
        // PIE uses 53 bits of each number, RED the upper 32.
        let bits = if self.discipline == "red" { 32 } else { 53 };
        link.queue().use_random_numbers(
            (0..100_000).map(|_| (random.next() >> (64 - bits)) as f64 / 2_f64.powi(bits)),
        );
        link
    }

    /// Returns a port for each flow. FQ-CoDel hashes flow n into queue n, as in the kernel.
    fn ports(&self, link: &mut Link) -> Vec<u16> {
        if self.discipline != "fq-codel" {
            return vec![7; self.flows.len()];
        }
        let hash = link.queue().hash;
        let port = |flow: usize| {
            let matches = |port: &u16| hash.of(&udp(1, *port, 60), self.settings["flows"] as usize) == flow;
            (0..u16::MAX).find(matches).expect("some port has this hash")
        };
        (0..self.flows.len()).map(port).collect()
    }

    /// Returns the outcome in the emulator.
    fn emulated(&self) -> Outcome {
        let mut link = self.link();
        let ports = self.ports(&mut link);
        let mut out = Outbox::new(Recording::Events, false);
        let mut outcome = Outcome::default();
        let arrivals = self.arrivals();
        assert_eq!(arrivals.len(), self.packets, "number of arrivals in record.py");
        let mut run_until = |link: &mut Link, time: Instant, out: &mut Outbox| {
            while let Some(at) = link.next_deadline().filter(|at| *at <= time) {
                out.begin(at, Some(0));
                link.handle_deadline(at, out);
                collect(out, &mut outcome);
            }
        };
        for (id, (at, length, flow)) in arrivals.into_iter().enumerate() {
            let at = Instant::from_nanos(at);
            run_until(&mut link, at, &mut out);
            let mut bytes = udp(1, ports[flow], length as usize);
            bytes[1] = if self.flows[flow].ect { 2 } else { 0 };
            out.begin(at, Some(0));
            link.handle_packet(at, packet(id as u64, Direction::Down, at, bytes), &mut out);
        }
        run_until(&mut link, Instant::from_nanos(u64::MAX), &mut out);
        outcome.marks.sort_unstable();
        outcome
    }
}

/// Adds the events since the last call to `outcome`.
fn collect(out: &mut Outbox, outcome: &mut Outcome) {
    out.take();
    for record in out.take_records() {
        let PacketId(id) = record.packet;
        match record.event {
            Event::Dropped { .. } => assert!(outcome.drops.insert(id, record.at.as_nanos()).is_none()),
            Event::Marked { mark: Mark::Congestion } => outcome.marks.push(id),
            Event::Sent { .. } => outcome.order.push(id),
            _ => {}
        }
    }
}

/// Returns the packets that only one of the two drops or marks.
fn differences(emulated: &Outcome, recorded: &Outcome, packets: usize) -> Vec<u64> {
    let outcome_of =
        |outcome: &Outcome, id: u64| (outcome.drops.contains_key(&id), outcome.marks.contains(&id));
    (0..packets as u64).filter(|id| outcome_of(emulated, *id) != outcome_of(recorded, *id)).collect()
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/queues")
}

#[test]
fn packet_fates_match_kernel_disciplines() {
    let vectors = std::fs::read_to_string(directory().join("recorded.jsonl")).unwrap();
    let expected = std::fs::read_to_string(directory().join("expected.toml")).unwrap();
    let Expected { deviation: expected } = toml::from_str(&expected).unwrap();
    let mut wrong = Vec::new();
    let mut deviations = 0;
    for line in vectors.lines() {
        let vector: Vector = serde_json::from_str(line).unwrap();
        let (emulated, recorded) = (vector.emulated(), vector.recorded());
        let differ = differences(&emulated, &recorded, vector.packets);
        let wanted = expected.iter().find(|deviation| deviation.name == vector.name);
        deviations += usize::from(wanted.is_some());
        let as_expected = match wanted {
            // The number of differences must match. With 0, the order must differ.
            Some(Deviation { packets, reason, .. }) => {
                emulated != recorded && differ.len() == *packets && !reason.is_empty()
            }
            None => emulated == recorded,
        };
        if !as_expected {
            let first = differ.first().map(|id| (id, recorded.drops.get(id), emulated.drops.get(id)));
            wrong.push(format!(
                "{}: the fates of {} of {} packets differ from the kernel, {} expected; first packet, its drop times in the kernel and here: {first:?}",
                vector.name,
                differ.len(),
                vector.packets,
                wanted.map_or(0, |deviation| deviation.packets),
            ));
        }
    }
    assert_eq!(deviations, expected.len(), "each expected deviation belongs to a vector");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
