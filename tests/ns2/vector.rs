//! The recorded vectors: reads the JSON lines and expands their compact notation.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One scenario: flows over shared links, and what ns-2 sent on them.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) stop: f64,
    pub(crate) flows: Vec<Flow>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SenderKind {
    Tahoe,
    Reno,
    Newreno,
    Sack,
    Rfc793,
}

/// The condition "careful" of RFC 6582 §3.2, and ns-2's further variants and heuristics.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Careful {
    Off,
    On,
    Less,
    AckHeuristic,
    TimestampHeuristic,
}

/// The point at which a lost packet disappears: at the entrance of the link's queue, or at the far end of the
/// link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LossPoint {
    Queue,
    FarEnd,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum QueueLimit {
    Packets(usize),
    Unlimited(Unlimited),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unlimited {
    Unlimited,
}

/// Rate in bit/s, delay in seconds, and the queue limit in packets.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Hop(pub(crate) f64, pub(crate) f64, pub(crate) QueueLimit);

/// One sender, its receiver and its path. README.md gives the name of each key in ns-2.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    pub(crate) flow: u32,
    pub(crate) start: f64,
    /// Number of data segments to send, not counting the SYN. `None`: more than the run can send.
    #[serde(default)]
    pub(crate) segments: Option<u32>,

    pub(crate) sender: SenderKind,
    /// The receiver's window in segments.
    pub(crate) window: u32,
    pub(crate) initial_window: u32,
    pub(crate) initial_window_after_syn_loss: u32,
    pub(crate) syn: bool,
    pub(crate) delay_growth: bool,
    pub(crate) tick: f64,
    pub(crate) tick_phase: f64,
    pub(crate) min_rto: f64,
    pub(crate) max_rto: f64,
    pub(crate) initial_rto: f64,
    pub(crate) min_rto_before_backoff: bool,
    pub(crate) limited_transmit: bool,
    pub(crate) precision_reduce: bool,
    pub(crate) careful: Careful,
    pub(crate) impatient: bool,
    pub(crate) partial_window_deflation: bool,
    pub(crate) exit_recovery_fix: bool,
    pub(crate) max_burst: u32,
    pub(crate) fast_retransmit: bool,
    pub(crate) frto: bool,
    pub(crate) timestamps: bool,

    pub(crate) sack: bool,
    pub(crate) delayed_ack: Option<f64>,
    pub(crate) rfc2581_immediate_ack: bool,
    pub(crate) syn_immediate_ack: bool,

    /// Name of the sending host. Flows with the same host share its access link.
    pub(crate) host: String,
    pub(crate) forward: Vec<Hop>,
    pub(crate) reverse: Vec<Hop>,
    pub(crate) payload: u32,
    pub(crate) first_bytes: u32,
    pub(crate) data_bytes: u32,
    pub(crate) loss_point: LossPoint,
    /// Index of the hop of `forward` that loses the `drops`. The first hop of `reverse` loses the
    /// `ack_drops`.
    pub(crate) loss_hop: usize,
    #[serde(default)]
    pub(crate) drops: Drops,
    #[serde(default)]
    pub(crate) ack_drops: Vec<usize>,
    /// (segment, transmission, seconds): this transmission is delayed before the first link.
    #[serde(default)]
    pub(crate) delayed: Option<(u32, u32, f64)>,
    /// The first link starts no transmission between these two times.
    #[serde(default)]
    pub(crate) access_pause: Option<(f64, f64)>,

    /// Segments that ns-2 sent.
    pub(crate) tx: Transmissions,
    #[serde(default)]
    pub(crate) acks: Option<Acks>,
}

/// Transmissions to lose: `"50#1 50#2"` is the first and second transmission of segment 50.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Drops(pub(crate) Vec<(u32, u32)>);

/// Transmissions: in `"100704:1-2 8000:5*3"`, segments 1 and 2 leave 100704 µs after the previous
/// transmission, followed by 5, 6 and 7 at intervals of 8000 µs.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Transmissions(pub(crate) Vec<(u64, u32)>);

/// ACKs: `"50352:0 8000:4*3 8000:6=2[9-9,7-7]"` acknowledges segments 0, 4, 5 and 6, then twice 6 with these
/// SACK blocks.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Acks(pub(crate) Vec<RecordedAck>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedAck {
    pub(crate) micros: u64,
    /// The highest segment received in order; −1 before the first.
    pub(crate) ack: i64,
    /// The first and last segment of each block.
    pub(crate) sack: Vec<(u32, u32)>,
}

/// Parses one family. A line with `set` and without `name` defines defaults. A line with `name` is a vector,
/// and its keys override the defaults of its `set`. If there are several flows, the entries of `flows`
/// override both.
pub(crate) fn read_family(text: &str) -> Result<Vec<Vector>, String> {
    let mut sets: Vec<(String, Map<String, Value>)> = Vec::new();
    let mut vectors = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = |what: &dyn std::fmt::Display| format!("line {}: {what}", index + 1);
        let mut object: Map<String, Value> = serde_json::from_str(line).map_err(|e| at(&e))?;
        let Some(Value::String(set)) = object.remove("set") else {
            return Err(at(&"every line has a \"set\""));
        };
        let Some(name) = object.remove("name") else {
            sets.push((set, object));
            continue;
        };
        let Some((_, defaults)) = sets.iter().find(|(known, _)| *known == set) else {
            return Err(at(&format!("no set \"{set}\" above this line")));
        };
        let mut common = defaults.clone();
        common.append(&mut object);
        vectors.push(vector(name, common).map_err(|e| at(&e))?);
    }
    Ok(vectors)
}

fn vector(name: Value, mut common: Map<String, Value>) -> Result<Vector, String> {
    let name = name.as_str().ok_or("\"name\" is a string")?.to_owned();
    let stop = common.remove("stop").and_then(|stop| stop.as_f64()).ok_or("\"stop\" is a number")?;
    let own: Vec<Map<String, Value>> = match common.remove("flows") {
        Some(flows) => serde_json::from_value(flows).map_err(|e| e.to_string())?,
        None => vec![Map::new()],
    };
    let flows = own
        .into_iter()
        .map(|mut own| {
            let mut flow = common.clone();
            flow.append(&mut own);
            serde_json::from_value(Value::Object(flow)).map_err(|e| e.to_string())
        })
        .collect::<Result<_, _>>()?;
    Ok(Vector { name, stop, flows })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not a number"))
}

impl TryFrom<String> for Drops {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let drop = |word: &str| -> Result<(u32, u32), String> {
            let (segment, nth) =
                word.split_once('#').ok_or_else(|| format!("\"{word}\" is not SEGMENT#NTH"))?;
            Ok((number(segment)?, number(nth)?))
        };
        text.split_whitespace().map(drop).collect::<Result<_, _>>().map(Self)
    }
}

impl TryFrom<String> for Transmissions {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut sent = Vec::new();
        let mut micros = 0;
        for word in text.split_whitespace() {
            let (delta, what) = word.split_once(':').ok_or_else(|| format!("\"{word}\" has no time"))?;
            let delta: u64 = number(delta)?;
            let (range, times) = what.split_once('*').unwrap_or((what, "1"));
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (number(first)?, number(last)?);
            let length = last - first + 1;
            for round in 0..number(times)? {
                micros += delta;
                sent.extend((first..=last).map(|segment| (micros, segment + round * length)));
            }
        }
        Ok(Self(sent))
    }
}

impl TryFrom<String> for Acks {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut acks = Vec::new();
        let mut micros = 0;
        for word in text.split_whitespace() {
            let (delta, what) = word.split_once(':').ok_or_else(|| format!("\"{word}\" has no time"))?;
            let delta: u64 = number(delta)?;
            let (what, blocks) = what.split_once('[').unwrap_or((what, ""));
            let block = |text: &str| -> Result<(u32, u32), String> {
                let (first, last) =
                    text.split_once('-').ok_or_else(|| format!("\"{text}\" is not FIRST-LAST"))?;
                Ok((number(first)?, number(last)?))
            };
            let sack = blocks
                .trim_end_matches(']')
                .split(',')
                .filter(|text| !text.is_empty())
                .map(block)
                .collect::<Result<Vec<_>, _>>()?;
            // `*n`: n consecutive ACK numbers; `=n`: the same ACK n times.
            let (ack, times, step) = if let Some((ack, times)) = what.split_once('*') {
                (ack, number::<i64>(times)?, 1)
            } else if let Some((ack, times)) = what.split_once('=') {
                (ack, number(times)?, 0)
            } else {
                (what, 1, 0)
            };
            let ack: i64 = number(ack)?;
            for round in 0..times {
                micros += delta;
                acks.push(RecordedAck { micros, ack: ack + round * step, sack: sack.clone() });
            }
        }
        Ok(Self(acks))
    }
}
