//! Executes a run, and collects everything that the page shows about it.

use std::fmt::Write;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aircaptures::Capture;
use airlink::capture::{InMemory, Tap};
use airlink::packet::Direction;
use airlink::path::{FIXED, MOBILE};
use airtcp::recovery::Decision;
use airtcp::{DecisionLine, SenderSpec};
use airtcp_analyze::trace::{Fate, Loss, Trace};
use airtcp_analyze::{ConnectionFindings, Traces};
use airtcp_report::html::{Run as ReportRun, decisions};
use airtcp_sim::run::{self, Report, Until};
use airtcp_sim::world::{Dropped, Watch, World};
use airwire::time::Instant;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::ladder::Ladder;
use crate::path_events::PathEvents;
use crate::request::CheckedSetup;
use crate::{Limits, OnProgress, Progress, Trouble};

/// Data of a displayed run for later requests of the page.
pub(crate) struct StoredRun {
    /// The capture as a pcap file.
    pub(crate) capture: Arc<[u8]>,
    /// The decision log.
    pub(crate) log: String,
    pub(crate) flows: Vec<FlowDecisions>,
}

impl StoredRun {
    /// Returns the approximate memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let decisions: usize = self.flows.iter().map(|flow| flow.decisions.len()).sum();
        (self.capture.len() + self.log.len() + decisions * size_of::<Decision>()) as u64
    }
}

/// The decisions of a sender.
pub(crate) struct FlowDecisions {
    pub(crate) sender: SenderSpec,
    pub(crate) decisions: Vec<Decision>,
    /// Time at which its first packet left, in nanoseconds. The graphs count from this time.
    pub(crate) origin: i64,
}

/// Steps of the world between two progress reports.
const STEPS_PER_REPORT: u32 = 500;
/// Maximum size of a capture in bytes. It grows by doubling, and a 32-bit module panics at 2 GiB.
const MAX_CAPTURE: u64 = 1_000_000_000;

/// Runs these senders of the setup. Several senders share one path.
pub(crate) fn run(
    checked: &CheckedSetup,
    senders: &[usize],
    limits: Limits,
    progress: OnProgress<'_>,
) -> Result<(Value, StoredRun), Vec<Trouble>> {
    let setup = checked.with_senders(senders)?;
    let mut plan = setup.run(checked.scenario.clone(), checked.seed);
    for flow in &mut plan.flows {
        flow.watch = Watch::Decisions;
    }
    let side = if setup.direction == Direction::Down { FIXED } else { MOBILE };
    let (capture, events) = (SharedCapture::default(), PathEvents::default());
    let prepare = |world: &mut World| {
        world.limit_memory(limits.packets, limits.records);
        world.tap(side, capture.clone());
        world.observe(events.clone());
    };
    let mut reporter = ProgressReporter::new(plan.until, progress);
    let max_size = limits.stored.min(MAX_CAPTURE);
    let result = run::run_stoppable(&plan, prepare, |world| {
        reporter.step(world);
        if capture.size() > max_size { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let (report, mut world) = result.map_err(|error| vec![Trouble::new("run", 0, error)])?;
    if capture.size() > max_size {
        let message = format!(
            "out of memory at {} s: the page has no room for a capture of more than {:.1} MB; shorten the run, or remove senders",
            world.now(),
            max_size as f64 / 1e6,
        );
        return Err(vec![Trouble::new("run", 0, message)]);
    }
    let stages: Vec<String> = world.path().stage_names().map(str::to_owned).collect();
    let capture = capture.take();
    let logs: Vec<String> = (0..world.flows()).map(|flow| log(&mut world, flow)).collect();
    let mut traces = traces(&capture)?.into_iter();
    let (mut flows, mut flow_decisions) = (Vec::new(), Vec::new());
    for (flow, sender) in setup.recipes.iter().enumerate() {
        let (findings, mut trace) = traces.next().unwrap_or_default();
        let decisions = world.decisions(flow).to_vec();
        let losses = world.losses(flow).as_slice();
        add_log_and_losses(&mut trace, &logs[flow], losses);
        let facts = facts(&report, flow, findings.as_ref());
        let name =
            if report.flows.len() > 1 { format!("{sender}, flow {}", flow + 1) } else { sender.to_string() };
        let origin = trace.origin;
        flow_decisions.push(FlowDecisions { sender: sender.clone(), decisions, origin });
        let lost: Vec<Value> = losses.iter().map(|dropped| lost(dropped, origin, &stages)).collect();
        let ladder = Ladder { direction: setup.direction, stages: stages.len(), origin };
        let packets = ladder.columns(&events.passages(flow));
        flows.push(
            json!({ "run": ReportRun { name, facts, trace }.data(), "lost": lost, "packets": packets }),
        );
    }
    let log = logs.concat();
    let json = json!({
        "digest": sha256(&log),
        "report": report,
        "flows": flows,
        "below": events.json(&stages),
    });
    Ok((json, StoredRun { capture, log, flows: flow_decisions }))
}

/// Reports the progress of a run.
pub(crate) struct ProgressReporter<'a> {
    until: Until,
    steps: u32,
    progress: OnProgress<'a>,
}

impl<'a> ProgressReporter<'a> {
    pub(crate) fn new(until: Until, progress: OnProgress<'a>) -> Self {
        Self { until, steps: 0, progress }
    }

    pub(crate) fn step(&mut self, world: &World) {
        self.steps += 1;
        if self.steps < STEPS_PER_REPORT {
            return;
        }
        self.steps = 0;
        let seconds = world.now().as_secs_f64();
        let share = match self.until {
            Until::At(at) => seconds / at.as_secs_f64(),
            // The run ends with the last byte, or earlier at the time limit.
            Until::Complete(limit) => {
                let flows = (0..world.flows()).map(|flow| world.delivered_fraction(flow));
                flows.fold(1.0, f64::min).max(seconds / limit.as_secs_f64())
            }
        };
        (self.progress)(Progress { share: share.min(1.0), seconds });
    }
}

/// A capture that the world fills. The run reads it at the end.
#[derive(Clone, Default)]
struct SharedCapture(Arc<Mutex<InMemory>>);

impl Tap for SharedCapture {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.lock().packet(at, packet);
    }
}

impl SharedCapture {
    fn lock(&self) -> MutexGuard<'_, InMemory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn size(&self) -> u64 {
        self.lock().size() as u64
    }

    fn take(&self) -> Arc<[u8]> {
        std::mem::take(&mut *self.lock()).into_octets().into()
    }
}

/// Formats the decisions of a flow as `airtcp sim --decisions` writes them, with its number if there are
/// several flows.
fn log(world: &mut World, flow: usize) -> String {
    let number = (world.flows() > 1).then_some(flow as u64 + 1);
    let mut log = String::new();
    for decision in world.decisions(flow) {
        let line = serde_json::to_string(&DecisionLine::new(decision, 0.0, number));
        log.push_str(&line.unwrap_or_default());
        log.push('\n');
    }
    log
}

fn sha256(log: &str) -> String {
    Sha256::digest(log.as_bytes()).iter().fold(String::new(), |mut digest, byte| {
        let _ = write!(digest, "{byte:02x}");
        digest
    })
}

/// Analyses a capture of the senders' device. Returns the findings and the trace of the data direction of
/// each flow, in the order of the flows.
fn traces(capture: &Arc<[u8]>) -> Result<Vec<(Option<ConnectionFindings>, Trace)>, Vec<Trouble>> {
    let mut capture = Capture::of("the run", Cursor::new(capture.clone()))
        .map_err(|error| vec![Trouble::new("run", 0, error)])?;
    let mut found = Vec::new();
    airtcp_analyze::read(&mut capture, Traces::All, &mut |finished| {
        let [data, _] = finished.ended.traces.unwrap_or_default();
        found.push((finished.number, finished.ended.findings, data));
    });
    found.sort_by_key(|(number, ..)| *number);
    Ok(found.into_iter().map(|(_, findings, trace)| (Some(findings), trace)).collect())
}

/// Adds data that a capture does not contain: the sender's decisions, and the cause of each packet loss.
fn add_log_and_losses(trace: &mut Trace, log: &str, losses: &[Dropped]) {
    let longest = trace.segments.iter().map(|segment| segment.end - segment.start).max().unwrap_or(1);
    decisions::merge_log(trace, log, 0, longest as f64);
    let origin = trace.origin;
    for dropped in losses {
        let Some(cause) = dropped.cause() else { continue };
        let at = dropped.sent.as_nanos() as i64 - origin;
        let from = trace.segments.partition_point(|segment| segment.at < at);
        let sent = trace.segments[from..].iter_mut().take_while(|segment| segment.at == at);
        for segment in sent.filter(|segment| segment.start == dropped.offset) {
            segment.fate = Fate::Lost(Loss::Airlink(cause));
        }
    }
}

fn facts(report: &Report, flow: usize, findings: Option<&ConnectionFindings>) -> Vec<(String, String)> {
    let Some(result) = report.flows.get(flow) else { return Vec::new() };
    let mut facts = findings.map(|findings| findings.directions[0].rows()).unwrap_or_default();
    let goodput = airtcp_numbers::units::show_rate(result.goodput_bit_per_s);
    facts.retain(|(name, _)| name != "goodput");
    facts.insert(0, ("goodput".to_owned(), format!("{goodput}, measured at the receiving application")));
    if let Some(seconds) = result.took_seconds {
        facts.insert(1, ("duration".to_owned(), format!("{seconds:.3} s")));
    }
    if let Some(why) = &result.ended {
        facts.insert(1, ("ended".to_owned(), why.clone()));
    }
    facts.extend(result.notices.iter().map(|notice| ("missing".to_owned(), notice.clone())));
    facts
}

/// Formats a row of the list of losses. Its time is in microseconds on the time axis of the graphs.
fn lost(dropped: &Dropped, origin: i64, stages: &[String]) -> Value {
    let at = (dropped.at.as_nanos() as i64 - origin) / 1000;
    let stage = dropped.stage.and_then(|stage| stages.get(stage)).map_or("at the receiver", String::as_str);
    json!({
        "at": at,
        "offset": dropped.offset,
        "length": dropped.len,
        "copy": dropped.copy,
        "stage": stage,
        "why": dropped.why.name(),
        "cause": dropped.why.cause_name(),
    })
}
