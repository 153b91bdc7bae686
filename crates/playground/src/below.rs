//! Events inside the path: the PDUs of radio links, incidents in stages, and the packets between the hosts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use airlink::packet::Direction;
use airlink::stage::{Incident, Mishap, RadioPdu, Technology};
use airtcp_report::html::columns::column;
use airtcp_sim::world::{Observer, Passage};
use serde_json::{Value, json};

/// The recorded events. The world, which adds them, and the run, which reads them at the end, share them.
#[derive(Clone, Default)]
pub(crate) struct Below(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    incidents: Vec<Incident>,
    pdus: Vec<Pdu>,
    /// Numbers of data PDUs in the order of their first transmissions, by stage, direction, epoch and
    /// sequence number.
    numbers: BTreeMap<(usize, Direction, u32, u16), i64>,
    last: BTreeMap<(usize, Direction), i64>,
    passages: Vec<Passage>,
}

struct Pdu {
    micros: i64,
    stage: usize,
    direction: Direction,
    /// For a data PDU, its number in the order of first transmissions, from 1. `None` for a control PDU.
    number: Option<i64>,
    transmission: u32,
    lost: bool,
}

/// Maximum number of PDUs and of incidents: as many as two hours of a busy bearer have.
const MOST: usize = 2_000_000;
/// Maximum number of packets in ladder diagrams, which take about 40 MB.
const MOST_PASSAGES: usize = 500_000;

impl Observer for Below {
    fn passed(&mut self, passage: &Passage) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.passages.len() < MOST_PASSAGES {
            seen.passages.push(*passage);
        }
    }

    fn incident(&mut self, incident: &Incident) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.incidents.len() < MOST {
            seen.incidents.push(*incident);
        }
    }

    fn pdu(&mut self, pdu: &RadioPdu) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.pdus.len() >= MOST {
            return;
        }
        let Technology::Umts { .. } = pdu.technology;
        let number = sequence_number(&pdu.bytes).map(|sn| {
            let Seen { numbers, last, .. } = &mut *seen;
            *numbers.entry((pdu.stage, pdu.direction, pdu.epoch, sn)).or_insert_with(|| {
                let next = last.entry((pdu.stage, pdu.direction)).or_default();
                *next += 1;
                *next
            })
        });
        seen.pdus.push(Pdu {
            micros: (pdu.at.as_nanos() / 1000) as i64,
            stage: pdu.stage,
            direction: pdu.direction,
            number,
            transmission: pdu.transmission,
            lost: pdu.lost,
        });
    }
}

/// Returns the sequence number of an acknowledged-mode data PDU (TS 25.322 §9.2.1.4), in which the D/C bit is
/// 1 and the twelve bits after it are the sequence number.
fn sequence_number(octets: &[u8]) -> Option<u16> {
    let [first, second, ..] = octets else { return None };
    (first & 0x80 != 0).then(|| u16::from(first & 0x7f) << 5 | u16::from(second >> 3))
}

impl Below {
    /// Returns the packets of a flow, in the order in which they left their hosts.
    pub(crate) fn passages(&self, flow: usize) -> Vec<Passage> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut passages: Vec<_> =
            seen.passages.iter().filter(|passage| passage.flow == flow).copied().collect();
        passages.sort_by_key(|passage| passage.sent);
        passages
    }

    /// Returns the PDUs as columns for the page's script, and the incidents as text.
    pub(crate) fn shown(&self, stages: &[String]) -> Value {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |stage: usize| stages.get(stage).map_or("", String::as_str);
        let incident = |incident: &Incident| json!({ "at": incident.at.as_nanos() / 1000, "stage": name(incident.stage), "text": in_words(&incident.what) });
        let of = |value: fn(&Pdu) -> i64| column(seen.pdus.iter().map(value));
        json!({
            "incidents": seen.incidents.iter().map(incident).collect::<Vec<_>>(),
            "pdus": {
                "at": of(|pdu| pdu.micros),
                "stage": of(|pdu| pdu.stage as i64),
                "up": of(|pdu| i64::from(pdu.direction == Direction::Up)),
                "number": of(|pdu| pdu.number.unwrap_or(0)),
                "transmission": of(|pdu| i64::from(pdu.transmission)),
                "lost": of(|pdu| i64::from(pdu.lost)),
            },
        })
    }
}

fn in_words(mishap: &Mishap) -> String {
    match mishap {
        Mishap::RlcReset { direction, cause } => format!("RLC RESET of the sender {direction}: {cause}"),
        Mishap::RlcFailed { direction } => {
            format!("RLC {direction} failed: MaxRST RESETs were not answered")
        }
        Mishap::RlcWindow { direction, pdus } => {
            format!("window of the RLC sender {direction}: now {pdus} PDUs")
        }
        Mishap::RlcSuspended { direction, pdus } => {
            format!("RLC sender {direction}: suspended after {pdus} more PDUs")
        }
        Mishap::RlcResumed { direction } => format!("RLC sender {direction}: resumed"),
        Mishap::RlcFault { direction, fault } => {
            format!("PDU {direction} contradicts earlier PDUs: {fault}")
        }
        Mishap::RlcReestablished => "RLC re-established by RRC".to_owned(),
        Mishap::Promotion { until } => format!("the mobile waits for a dedicated channel until {until} s"),
        Mishap::RateChanged { direction, rate } => format!("channel {direction}: rate is now {rate}"),
        Mishap::Outage { direction, until } => format!("radio outage {direction} until {until} s"),
        Mishap::Handover { times } if *times == 1 => "handover to another base station".to_owned(),
        Mishap::Handover { times } => format!("{times} handovers since the last packet"),
    }
}
