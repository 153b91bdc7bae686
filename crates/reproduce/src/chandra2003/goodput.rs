//! Figs. 6 to 8: packets received as a function of the bit error rate.

use airtcp_numbers::statistics::{Mean, differences, gains};
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use super::measured::{Received, count, listed, packets, percent};
use super::readings::{BER_1E_6, REFERENCE};
use super::setting::Variant::{Etcp, EtcpEarly, Reno};
use super::setting::{BIT_ERROR_RATES, Ber, Case, Errors, Setting, Variant, Way};
use crate::chart::{Axis, Chart, Scale};
use crate::grid::{Grid, Series};
use crate::judge::{across, trends};
use crate::{At, Counts, Effort, Finding, Judged, Table, claim, column, mean};

const SENDERS: [Variant; 3] = [Reno, Etcp, EtcpEarly];
/// Packets that E-TCP and Reno-TCP received from F to M, M to F and M to M at BER 1e-3 (Table 3).
const PAPER: [(f64, f64); 3] = [(3176.0, 2624.0), (3341.0, 2722.0), (3459.0, 2735.0)];

/// The paper does not state its duration. Over this time, Reno-TCP receives about as many packets here as in Table 3.
const PAPER_SECONDS: f64 = 600.0;

/// The runs in one direction at all bit error rates, the highest first.
struct Curves {
    direction: Way,
    errors: Errors,
    length: Duration,
    grid: Grid<Variant, Ber, Received>,
}

impl Curves {
    fn run(
        effort: &Effort,
        (direction, errors): Case,
        senders: &[Variant],
        length: Duration,
    ) -> Result<Self, WorldError> {
        let plan = |sender, (_, rate): Ber| Ok(Setting { errors, ..Setting::new(direction, sender, rate) });
        let grid = Grid::run(senders, &BIT_ERROR_RATES, plan, |settings| count(effort, settings, length))?;
        Ok(Self { direction, errors, length, grid })
    }

    /// Gains of E-TCP over Reno-TCP, by bit error rate, then by seed.
    fn gains(&self) -> Series {
        self.grid.gains(Etcp, Reno, packets)
    }

    /// Gain of E-TCP over Reno-TCP per seed, averaged over the bit error rates.
    fn averages(&self) -> Vec<f64> {
        across(&self.gains())
    }

    fn pooled(&self) -> Mean {
        mean(&self.averages())
    }

    /// The gains at all bit error rates, such as "+40.1 ± 2.0 % at 1e-3, …".
    fn listed(&self) -> String {
        let gains = self.gains();
        let names: Vec<_> = BIT_ERROR_RATES.iter().map(|(name, _)| format!("at {name}")).collect();
        listed(names.iter().map(String::as_str).zip(gains.iter().map(|gains| mean(gains))))
    }

    fn table(&self) -> Table {
        let errors = match self.errors {
            Errors::InTotal => "",
            Errors::OnEachRadio => ", with this BER on each radio link",
        };
        let ours = |heading: &str, sender| self.grid.column(heading, sender, 0, packets);
        let gain = |sender| move |ber: &Ber| percent(&self.grid.gain(sender, Reno, *ber, packets));
        let loss = |(_, rate): &Ber| {
            let setting = Setting { errors: self.errors, ..Setting::new(self.direction, Reno, *rate) };
            format!("{:.3} %", 100.0 * setting.loss())
        };
        let seconds = self.length.as_secs_f64();
        Table::of(
            format!("{}: packets received in {seconds} s{errors}", self.direction.name()),
            [
                column("BER", |(name, _): &Ber| (*name).to_owned()),
                column("packet loss rate", loss),
                ours("Reno-TCP", Reno),
                ours("E-TCP", Etcp),
                column("gain", gain(Etcp)),
                ours("E-TCP, first mark", EtcpEarly),
                column("gain, first mark", gain(EtcpEarly)),
            ],
            BIT_ERROR_RATES,
        )
    }

    fn chart(&self, title: &str) -> Chart {
        let line = |sender: Variant| {
            let per_second = |counts: &Received| counts.packets / self.length.as_secs_f64();
            self.grid.line(sender, sender.name(), |(_, rate)| rate, per_second)
        };
        let (etcp, reno) =
            PAPER[Way::ALL.iter().position(|direction| *direction == self.direction).unwrap_or_default()];
        Chart {
            title: title.to_owned(),
            x: Axis::new("bit error rate", Scale::Logarithmic),
            y: Axis::new("packets received per second", Scale::Logarithmic),
            curves: vec![
                line(Etcp).with_paper_values([(1e-3, etcp / PAPER_SECONDS)]),
                line(Reno).with_paper_values([(1e-3, reno / PAPER_SECONDS)]),
                line(EtcpEarly),
            ],
        }
    }

    /// Growth of E-TCP's gain from the lowest to the highest bit error rate.
    fn trend(&self) -> Mean {
        let mut gains = self.gains();
        gains.reverse();
        mean(&trends(&gains))
    }

    /// Average change of E-TCP's sending rate from the lowest bit error rate to the higher ones.
    fn sending_rate_over_lowest_ber(&self) -> Mean {
        let mut others = self.grid.of(Etcp, |counts| counts.sent);
        let lowest = others.pop().unwrap_or_default();
        mean(&across(&others.iter().map(|sent| gains(sent, &lowest)).collect::<Vec<_>>()))
    }

    /// Gain of E-TCP's sending rate over Reno-TCP's, averaged over all bit error rates except the lowest.
    fn sending_rate_over_reno(&self) -> Mean {
        let mut gains = self.grid.gains(Etcp, Reno, |counts| counts.sent);
        gains.pop();
        mean(&across(&gains))
    }
}

/// Runs Fig. 6: data from a fixed to a mobile host.
pub fn fig6(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let curves = Curves::run(effort, (Way::FixedToMobile, Errors::InTotal), &SENDERS, length)?;
    let (pooled, trend) = (curves.pooled(), curves.trend());
    let (over_lowest, over_reno) = (curves.sending_rate_over_lowest_ber(), curves.sending_rate_over_reno());
    let early = curves.grid.pooled(EtcpEarly, Reno, packets);
    let claims = vec![
        claim(
            At("§IV, Fig. 6"),
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
            At("§IV, Fig. 6"),
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
            At("§IV, Fig. 6"),
            "“Thus, the sender was also able to maintain its transmission rate since it found out that the \
             packet losses were due to corruption.”",
            format!(
                "E-TCP's sending rate, averaged over BERs 1e-3 to 1e-5: {} compared with Reno-TCP, {} compared \
                 with BER 1e-6",
                percent(&over_reno),
                percent(&over_lowest)
            ),
            Judged::better(&over_reno),
        )
        .with(REFERENCE, BER_1E_6, Judged::similar(&over_lowest)),
    ];
    Ok(Finding {
        tables: vec![curves.table()],
        charts: vec![
            curves
                .chart("Goodput comparisons at different BER on data transmission from fixed to mobile host"),
        ],
        claims,
        ..Finding::default()
    })
}

/// Runs Fig. 7: data from a mobile to a fixed host.
pub fn fig7(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let curves = Curves::run(effort, (Way::MobileToFixed, Errors::InTotal), &SENDERS, length)?;
    let pooled = curves.pooled();
    Ok(Finding {
        tables: vec![curves.table()],
        charts: vec![
            curves
                .chart("Goodput comparisons at different BER on data transmission from mobile to fixed host"),
        ],
        claims: vec![claim(
            At("§IV, Fig. 7"),
            "“It also shows that E-TCP could provide a better goodput than Reno.”",
            format!("{}; {} on average", curves.listed(), percent(&pooled)),
            Judged::better(&pooled),
        )],
        ..Finding::default()
    })
}

/// Runs Fig. 8: data between two mobile hosts.
pub fn fig8(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let run = |case, senders| Curves::run(effort, case, senders, length);
    let in_total = run((Way::MobileToMobile, Errors::InTotal), &SENDERS)?;
    let on_each = run((Way::MobileToMobile, Errors::OnEachRadio), &SENDERS)?;
    // The directions with a single radio link, for comparison.
    let to_mobile = run((Way::FixedToMobile, Errors::InTotal), &SENDERS[..2])?;
    let to_fixed = run((Way::MobileToFixed, Errors::InTotal), &SENDERS[..2])?;
    let pooled = in_total.pooled();
    let excess =
        [&to_mobile, &to_fixed].map(|other| mean(&differences(&in_total.averages(), &other.averages())));
    let averages = [&to_mobile, &to_fixed, &in_total].map(Curves::pooled);
    let claims = vec![
        claim(
            At("§IV, Fig. 8"),
            "“In this figure, we can also see that E-TCP could provide a better goodput compared to TCP \
             Reno.”",
            format!(
                "{}; {} on average. With these BERs on each radio link: {}; {} on average.",
                in_total.listed(),
                percent(&pooled),
                on_each.listed(),
                percent(&on_each.pooled())
            ),
            Judged::better(&pooled),
        ),
        claim(
            At("Figs. 6 to 8"),
            "The gain is largest from mobile to mobile, averaged over all BERs",
            format!(
                "average gains: {}",
                listed(Way::ALL.iter().map(|direction| direction.name()).zip(averages)),
            ),
            Judged::all(excess.iter().map(Judged::above_zero)),
        )
        .not_counted(Counts::Own("the paper says this only of BER 1e-3, in Table 3".to_owned())),
    ];
    Ok(Finding {
        tables: vec![in_total.table(), on_each.table()],
        charts: vec![
            in_total.chart(
                "Goodput comparisons at different BER on data transmission from mobile to mobile host",
            ),
        ],
        claims,
        ..Finding::default()
    })
}
