//! Events inside the path: the PDUs of radio links, incidents in stages, and the packets that hosts send and
//! receive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airlink::packet::Direction;
use airlink::stage::{Incident, IncidentKind, RadioPdu, Technology};
use airtcp_report::html::columns::column;
use airtcp_sim::world::{Observer, Passage};
use serde_json::{Value, json};

/// The recorded events, which the world adds and the run reads at the end.
#[derive(Clone, Default)]
pub(crate) struct PathEvents(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    incidents: Vec<Incident>,
    pdus: Vec<Pdu>,
    /// Numbers of data PDUs in the order of their first transmissions, by stage, bearer, direction, epoch and
    /// sequence number.
    numbers: BTreeMap<(usize, usize, Direction, u32, u32), i64>,
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

/// Maximum number of PDUs and of incidents, enough for two hours of a busy bearer.
const MAX_EVENTS: usize = 2_000_000;
/// Maximum number of packets in ladder diagrams, which take about 40 MB.
const MAX_PASSAGES: usize = 500_000;

impl Observer for PathEvents {
    fn passed(&mut self, passage: &Passage) {
        let mut recorded = self.lock();
        if recorded.passages.len() < MAX_PASSAGES {
            recorded.passages.push(*passage);
        }
    }

    fn incident(&mut self, incident: &Incident) {
        let mut recorded = self.lock();
        if recorded.incidents.len() < MAX_EVENTS {
            recorded.incidents.push(*incident);
        }
    }

    fn pdu(&mut self, pdu: &RadioPdu) {
        let mut recorded = self.lock();
        if recorded.pdus.len() >= MAX_EVENTS {
            return;
        }
        let number = pdu.sequence_number().map(|sn| {
            let Recorded { numbers, last, .. } = &mut *recorded;
            let key = (pdu.stage, pdu.bearer, pdu.direction, pdu.epoch, sn);
            // Sequence numbers of LTE and NR wrap within an epoch.
            let is_new = pdu.transmission == 1 && !matches!(pdu.technology, Technology::Umts { .. });
            match numbers.get(&key) {
                Some(number) if !is_new => *number,
                _ => {
                    let next = last.entry((pdu.stage, pdu.direction)).or_default();
                    *next += 1;
                    numbers.insert(key, *next);
                    *next
                }
            }
        });
        recorded.pdus.push(Pdu {
            micros: (pdu.at.as_nanos() / 1000) as i64,
            stage: pdu.stage,
            direction: pdu.direction,
            number,
            transmission: pdu.transmission,
            lost: pdu.lost,
        });
    }
}

impl PathEvents {
    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the packets of a flow, in the order in which they left their hosts.
    pub(crate) fn passages(&self, flow: usize) -> Vec<Passage> {
        let recorded = self.lock();
        let mut passages: Vec<_> =
            recorded.passages.iter().filter(|passage| passage.flow == flow).copied().collect();
        passages.sort_by_key(|passage| passage.sent);
        passages
    }

    /// Returns the PDUs as columns for the page's script, and the incidents as text.
    pub(crate) fn json(&self, stages: &[String]) -> Value {
        let recorded = self.lock();
        let name = |stage: usize| stages.get(stage).map_or("", String::as_str);
        let incident = |Incident { at, stage, kind }: &Incident| json!({ "at": at.as_nanos() / 1000, "stage": name(*stage), "text": describe(kind) });
        let pdu_column = |value: fn(&Pdu) -> i64| column(recorded.pdus.iter().map(value));
        json!({
            "incidents": recorded.incidents.iter().map(incident).collect::<Vec<_>>(),
            "pdus": {
                "at": pdu_column(|pdu| pdu.micros),
                "stage": pdu_column(|pdu| pdu.stage as i64),
                "up": pdu_column(|pdu| i64::from(pdu.direction == Direction::Up)),
                "number": pdu_column(|pdu| pdu.number.unwrap_or(0)),
                "transmission": pdu_column(|pdu| i64::from(pdu.transmission)),
                "lost": pdu_column(|pdu| i64::from(pdu.lost)),
            },
        })
    }
}

fn describe(kind: &IncidentKind) -> String {
    match kind {
        IncidentKind::RlcReset { direction, cause } => {
            format!("RLC RESET of the sender {direction}: {cause}")
        }
        IncidentKind::RlcFailed { direction } => {
            format!("RLC {direction} failed: MaxRST RESETs were not answered")
        }
        IncidentKind::RlcWindow { direction, pdus } => {
            format!("window of the RLC sender {direction}: now {pdus} PDUs")
        }
        IncidentKind::RlcSuspended { direction, pdus } => {
            format!("RLC sender {direction}: suspended after {pdus} more PDUs")
        }
        IncidentKind::RlcResumed { direction } => format!("RLC sender {direction}: resumed"),
        IncidentKind::RlcFault { direction, fault } => {
            format!("PDU {direction} contradicts earlier PDUs: {fault}")
        }
        IncidentKind::RadioLinkFailure { direction, until } => {
            format!("radio link failure {direction}, re-established at {until} s")
        }
        IncidentKind::HandoverCommand { until } => format!("handover to another cell until {until} s"),
        IncidentKind::RlcReestablished => "RLC re-established by RRC".to_owned(),
        IncidentKind::Promotion { until } => {
            format!("the mobile waits for a dedicated channel until {until} s")
        }
        IncidentKind::RateChanged { direction, rate } => format!("channel {direction}: rate is now {rate}"),
        IncidentKind::Outage { direction, until } => format!("radio outage {direction} until {until} s"),
        IncidentKind::Handover { times } if *times == 1 => "handover to another base station".to_owned(),
        IncidentKind::Handover { times } => format!("{times} handovers since the last packet"),
    }
}
