//! Fig. 2 (§2.2): a short Timer Status Prohibit (TSP) wastes the link on copies, a long one adds delay and timeouts.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::world::WorldError;

use super::setting::{Buffers, Point, Sample, Transfer, Tsp, percent, sample};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::finding::Column;
use crate::judge::rare;
use crate::{At, Claim, Effort, Finding, Judged, Table, claim, column, mean, shown};

/// "The traffic is a 2 Mbyte TCP stream" (§5.1).
const FILE: u64 = 2_000_000;
/// "Original simulator implemented RLC on OPNET with BSD RTO emulation".
const SENDER: &str = "timer-bsd";
/// A sender that undoes spurious timeouts.
const EIFEL: &str = "timer-bsd+eifel";
/// The best sender with regard to spurious timeouts: its timer never fires. No segment is lost here.
const NEVER_FIRES: &str = "timer-bsd+min-rto=60000";
const SENDERS: [&str; 3] = [SENDER, EIFEL, NEVER_FIRES];

/// TSPs in milliseconds. TS 25.331 permits at most 1000, and §2.2 has 0 as an example.
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
    never_fires: Vec<Sample>,
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
        let never_fires = samples.split_off(2 * tsp.len());
        let eifel = samples.split_off(tsp.len());
        Ok(Self { tsp, plain: samples, eifel, never_fires })
    }

    fn last(&self) -> usize {
        self.tsp.len() - 1
    }

    /// Index of the TSP with the largest mean throughput.
    fn best(&self, curve: &[Sample]) -> usize {
        argmax(curve.iter().map(|sample| sample.mean(|t| t.kbit_per_s).mean))
    }

    /// Throughput gain of the plain sender at its optimum, compared with the TSP at this index.
    fn gain_of_optimum(&self, index: usize) -> Mean {
        mean(&gains(&at_optimum(&self.plain), &self.plain[index].throughputs()))
    }

    /// Change in throughput from the plain sender's optimum to the largest TSP if the timer never fires. This is the
    /// degradation that the link alone causes.
    fn link_change(&self) -> Mean {
        self.never_fires[self.last()].gain(&self.never_fires[self.best(&self.plain)])
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
    fn increase(&self, value: fn(&Transfer) -> f64) -> Mean {
        rare(&self.plain[self.last()].differences(&self.plain[self.best(&self.plain)], value), 1.0)
    }

    /// The verdict on the left side of Fig. 2.
    fn left_side(&self) -> Judged {
        Judged::better(&self.gain_of_optimum(0))
    }

    /// The verdict on the right side of Fig. 2.
    fn right_side(&self) -> Judged {
        Judged::all([
            Judged::better(&self.gain_of_optimum(self.last())),
            Judged::above_zero(&self.increase(|t| t.spurious)),
            Judged::similar(&self.link_change()),
        ])
    }

    /// Whether the optimum shifts to the right with Eifel.
    fn optimum_shifts(&self) -> Judged {
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

/// The place of all claims in the paper.
const HERE: At<'static> = At("§2.2, Fig. 2");

/// Cost: 81 transfers for each seed.
pub(super) fn figure_2(effort: &Effort) -> Result<Finding, WorldError> {
    let sweep = Sweep::run(effort, &CHOSEN, TSP)?;
    let others =
        OTHERS.iter().map(|unstated| Sweep::run(effort, unstated, FEW_TSP)).collect::<Result<Vec<_>, _>>()?;
    Ok(Finding {
        tables: vec![table(&sweep), swept(&sweep, &others)],
        charts: vec![chart(&sweep)],
        claims: claims(&sweep),
        remarks: vec![
            "The link itself causes most of the degradation on the right side. RLC delivers packets in \
             order, so all packets wait for one whose retransmission waits for a status report."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

fn table(sweep: &Sweep) -> Table {
    fn of<'a>(
        heading: &str,
        curve: &'a [Sample],
        digits: usize,
        value: fn(&Transfer) -> f64,
    ) -> Column<'a, usize> {
        column(heading, move |index: &usize| shown(&curve[*index].mean(value), digits))
    }
    let Sweep { tsp, plain, eifel, never_fires } = sweep;
    Table::of(
        "Throughput of 2 MB in kbit/s, timeouts and RLC counters at BLER 10 %, unlimited windows",
        [
            column("TSP", |index: &usize| format!("{} ms", tsp[*index])),
            of("BSD timer", plain, 1, |t| t.kbit_per_s),
            of("BSD timer with Eifel", eifel, 1, |t| t.kbit_per_s),
            of("timer never fires", never_fires, 1, |t| t.kbit_per_s),
            of("timeouts", plain, 2, |t| t.timeouts),
            of("spurious timeouts", plain, 2, |t| t.spurious),
            of("PDUs sent again, per new one", plain, 2, |t| t.repeated),
            of("STATUS PDUs", plain, 0, |t| t.statuses),
            of("RLC window stalls", plain, 1, |t| t.stalls),
        ],
        0..tsp.len(),
    )
}

fn swept(chosen: &Sweep, others: &[Sweep]) -> Table {
    type Row<'a> = (&'a Unstated, &'a Sweep);
    let judged = |shown: String, judged: Judged| format!("{shown}: {}", judged.name());
    Table::of(
        format!(
            "Settings that the paper does not state, with the verdicts on the claims (TSP {FEW_TSP:?} ms)"
        ),
        [
            column("BLER", |(unstated, _): &Row<'_>| unstated.bler.replace('%', " %")),
            column("window", |(unstated, _): &Row<'_>| unstated.buffers.name().to_owned()),
            column("delayed by TSP", |(unstated, _): &Row<'_>| match unstated.reading {
                Tsp::NextReport => "the next report".to_owned(),
                Tsp::EachReport => "each report".to_owned(),
            }),
            column("optimum without/with Eifel", |(_, sweep): &Row<'_>| {
                let at = |curve| sweep.tsp[sweep.best(curve)];
                format!("{} ms, {} ms", at(&sweep.plain), at(&sweep.eifel))
            }),
            column("optimum over lowest TSP", |(_, sweep): &Row<'_>| {
                judged(percent(&sweep.gain_of_optimum(0)), sweep.left_side())
            }),
            column("optimum over highest TSP", |(_, sweep): &Row<'_>| {
                judged(percent(&sweep.gain_of_optimum(sweep.last())), sweep.right_side())
            }),
            column("change without timeouts", |(_, sweep): &Row<'_>| percent(&sweep.link_change())),
            column("optimum shift with Eifel", |(_, sweep): &Row<'_>| {
                judged(format!("{} ms", shown(&sweep.shift(&sweep.eifel), 0)), sweep.optimum_shifts())
            }),
        ],
        std::iter::once((&CHOSEN, chosen)).chain(OTHERS.iter().zip(others)),
    )
}

fn claims(sweep: &Sweep) -> Vec<Claim> {
    [claims_left(sweep), claims_right(sweep)].concat()
}

/// The claims about small TSPs.
fn claims_left(sweep: &Sweep) -> Vec<Claim> {
    let Sweep { plain, .. } = sweep;
    let (first, best) = (0, sweep.best(plain));
    let copies = plain[first].minus(&plain[best], |t| t.repeated);
    let statuses = plain[first].minus(&plain[best], |t| t.statuses);
    vec![
        claim(
            HERE,
            "“small TSP causes low link utilization which degrades throughput falls (see the left side of \
             Figure 2)”",
            format!(
                "throughput at the optimum, {} ms, is {} compared with {} ms",
                TSP[best],
                percent(&sweep.gain_of_optimum(first)),
                TSP[first]
            ),
            sweep.left_side(),
        ),
        claim(
            HERE,
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
            Judged::all([Judged::above_zero(&statuses), Judged::above_zero(&copies), sweep.left_side()]),
        ),
    ]
}

/// The claims about large TSPs and the optimum.
fn claims_right(sweep: &Sweep) -> Vec<Claim> {
    let Sweep { plain, eifel, never_fires, .. } = sweep;
    let (last, best) = (sweep.last(), sweep.best(plain));
    let (spurious, timeouts) = (sweep.increase(|t| t.spurious), sweep.increase(|t| t.timeouts));
    let stalls = plain[last].minus(&plain[best], |t| t.stalls);
    vec![
        claim(
            HERE,
            "“A large TSP causes deferred notification of loss which increases the retransmission interval \
             and results in large jitter, which degrades RTO and TCP throughput.”",
            format!(
                "throughput at the optimum is {} compared with {} ms, where a transfer has {} more timeouts",
                percent(&sweep.gain_of_optimum(last)),
                TSP[last],
                shown(&timeouts, 2)
            ),
            Judged::all([Judged::better(&sweep.gain_of_optimum(last)), Judged::above_zero(&timeouts)]),
        ),
        claim(
            HERE,
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
            HERE,
            "“The throughput degradation seen on the right side of Figure 2 is caused by the spurious \
             timeouts triggered by the delay-jitter.” (Here: without timeouts, the degradation disappears.)",
            format!(
                "at {} ms, {} more spurious timeouts than at {} ms; but if the timer never fires, throughput \
                 still changes by {}",
                TSP[last],
                shown(&spurious, 2),
                TSP[best],
                percent(&sweep.link_change())
            ),
            sweep.right_side(),
        ),
        claim(
            HERE,
            "“So if all of TCP implementations have a way of STO avoidance mechanism, the optimum point will \
             be shifted toward the right side that provides larger link efficiency.”",
            format!(
                "with Eifel, the optimum is at {} ms, on average {} ms further right per seed; if the timer \
                 never fires, at {} ms and {} ms further right",
                TSP[sweep.best(eifel)],
                shown(&sweep.shift(eifel), 0),
                TSP[sweep.best(never_fires)],
                shown(&sweep.shift(never_fires), 0)
            ),
            sweep.optimum_shifts(),
        ),
    ]
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
            curve("timer never fires", &sweep.never_fires),
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
