//! Output of a fitted path as a scenario, with schedules for values that change.

use std::fmt::Write;

use airwire::direction::PerDirection;
use airwire::time::{Duration, Instant};
use airwire::units::exact_time;

use crate::{Bound, Burst, Fitted, FittedDirection, MeasuredRate, PiecewiseConstant};

/// A scenario, and a schedule for each direction that changes with time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedFiles {
    /// Text of the scenario.
    pub scenario: String,
    /// File name and text of each schedule.
    pub schedules: Vec<(String, String)>,
}

/// Smaller loss rates are omitted.
const RARE_LOSS: f64 = 1e-6;
/// Smaller shares of reordered or duplicated packets are omitted.
const RARE_SHARE: f64 = 1e-3;

/// Creates the files of a path named `name`. `description` is its one-line description.
pub fn files(fitted: &Fitted, name: &str, description: &str) -> FittedFiles {
    let mut schedules = Vec::new();
    let links = PerDirection::from_fn(|direction| {
        let fitted_direction = &fitted.directions[direction];
        let schedule = schedule(fitted_direction, fitted.duration).map(|text| {
            let file = format!("{name}-{direction}.csv");
            schedules.push((file.clone(), text));
            file
        });
        link(fitted_direction, schedule.as_deref())
    });
    let mut text = format!("schema = 1\ndescription = {description:?}\n");
    // In both directions, losses come after the link, because lost packets have used transmission time.
    let up = stages(&fitted.directions.up);
    let down = stages(&fitted.directions.down);
    for (kind, settings) in up.into_iter().rev() {
        let _ = write!(text, "\n[[stage]]\nkind = \"{kind}\"\nname = \"{kind}-up\"\nup = {settings}\n");
    }
    let PerDirection { down: link_down, up: link_up } = links;
    let _ =
        write!(text, "\n[[stage]]\nkind = \"link\"\nname = \"path\"\ndown = {link_down}\nup = {link_up}\n");
    for (kind, settings) in down {
        let _ = write!(text, "\n[[stage]]\nkind = \"{kind}\"\nname = \"{kind}-down\"\ndown = {settings}\n");
    }
    FittedFiles { scenario: text, schedules }
}

/// The stages after the link, in the order in which packets pass them.
fn stages(direction: &FittedDirection) -> Vec<(&'static str, String)> {
    let mut stages = Vec::new();
    let share = direction.losses.share;
    if share > RARE_LOSS {
        let settings = match direction.losses.burst {
            None => format!("{{ model = \"uniform\", per = {share:.3e} }}"),
            Some(Burst::Packets(length)) => {
                format!("{{ model = \"gilbert-elliott\", mean = {share:.3e}, burst = {length:.2} }}")
            }
            // Ten steps per burst. A chain in time loses all packets during a burst.
            Some(Burst::Time(lasts, share)) => {
                let (step, lasts) = (rounded(lasts / 10), rounded(lasts));
                format!(
                    "{{ model = \"gilbert-elliott\", mean = {share:.3e}, burst = \"{lasts}\", step = \"{step}\" }}"
                )
            }
        };
        stages.push(("loss", settings));
    }
    if let Some(overtaken) = direction.overtaken.filter(|overtaken| overtaken.share >= RARE_SHARE) {
        let late = rounded(overtaken.late.max(Duration::from_micros(1)));
        stages.push(("reorder", format!("{{ chance = {:.3e}, time = \"{late}\" }}", overtaken.share)));
    }
    if direction.copied >= RARE_SHARE {
        stages.push(("duplicate", format!("{{ chance = {:.3e} }}", direction.copied)));
    }
    stages
}

fn link(direction: &FittedDirection, schedule: Option<&str>) -> String {
    let mut keys = Vec::new();
    if let Some(file) = schedule {
        keys.push(format!("follow = {file:?}, loop = true"));
    }
    if let Some(rate) = constant_rate(direction) {
        keys.push(format!("rate = \"{rate}\""));
    }
    if let Some(delay) = direction.delay.as_constant() {
        keys.push(format!("delay = \"{}\"", rounded(delay)));
    }
    if !direction.jitter.is_zero() {
        keys.push(format!("jitter = \"{}\"", rounded(direction.jitter)));
    }
    match direction.losses.bound {
        Some(Bound::Packets(packets)) => keys.push(format!("queue = {{ packets = {packets} }}")),
        Some(Bound::Bytes(size)) => keys.push(format!("queue = {{ bytes = \"{size}\" }}")),
        None => {}
    }
    format!("{{ {} }}", keys.join(", "))
}

fn constant_rate(direction: &FittedDirection) -> Option<String> {
    let rate = direction.rate.as_ref()?.over_time.as_constant()?;
    Some(rate.to_string())
}

/// Rounds to microseconds, which is the accuracy of captures.
fn rounded(time: Duration) -> String {
    let micros = (time.as_nanos() + 500) / 1000;
    exact_time(Duration::from_micros(micros.max(u64::from(!time.is_zero()))))
}

/// The values that change with time. The last line is the end of the recording, where the schedule repeats.
fn schedule(direction: &FittedDirection, duration: Duration) -> Option<String> {
    let rates = direction.rate.as_ref().map(|MeasuredRate { over_time, .. }| over_time);
    let rates = rates.filter(|rates| rates.as_constant().is_none());
    let delays = Some(&direction.delay).filter(|delays| delays.as_constant().is_none());
    let mut times: Vec<Instant> = times(rates).chain(times(delays)).collect();
    times.sort_unstable();
    times.dedup();
    let end = Instant::ZERO + duration;
    times.retain(|at| *at < end);
    if times.is_empty() {
        return None;
    }
    let rate = |at| rates.map(|rates| rates.at(at).as_bits_per_second() as f64 / 1e3);
    let delay = |at| delays.map(|delays| delays.at(at).as_nanos() as f64 / 1e6);
    let mut text = "time ms".to_owned();
    text += if rates.is_some() { ",rate kbit" } else { "" };
    text += if delays.is_some() { ",delay ms" } else { "" };
    text.push('\n');
    for at in times.into_iter().chain([end]) {
        let _ = write!(text, "{:.3}", at.as_nanos() as f64 / 1e6);
        for value in [rate(at), delay(at)].into_iter().flatten() {
            let _ = write!(text, ",{value:.3}");
        }
        text.push('\n');
    }
    Some(text)
}

fn times<T: Copy + PartialEq>(values: Option<&PiecewiseConstant<T>>) -> impl Iterator<Item = Instant> {
    values.into_iter().flat_map(|values| values.pieces().iter().map(|(from, _)| *from))
}
