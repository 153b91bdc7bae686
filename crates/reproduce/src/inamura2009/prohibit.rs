//! Fig. 2 (§2.2): a short Timer Status Prohibit (TSP) wastes the link on copies, a long one adds delay and timeouts.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::world::WorldError;

use super::setting::{Buffers, Point, Sample, Transfer, Tsp, percent, sample};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::rare;
use crate::mean;
use crate::{Claim, Counts, Effort, Finding, Judged, Table, shown};

/// "The traffic is a 2 Mbyte TCP stream" (§5.1).
const FILE: u64 = 2_000_000;
/// "Original simulator implemented RLC on OPNET with BSD RTO emulation".
const SENDER: &str = "timer-bsd";
/// A sender that undoes spurious timeouts.
const EIFEL: &str = "timer-bsd+eifel";
/// The best that a sender can do about spurious timeouts: its timer never fires, and no segment is lost here.
const PATIENT: &str = "timer-bsd+min-rto=60000";
const SENDERS: [&str; 3] = [SENDER, EIFEL, PATIENT];

/// In milliseconds. TS 25.331 permits at most 1000, and §2.2 has 0 as an example.
const TSP: &[u32] = &[0, 50, 100, 150, 200, 250, 300, 350, 400, 500, 700, 1000];
/// The TSPs of the second table.
const FEW_TSP: &[u32] = &[0, 150, 200, 300, 1000];

/// Settings that the paper does not state.
struct Unstated {
    bler: &'static str,
    buffers: Buffers,
    reading: Tsp,
}

const CHOSEN: Unstated = Unstated { bler: "10%", buffers: Buffers::Unlimited, reading: Tsp::NextReport };
const OTHERS: [Unstated; 3] = [
    Unstated { buffers: Buffers::Kbytes64, ..CHOSEN },
    Unstated { bler: "2%", ..CHOSEN },
    Unstated { reading: Tsp::EachReport, ..CHOSEN },
];

/// The three senders at each TSP.
struct Sweep {
    tsp: &'static [u32],
    plain: Vec<Sample>,
    eifel: Vec<Sample>,
    patient: Vec<Sample>,
}

impl Sweep {
    fn points(unstated: &Unstated, tsp: &[u32]) -> Result<Vec<Point>, WorldError> {
        let every = SENDERS.iter().flat_map(|sender| tsp.iter().map(move |tsp| (sender, tsp)));
        every
            .map(|(sender, tsp)| {
                let [prohibit, delay] = unstated.reading.settings(&format!("{tsp}ms"));
                let settings = [prohibit, delay, ("channel.errors.bler", unstated.bler.to_owned())];
                Point::new("wcdma-384-tsp", &settings, sender, FILE, unstated.buffers)
            })
            .collect()
    }

    fn run(effort: &Effort, unstated: &Unstated, tsp: &'static [u32]) -> Result<Self, WorldError> {
        let mut samples = sample(effort, &Self::points(unstated, tsp)?)?;
        let patient = samples.split_off(2 * tsp.len());
        let eifel = samples.split_off(tsp.len());
        Ok(Self { tsp, plain: samples, eifel, patient })
    }

    fn last(&self) -> usize {
        self.tsp.len() - 1
    }

    /// Index of the TSP with the largest mean throughput.
    fn best(&self, curve: &[Sample]) -> usize {
        argmax(curve.iter().map(|sample| sample.mean(|t| t.kbit_per_s).mean))
    }

    /// Throughput gain of the plain sender at its optimum, compared with the TSP at this index.
    fn above(&self, index: usize) -> Mean {
        mean(&gains(&at_optimum(&self.plain), &self.plain[index].throughputs()))
    }

    /// Change in throughput from the plain sender's optimum to the largest TSP if the timer never fires. This is the
    /// degradation that the link alone causes.
    fn patient_change(&self) -> Mean {
        self.patient[self.last()].gain(&self.patient[self.best(&self.plain)])
    }

    /// Mean shift of each seed's optimum in milliseconds, compared with the plain sender.
    fn shift(&self, curve: &[Sample]) -> Mean {
        let best = |curve: &[Sample], seed: usize| {
            f64::from(self.tsp[argmax(curve.iter().map(|sample| sample.transfers()[seed].kbit_per_s))])
        };
        let seeds = 0..self.plain[0].transfers().len();
        mean(&seeds.map(|seed| best(curve, seed) - best(&self.plain, seed)).collect::<Vec<_>>())
    }

    /// Increase of a rare count of the plain sender from its optimum to the largest TSP.
    fn more(&self, of: fn(&Transfer) -> f64) -> Mean {
        rare(&self.plain[self.last()].differences(&self.plain[self.best(&self.plain)], of), 1.0)
    }

    fn left(&self) -> Judged {
        Judged::better(&self.above(0))
    }

    fn right(&self) -> Judged {
        Judged::all([
            Judged::better(&self.above(self.last())),
            Judged::above_zero(&self.more(|t| t.spurious)),
            Judged::similar(&self.patient_change()),
        ])
    }

    fn moves(&self) -> Judged {
        Judged::above_zero(&self.shift(&self.eifel))
    }
}

/// Each seed's throughput at the TSP that is best for all other seeds together, so that no seed selects its own optimum
/// by chance.
fn at_optimum(curve: &[Sample]) -> Vec<f64> {
    let seeds = curve[0].transfers().len();
    let sum = |sample: &Sample| sample.throughputs().iter().sum::<f64>();
    (0..seeds)
        .map(|seed| {
            let own = |sample: &Sample| sample.transfers()[seed].kbit_per_s;
            let others = |sample: &Sample| if seeds > 1 { sum(sample) - own(sample) } else { own(sample) };
            own(&curve[argmax(curve.iter().map(others))])
        })
        .collect()
}

/// Index of the largest value, the first one if several are equal.
fn argmax(values: impl Iterator<Item = f64>) -> usize {
    values
        .enumerate()
        .fold((0, f64::NEG_INFINITY), |best, (i, value)| if value > best.1 { (i, value) } else { best })
        .0
}

/// Cost: 81 transfers for each seed.
pub(super) fn figure_2(effort: &Effort) -> Result<Finding, WorldError> {
    let sweep = Sweep::run(effort, &CHOSEN, TSP)?;
    let others =
        OTHERS.iter().map(|unstated| Sweep::run(effort, unstated, FEW_TSP)).collect::<Result<Vec<_>, _>>()?;
    let Sweep { plain, eifel, patient, .. } = &sweep;

    let mut table = Table::new(
        "Throughput of 2 MB in kbit/s, timeouts and RLC counters at BLER 10 %, unlimited windows",
        &[
            "TSP",
            "BSD timer",
            "BSD timer with Eifel",
            "timer never fires",
            "timeouts",
            "spurious timeouts",
            "PDUs sent again, per new one",
            "STATUS PDUs",
            "RLC window stalls",
        ],
    );
    for (i, tsp) in TSP.iter().enumerate() {
        table.row([
            format!("{tsp} ms"),
            shown(&plain[i].mean(|t| t.kbit_per_s), 1),
            shown(&eifel[i].mean(|t| t.kbit_per_s), 1),
            shown(&patient[i].mean(|t| t.kbit_per_s), 1),
            shown(&plain[i].mean(|t| t.timeouts), 2),
            shown(&plain[i].mean(|t| t.spurious), 2),
            shown(&plain[i].mean(|t| t.repeated), 2),
            shown(&plain[i].mean(|t| t.statuses), 0),
            shown(&plain[i].mean(|t| t.stalls), 1),
        ]);
    }
    let mut swept = Table::new(
        format!(
            "Settings that the paper does not state, with the verdicts on the claims (TSP {FEW_TSP:?} ms)"
        ),
        &[
            "BLER",
            "window",
            "delayed by TSP",
            "optimum without/with Eifel",
            "optimum over lowest TSP",
            "optimum over highest TSP",
            "change without timeouts",
            "optimum shift with Eifel",
        ],
    );
    for (unstated, sweep) in std::iter::once((&CHOSEN, &sweep)).chain(OTHERS.iter().zip(&others)) {
        let at = |curve| sweep.tsp[sweep.best(curve)];
        swept.row([
            unstated.bler.replace('%', " %"),
            unstated.buffers.name().to_owned(),
            match unstated.reading {
                Tsp::NextReport => "the next report",
                Tsp::EachReport => "each report",
            }
            .to_owned(),
            format!("{} ms, {} ms", at(&sweep.plain), at(&sweep.eifel)),
            format!("{}: {}", percent(&sweep.above(0)), sweep.left().name()),
            format!("{}: {}", percent(&sweep.above(sweep.last())), sweep.right().name()),
            percent(&sweep.patient_change()),
            format!("{} ms: {}", shown(&sweep.shift(&sweep.eifel), 0), sweep.moves().name()),
        ]);
    }

    let (first, last, best) = (0, sweep.last(), sweep.best(plain));
    let (spurious, timeouts) = (sweep.more(|t| t.spurious), sweep.more(|t| t.timeouts));
    let copies = plain[first].minus(&plain[best], |t| t.repeated);
    let statuses = plain[first].minus(&plain[best], |t| t.statuses);
    let stalls = plain[last].minus(&plain[best], |t| t.stalls);
    let claim = |paper: &str, ours, judged| Claim {
        paper: paper.to_owned(),
        place: "§2.2, Fig. 2".to_owned(),
        counts: Counts::Yes,
        ours,
        judged,
    };
    let claims = vec![
        claim(
            "“small TSP causes low link utilization which degrades throughput falls (see the left side of \
             Figure 2)”",
            format!(
                "throughput at the optimum, {} ms, is {} compared with {} ms",
                TSP[best],
                percent(&sweep.above(first)),
                TSP[first]
            ),
            sweep.left(),
        ),
        claim(
            "“When TSP is small, many STATUS PDUs are generated and loss notification is quick, while the \
             STATUS PDUs themselves and multiple retransmissions of the same PDU decrease the effective link \
             bandwidth, vice versa.”",
            format!(
                "at {} ms, {} more STATUS PDUs than at {} ms, and {} more PDU retransmissions per new PDU",
                TSP[first],
                shown(&statuses, 0),
                TSP[best],
                shown(&copies, 2)
            ),
            Judged::all([Judged::above_zero(&statuses), Judged::above_zero(&copies), sweep.left()]),
        ),
        claim(
            "“A large TSP causes deferred notification of loss which increases the retransmission interval \
             and results in large jitter, which degrades RTO and TCP throughput.”",
            format!(
                "throughput at the optimum is {} compared with {} ms, where a transfer has {} more timeouts",
                percent(&sweep.above(last)),
                TSP[last],
                shown(&timeouts, 2)
            ),
            Judged::all([Judged::better(&sweep.above(last)), Judged::above_zero(&timeouts)]),
        ),
        claim(
            "“If TSP is too large, PDU flow stops due to a lack of acknowledgments …”",
            format!(
                "at {} ms, the RLC window is full {} more times than at {} ms",
                TSP[last],
                shown(&stalls, 1),
                TSP[best]
            ),
            Judged::above_zero(&stalls),
        ),
        claim(
            "“The throughput degradation seen on the right side of Figure 2 is caused by the spurious \
             timeouts triggered by the delay-jitter.” (Here: without timeouts, the \
             degradation disappears.)",
            format!(
                "at {} ms, {} more spurious timeouts than at {} ms; but if the timer never fires, throughput \
                 still changes by {}",
                TSP[last],
                shown(&spurious, 2),
                TSP[best],
                percent(&sweep.patient_change())
            ),
            sweep.right(),
        ),
        claim(
            "“So if all of TCP implementations have a way of STO avoidance mechanism, the optimum point will \
             be shifted toward the right side that provides larger link efficiency.”",
            format!(
                "with Eifel, the optimum is at {} ms, on average {} ms further right per seed; if the timer \
                 never fires, at {} ms and {} ms further right",
                TSP[sweep.best(eifel)],
                shown(&sweep.shift(eifel), 0),
                TSP[sweep.best(patient)],
                shown(&sweep.shift(patient), 0)
            ),
            sweep.moves(),
        ),
    ];
    let remarks = vec![
        "The link itself causes most of the degradation on the right side. RLC delivers packets in order, so \
         all packets wait for one whose retransmission waits for a status report."
            .to_owned(),
    ];
    let charts = vec![chart(&sweep)];
    Ok(Finding { tables: vec![table, swept], charts, claims, remarks, ..Finding::default() })
}

fn chart(sweep: &Sweep) -> Chart {
    let curve = |name: &str, samples: &[Sample]| {
        let throughputs: Vec<_> = samples.iter().map(Sample::throughputs).collect();
        let xs = sweep.tsp.iter().map(|tsp| f64::from(*tsp));
        Curve::line(name, xs.zip(throughputs.iter().map(Vec::as_slice)))
    };
    Chart {
        title: "Throughput versus Timer Status Prohibit".to_owned(),
        x: Axis::new("Timer Status Prohibit, ms", Scale::FromZero),
        y: Axis::new("TCP throughput, kbit/s", Scale::FromZero),
        curves: vec![
            curve("BSD timer", &sweep.plain),
            curve("BSD timer with Eifel", &sweep.eifel),
            curve("timer never fires", &sweep.patient),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argmax_returns_first_of_equal_maxima() {
        assert_eq!(argmax([1.0, 3.0, 3.0, 2.0].into_iter()), 1);
    }
}
