//! The chart at the top of an experiment: all senders with their intervals.
//!
//! The chart is plain HTML and CSS without a script. Lines and marks are positioned in per cent of their
//! track, so it adapts to any width, to both colour schemes, and to print.

use std::fmt::Write;

use super::table::{escape, run_list};
use crate::plot::axis::{Axis, Unit};

/// A mean and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval. `None` if there are too few values.
    pub half_width: Option<f64>,
}

/// The results of one sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sender {
    /// The name of the sender.
    pub name: String,
    /// The runs that a click displays, as indices in [`Page::runs`](super::Page::runs).
    pub runs: Vec<usize>,
    /// The goodput in kbit/s. `None` if the sender has no valid transfer.
    pub goodput: Option<Interval>,
    /// The goodput of each valid transfer in kbit/s.
    pub transfers: Vec<f64>,
    /// The gain over the reference in per cent.
    pub gain: Option<Interval>,
    /// The verdict in one word. Empty for the reference.
    pub verdict: String,
}

/// The senders of an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// The name of the reference; may be empty.
    pub against: String,
    /// The senders, from top to bottom.
    pub senders: Vec<Sender>,
}

impl Interval {
    fn ends(self) -> [f64; 2] {
        let half = self.half_width.unwrap_or_default();
        [self.mean - half, self.mean + half]
    }
}

/// A side on which an interval exceeds its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClippedSide {
    Low,
    High,
}

impl ClippedSide {
    fn clipped(interval: Interval, axis: &Axis) -> impl Iterator<Item = Self> {
        let [from, to] = interval.ends().map(|end| axis.position(end));
        let low = (from < 0.0).then_some(Self::Low);
        low.into_iter().chain((to > 1.0).then_some(Self::High))
    }

    /// The CSS class that positions the arrow.
    fn class(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

/// The lowest possible gain in per cent. An interval may extend below it.
const MIN_GAIN: f64 = -100.0;
/// The gain in per cent above which intervals are clipped. Without it, the long interval of a sender with few
/// transfers would compress the display of all others.
const CLIP_LIMIT: f64 = 200.0;

/// Maximum number of senders with rows of full height.
const MAX_TALL_ROWS: usize = 6;

impl Chart {
    fn goodput_axis(&self) -> Axis {
        let values = self.senders.iter().flat_map(|sender| {
            sender.transfers.iter().copied().chain(sender.goodput.into_iter().flat_map(Interval::ends))
        });
        Axis::from_zero("goodput (kbit/s)", Unit::None, values)
    }

    /// Returns the axis of the gains. `None` if nothing is compared.
    fn gain_axis(&self) -> Option<Axis> {
        let gains: Vec<Interval> = self.senders.iter().filter_map(|sender| sender.gain).collect();
        let [mut low, mut high] = [0.0, 0.0];
        for gain in &gains {
            let [from, to] = gain.ends();
            low = f64::min(low, from.max(MIN_GAIN));
            high = f64::max(high, to.min(CLIP_LIMIT.max(gain.mean)));
        }
        (!gains.is_empty()).then(|| {
            let axis = Axis::around("", Unit::None, [low, high]);
            Axis { caption: format!("gain over {} (%)", self.against), ..axis }
        })
    }

    /// Returns the chart as HTML.
    pub fn html(&self) -> String {
        let (goodput, gain) = (self.goodput_axis(), self.gain_axis());
        let axes: Vec<&Axis> = [&goodput].into_iter().chain(&gain).collect();
        let mut html = format!(
            "<figure class=\"chart{}\" data-measures=\"{}\">\n<div class=\"measures\"><span></span>",
            if self.senders.len() > MAX_TALL_ROWS { " dense" } else { "" },
            axes.len()
        );
        for axis in &axes {
            let _ = write!(html, "<span>{}</span>", escape(&axis.title()));
        }
        html.push_str("</div>\n<div class=\"senders\">\n");
        let best = self.best();
        for (at, sender) in self.senders.iter().enumerate() {
            self.sender(sender, best == Some(at), &goodput, gain.as_ref(), &mut html);
        }
        html.push_str("</div>\n<div class=\"measures\" aria-hidden=\"true\"><span></span>");
        for axis in &axes {
            html.push_str("<span class=\"scale\">");
            for (percent, label) in ticks(axis) {
                let _ = write!(html, "<span style=\"left:{percent:.2}%\">{label}</span>");
            }
            html.push_str("</span>");
        }
        html.push_str(
            "</div>\n<figcaption><i class=\"mean\"></i> mean <i class=\"interval\"></i> 95 % interval \
             <i class=\"beyond high\"></i> interval exceeds the axis <i class=\"one\"></i> single transfer. Click a sender to show its runs.</figcaption>\n</figure>\n",
        );
        html
    }

    /// Returns the index of the sender with the highest mean goodput. `None` for a single sender, or if no goodput is known.
    fn best(&self) -> Option<usize> {
        let means = self.senders.iter().map(|sender| sender.goodput.map(|it| it.mean)).enumerate();
        let known = means.filter_map(|(at, mean)| Some((at, mean?)));
        let best = known.rev().max_by(|(_, one), (_, other)| one.total_cmp(other));
        best.map(|(at, _)| at).filter(|_| self.senders.len() > 1)
    }

    fn sender(
        &self,
        sender: &Sender,
        is_best: bool,
        goodput_axis: &Axis,
        gain_axis: Option<&Axis>,
        html: &mut String,
    ) {
        let Sender { name, runs, goodput, transfers, gain, verdict } = sender;
        let disabled = if runs.is_empty() { " disabled" } else { "" };
        let _ = write!(
            html,
            "<button type=\"button\" class=\"sender{}\" data-runs=\"{}\" aria-pressed=\"false\"{disabled}>\
             <span class=\"name\">{}</span>",
            if is_best { " best" } else { "" },
            run_list(runs),
            escape(name)
        );
        let text = goodput.map_or_else(|| "no valid transfer".to_owned(), |it| format_interval(it, 1, false));
        measure(&text, "", *goodput, transfers, goodput_axis, html);
        if let Some(axis) = gain_axis {
            let text = match gain {
                Some(gain) => format_interval(*gain, 1, true),
                None if verdict.is_empty() => "reference".to_owned(),
                None => String::new(),
            };
            measure(&text, verdict, *gain, &[], axis, html);
        }
        html.push_str("</button>\n");
    }
}

/// Writes a text and, below it, a track with the interval.
fn measure(
    text: &str,
    verdict: &str,
    interval: Option<Interval>,
    transfers: &[f64],
    axis: &Axis,
    html: &mut String,
) {
    let title = escape(format!("{text} {verdict}").trim());
    let _ = write!(html, "<span class=\"measure\"><span class=\"said\" title=\"{title}\">{}", escape(text));
    if !verdict.is_empty() {
        let _ = write!(html, " <b>{}</b>", escape(verdict));
    }
    html.push_str("</span><span class=\"track\">");
    for (percent, label) in ticks(axis) {
        let class = if label == "0" { "zero" } else { "grid" };
        let _ = write!(html, "<i class=\"{class}\" style=\"left:{percent:.2}%\"></i>");
    }
    let percent = |value: f64| (axis.position(value) * 100.0).clamp(0.0, 100.0);
    for transfer in transfers {
        let _ = write!(html, "<i class=\"one\" style=\"left:{:.2}%\"></i>", percent(*transfer));
    }
    if let Some(interval) = interval {
        let [from, to] = interval.ends().map(percent);
        if interval.half_width.is_some() {
            let _ =
                write!(html, "<i class=\"interval\" style=\"left:{from:.2}%;width:{:.2}%\"></i>", to - from);
            for side in ClippedSide::clipped(interval, axis) {
                let _ = write!(html, "<i class=\"beyond {}\"></i>", side.class());
            }
        }
        let _ = write!(html, "<i class=\"mean\" style=\"left:{:.2}%\"></i>", percent(interval.mean));
    }
    html.push_str("</span></span>");
}

fn format_interval(Interval { mean, half_width }: Interval, digits: usize, sign: bool) -> String {
    let mean = if sign { format!("{mean:+.digits$}") } else { format!("{mean:.digits$}") };
    let mean = mean.replace('-', "−");
    half_width.map_or_else(|| mean.clone(), |half| format!("{mean} ± {half:.digits$}"))
}

/// Returns round values and their positions in per cent, few enough for the screen of a phone.
fn ticks(axis: &Axis) -> Vec<(f64, String)> {
    let ticks = axis.ticks(|_, share| share >= 0.24);
    let labelled = ticks.into_iter().filter_map(|tick| Some((axis.position(tick.at) * 100.0, tick.label?)));
    labelled.filter(|(percent, _)| (0.0..=100.0).contains(percent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(mean: f64, half: f64) -> Option<Interval> {
        Some(Interval { mean, half_width: Some(half) })
    }

    fn chart() -> Chart {
        let sender = |name: &str, goodput, gain, verdict: &str| Sender {
            name: name.to_owned(),
            runs: vec![0, 2],
            goodput,
            transfers: vec![60.0, 80.0],
            gain,
            verdict: verdict.to_owned(),
        };
        Chart {
            against: "newreno".to_owned(),
            senders: vec![
                sender("newreno", interval(70.0, 10.0), None, ""),
                sender("linux", interval(90.0, 5.0), interval(28.6, 900.0), "undecided"),
            ],
        }
    }

    /// The style of each element with this class.
    fn styles<'a>(html: &'a str, class: &str) -> Vec<&'a str> {
        let opening = format!("<i class=\"{class}\" style=\"");
        html.match_indices(&opening)
            .map(|(at, _)| html[at + opening.len()..].split('"').next().unwrap())
            .collect()
    }

    #[test]
    fn chart_positions_match_means_intervals_and_transfers() {
        let chart = chart();
        let axis = chart.goodput_axis();
        let html = chart.html();
        let percent = |value: f64| format!("{:.2}%", axis.position(value) * 100.0);
        assert_eq!(styles(&html, "mean")[0], format!("left:{}", percent(70.0)));
        assert!(
            styles(&html, "interval")[0].starts_with(&format!("left:{};width:", percent(60.0))),
            "{html}"
        );
        assert_eq!(styles(&html, "one").len(), 4);
        for text in ["70.0 ± 10.0", "+28.6 ± 900.0 <b>undecided</b>", "reference", "data-runs=\"0 2\""] {
            assert!(html.contains(text), "{text} in {html}");
        }
    }

    #[test]
    fn sender_with_highest_mean_stays_in_view() {
        let mut chart = chart();
        let best = |chart: &Chart| {
            let html = chart.html();
            html.split("<button type=\"button\" class=\"sender").position(|row| row.starts_with(" best"))
        };
        assert_eq!(best(&chart), Some(2));
        chart.senders[0].goodput = interval(90.0, 1.0);
        assert_eq!(best(&chart), Some(1), "the first of equal senders");
        chart.senders.truncate(1);
        assert_eq!(best(&chart), None);
    }

    #[test]
    fn wide_interval_is_clipped_at_axis_limits() {
        let chart = chart();
        let axis = chart.gain_axis().unwrap();
        assert!(axis.max < 1.2 * CLIP_LIMIT && axis.min > 1.5 * MIN_GAIN, "{axis:?}");
        let html = chart.html();
        let interval = styles(&html, "interval")[1];
        let numbers: Vec<f64> = interval
            .split(';')
            .map(|part| part.split(':').nth(1).unwrap().trim_end_matches('%').parse().unwrap())
            .collect();
        assert!(numbers[0] >= 0.0 && numbers[0] + numbers[1] <= 100.01, "{interval}");
        // The tracks mark both clipped ends, and the legend explains the marks.
        let (tracks, legend) = html.split_once("<figcaption>").unwrap();
        for side in ["low", "high"] {
            assert_eq!(tracks.matches(&format!("<i class=\"beyond {side}\">")).count(), 1, "{side}: {html}");
        }
        assert!(legend.contains("<i class=\"beyond high\"></i> interval exceeds the axis"), "{legend}");
    }

    #[test]
    fn chart_omits_missing_interval_and_gain() {
        let mut chart = chart();
        chart.senders.truncate(1);
        chart.senders[0].goodput = Some(Interval { mean: 70.0, half_width: None });
        let html = chart.html();
        assert!(styles(&html, "interval").is_empty() && !html.contains("gain over"), "{html}");
        assert!(html.contains(">70.0</span>"), "{html}");
    }
}
