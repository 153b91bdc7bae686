//! Figs. 6 to 8: packets received as a function of the bit error rate.

use airtcp_numbers::statistics::{differences, gains};
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use super::measured::{count, gain, listed, percent};
use super::setting::{BIT_ERROR_RATES, Errors, Setting, Variant, Way};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::{across, pooled_gains, trends};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};

const SENDERS: [Variant; 3] = [Variant::Reno, Variant::Etcp, Variant::EtcpEarly];
/// Packets that E-TCP and Reno-TCP received from F to M, M to F and M to M at BER 1e-3 (Table 3).
const PAPER: [(f64, f64); 3] = [(3176.0, 2624.0), (3341.0, 2722.0), (3459.0, 2735.0)];

/// The paper does not state its duration. Over this time, Reno-TCP receives about as many packets here as in Table 3.
const PAPER_SECONDS: f64 = 600.0;

/// One direction at all bit error rates, the highest first. Samples are by bit error rate, then by seed.
struct Curves {
    way: Way,
    errors: Errors,
    /// By sender, in the order of `SENDERS`.
    packets: Vec<Vec<Vec<f64>>>,
    sent: Vec<Vec<Vec<f64>>>,
}

impl Curves {
    fn run(
        effort: &Effort,
        (way, errors): (Way, Errors),
        senders: &[Variant],
        length: Duration,
    ) -> Result<Self, WorldError> {
        let setting = |sender: &Variant| {
            BIT_ERROR_RATES.map(|(_, rate)| Setting { errors, ..Setting::new(way, *sender, rate) })
        };
        let settings: Vec<_> = senders.iter().flat_map(setting).collect();
        let counts = count(effort, &settings, length)?;
        let by_sender = |samples: Vec<Vec<f64>>| {
            samples.chunks(BIT_ERROR_RATES.len()).map(<[_]>::to_vec).collect::<Vec<_>>()
        };
        Ok(Self { way, errors, packets: by_sender(counts.packets), sent: by_sender(counts.sent) })
    }

    /// Gains of E-TCP over Reno-TCP, by bit error rate, then by seed.
    fn gains(&self) -> Vec<Vec<f64>> {
        self.packets[1].iter().zip(&self.packets[0]).map(|(etcp, reno)| gains(etcp, reno)).collect()
    }

    /// Gain of E-TCP over Reno-TCP per seed, averaged over the bit error rates.
    fn pooled(&self) -> Vec<f64> {
        pooled_gains(&self.packets[1], &self.packets[0])
    }

    /// "+40.1 ± 2.0 % at 1e-3, …"
    fn listed(&self) -> String {
        let gains = self.gains();
        let names: Vec<_> = BIT_ERROR_RATES.iter().map(|(name, _)| format!("at {name}")).collect();
        listed(names.iter().map(String::as_str).zip(gains.iter().map(|gains| mean(gains))))
    }

    fn table(&self, length: Duration) -> Table {
        let errors = match self.errors {
            Errors::InTotal => "",
            Errors::OnEachRadio => ", with this BER on each radio link",
        };
        let mut table = Table::new(
            format!("{}: packets received in {} s{errors}", self.way.name(), length.as_secs_f64()),
            &[
                "BER",
                "packet loss rate",
                "Reno-TCP",
                "E-TCP",
                "gain",
                "E-TCP, first mark",
                "gain, first mark",
            ],
        );
        for (at, (name, rate)) in BIT_ERROR_RATES.into_iter().enumerate() {
            let [reno, etcp, early] = [0, 1, 2].map(|sender: usize| &self.packets[sender][at][..]);
            let setting = Setting { errors: self.errors, ..Setting::new(self.way, Variant::Reno, rate) };
            table.row([
                name.to_owned(),
                format!("{:.3} %", 100.0 * setting.loss()),
                cell(reno, 0),
                cell(etcp, 0),
                percent(&gain(etcp, reno)),
                cell(early, 0),
                percent(&gain(early, reno)),
            ]);
        }
        table
    }

    fn chart(&self, title: &str, length: Duration) -> Chart {
        let line = |sender: usize| {
            let second =
                |samples: &Vec<f64>| samples.iter().map(|packets| packets / length.as_secs_f64()).collect();
            let points: Vec<Vec<f64>> = self.packets[sender].iter().map(second).collect();
            let points = BIT_ERROR_RATES.iter().zip(&points);
            Curve::line(SENDERS[sender].name(), points.map(|((_, rate), samples)| (*rate, &samples[..])))
        };
        let (etcp, reno) = PAPER[Way::ALL.iter().position(|way| *way == self.way).unwrap_or_default()];
        Chart {
            title: title.to_owned(),
            x: Axis::new("bit error rate", Scale::Logarithmic),
            y: Axis::new("packets received per second", Scale::FromZero),
            curves: vec![
                line(1).beside([(1e-3, etcp / PAPER_SECONDS)]),
                line(0).beside([(1e-3, reno / PAPER_SECONDS)]),
                line(2),
            ],
        }
    }

    /// Growth of E-TCP's gain from the lowest to the highest bit error rate.
    fn trend(&self) -> Vec<f64> {
        let mut gains = self.gains();
        gains.reverse();
        trends(&gains)
    }

    /// E-TCP's sending rate compared with the lowest bit error rate, averaged over the other ones.
    fn slower(&self) -> Vec<f64> {
        let sent = &self.sent[1];
        let (least, worse) = (sent.last(), &sent[..sent.len() - 1]);
        let of = |least: &Vec<f64>| pooled_gains(worse, &vec![least.clone(); worse.len()]);
        least.map(of).unwrap_or_default()
    }
}

pub fn fig6(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let curves = Curves::run(effort, (Way::FixedToMobile, Errors::InTotal), &SENDERS, length)?;
    let (pooled, trend, slower) = (mean(&curves.pooled()), mean(&curves.trend()), mean(&curves.slower()));
    let early = mean(&pooled_gains(&curves.packets[2], &curves.packets[0]));
    let claim = |paper: &str, ours: String, judged| Claim {
        paper: paper.to_owned(),
        place: "§IV, Fig. 6".to_owned(),
        counts: Counts::Yes,
        ours,
        judged,
    };
    let claims = vec![
        claim(
            "“Under different values of BER, it shows that E-TCP performance is slightly better than Reno as \
             the BER is increased.”",
            format!(
                "{}; {} on average. From the lowest to the highest BER, the gain grows by {:.1} ± {:.1} \
                 times its average. The paper's own 21 % at 1e-3 is not slight.",
                curves.listed(),
                percent(&pooled),
                trend.mean,
                trend.half_width.unwrap_or(f64::INFINITY)
            ),
            Judged::all([Judged::slightly(&pooled), Judged::above_zero(&trend)]),
        ),
        claim(
            "“E-TCP allows the receiver to receive more packets since the sender was able to detect the real \
             cause of packet losses.”",
            format!(
                "{} on average; {} if E-TCP acts on the first mark. E-TCP and Reno-TCP differ only in the \
                 marks.",
                percent(&pooled),
                percent(&early)
            ),
            Judged::better(&pooled),
        ),
        claim(
            "“Thus, the sender was also able to maintain its transmission rate since it found out that the \
             packet losses were due to corruption.”",
            format!(
                "E-TCP's sending rate: {} compared with BER 1e-6, on average over the other BERs",
                percent(&slower)
            ),
            Judged::similar(&slower),
        ),
    ];
    Ok(Finding {
        tables: vec![curves.table(length)],
        charts: vec![curves.chart(
            "Goodput comparisons at different BER on data transmission from fixed to mobile host",
            length,
        )],
        claims,
        ..Finding::default()
    })
}

pub fn fig7(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let curves = Curves::run(effort, (Way::MobileToFixed, Errors::InTotal), &SENDERS, length)?;
    let pooled = mean(&curves.pooled());
    Ok(Finding {
        tables: vec![curves.table(length)],
        charts: vec![curves.chart(
            "Goodput comparisons at different BER on data transmission from mobile to fixed host",
            length,
        )],
        claims: vec![Claim {
            paper: "“It also shows that E-TCP could provide a better goodput than Reno.”".to_owned(),
            place: "§IV, Fig. 7".to_owned(),
            counts: Counts::Yes,
            ours: format!("{}; {} on average", curves.listed(), percent(&pooled)),
            judged: Judged::better(&pooled),
        }],
        ..Finding::default()
    })
}

pub fn fig8(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let run = |case, senders| Curves::run(effort, case, senders, length);
    let both = run((Way::MobileToMobile, Errors::InTotal), &SENDERS)?;
    let each = run((Way::MobileToMobile, Errors::OnEachRadio), &SENDERS)?;
    // The directions with a single radio link, for comparison.
    let one = run((Way::FixedToMobile, Errors::InTotal), &SENDERS[..2])?;
    let back = run((Way::MobileToFixed, Errors::InTotal), &SENDERS[..2])?;
    let pooled = mean(&both.pooled());
    let over = [&one, &back].map(|other| mean(&differences(&both.pooled(), &other.pooled())));
    let averages = [&one, &back, &both].map(|curves| mean(&across(&curves.gains())));
    let claims = vec![
        Claim {
            paper:
                "“In this figure, we can also see that E-TCP could provide a better goodput compared to TCP \
                    Reno.”"
                    .to_owned(),
            place: "§IV, Fig. 8".to_owned(),
            counts: Counts::Yes,
            ours: format!(
                "{}; {} on average. With these BERs on each radio link: {}; {} on average.",
                both.listed(),
                percent(&pooled),
                each.listed(),
                percent(&mean(&each.pooled()))
            ),
            judged: Judged::better(&pooled),
        },
        Claim {
            paper: "The gain is largest from mobile to mobile, averaged over all BERs".to_owned(),
            place: "Figs. 6 to 8".to_owned(),
            counts: Counts::Own("the paper says this only of BER 1e-3, in Table 3".to_owned()),
            ours: format!("average gains: {}", listed(Way::ALL.iter().map(|way| way.name()).zip(averages)),),
            judged: Judged::all(over.iter().map(Judged::above_zero)),
        },
    ];
    Ok(Finding {
        tables: vec![both.table(length), each.table(length)],
        charts: vec![both.chart(
            "Goodput comparisons at different BER on data transmission from mobile to mobile host",
            length,
        )],
        claims,
        ..Finding::default()
    })
}
