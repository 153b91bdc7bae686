//! The systems of Fig. 5, represented by their timers, on the path of §5.2.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::setting::{Buffers, Point, Sample, Tsp, max_dat, sample};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::pooled_gains;
use crate::{Effort, Table, mean};

/// "FTP was used to transfer 1 Mbyte": 2^20 bytes, because the same sentence has "64 Kbyte buffers".
pub(super) const FILE: u64 = 1 << 20;
/// "10 FTP transfers at 4 BLER values".
pub(super) const TRANSFERS: f64 = 10.0;
/// Block error rates in percent.
pub(super) const BLER: [u32; 4] = [1, 2, 5, 10];
/// "Packet loss was prevented by setting MAX DAT to 10."
const MAX_DAT: u32 = 10;
/// "by setting TSP to 500 ms. which is larger than RTT"
const TSP: &str = "500ms";

/// A sender of Figs. 5 to 7.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    FreeBsd22,
    FreeBsd45,
    Linux24,
    Linux24Eifel,
    Solaris,
    Linux22,
    /// Linux 2.4 with RFC 3522's Eifel.
    Linux24Rfc,
    /// Linux 2.2 with BSD's minimum RTO.
    Linux22OneSecond,
    FreeBsd22Eifel,
    FreeBsd45Eifel,
    SolarisEifel,
    /// A sender whose timer never fires.
    NeverFires,
}

impl System {
    /// The systems of Fig. 5 in its order, without Windows XP, whose timer is unknown.
    pub(super) const ALL: [Self; 6] =
        [Self::FreeBsd22, Self::FreeBsd45, Self::Linux24Eifel, Self::Linux24, Self::Solaris, Self::Linux22];

    pub(super) const fn recipe(self) -> &'static str {
        match self {
            Self::FreeBsd22 => "timer-freebsd22",
            Self::FreeBsd45 => "timer-freebsd45",
            Self::Linux24 => "timer-linux24",
            Self::Linux24Eifel => "timer-linux24+eifel-linux",
            Self::Linux24Rfc => "timer-linux24+eifel",
            Self::Solaris => "timer-solaris",
            Self::Linux22 => "timer-linux22",
            Self::Linux22OneSecond => "timer-linux22+min-rto=1000",
            Self::FreeBsd22Eifel => "timer-freebsd22+eifel-linux",
            Self::FreeBsd45Eifel => "timer-freebsd45+eifel-linux",
            Self::SolarisEifel => "timer-solaris+eifel-linux",
            Self::NeverFires => "timer-bsd+min-rto=60000",
        }
    }

    /// The paper's name for the system, if it has one.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::FreeBsd22 => "FreeBSD2.2.8",
            Self::FreeBsd45 => "FreeBSD4.5",
            Self::Linux24 => "Linux2.4-Eifel",
            Self::Linux24Eifel => "Linux2.4+Eifel",
            Self::Linux24Rfc => "Linux2.4, RFC 3522 Eifel",
            Self::Solaris => "Solaris8",
            Self::Linux22 => "Linux2.2",
            Self::Linux22OneSecond => "Linux2.2, minimum RTO 1 s",
            Self::FreeBsd22Eifel => "FreeBSD2.2.8+Eifel",
            Self::FreeBsd45Eifel => "FreeBSD4.5+Eifel",
            Self::SolarisEifel => "Solaris8+Eifel",
            Self::NeverFires => "timer never fires",
        }
    }
}

/// Samples by sender and BLER.
pub(super) struct SystemRuns {
    senders: Vec<System>,
    samples: Vec<Sample>,
}

impl SystemRuns {
    pub(super) fn run(effort: &Effort, senders: &[System]) -> Result<Self, WorldError> {
        Self::run_with_tsp(effort, senders, Tsp::NextReport)
    }

    pub(super) fn run_with_tsp(
        effort: &Effort,
        senders: &[System],
        meaning: Tsp,
    ) -> Result<Self, WorldError> {
        let points = senders
            .iter()
            .flat_map(|sender| BLER.map(|bler| (sender, bler)))
            .map(|(sender, bler)| {
                let [prohibit, delay] = meaning.settings(TSP);
                let settings = [
                    ("channel.errors.bler", format!("{bler}%")),
                    prohibit,
                    delay,
                    ("sender.discard.max_dat", max_dat(MAX_DAT).to_string()),
                ];
                Point::new("wcdma-384-jitter", &settings, sender.recipe(), FILE, Buffers::Kbytes64)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { senders: senders.to_vec(), samples: sample(effort, &points)? })
    }

    /// The samples of one sender, by BLER.
    pub(super) fn of(&self, sender: System) -> &[Sample] {
        let index = self.senders.iter().position(|known| *known == sender).expect("a sender that was run");
        &self.samples[index * BLER.len()..][..BLER.len()]
    }

    pub(super) fn at_10(&self, sender: System) -> &Sample {
        &self.of(sender)[BLER.len() - 1]
    }

    /// Timeouts of each seed over all BLERs, scaled to forty transfers.
    pub(super) fn in_forty(&self, sender: System) -> Vec<f64> {
        let in_seed = |seed: usize| {
            TRANSFERS * self.of(sender).iter().map(|sample| sample.transfers()[seed].timeouts).sum::<f64>()
        };
        (0..self.samples[0].transfers().len()).map(in_seed).collect()
    }

    /// Mean difference in timeouts between two senders, in forty transfers.
    pub(super) fn more_timeouts(&self, more: System, fewer: System) -> Mean {
        let pairs = self.in_forty(more).into_iter().zip(self.in_forty(fewer));
        mean(&pairs.map(|(more, fewer)| more - fewer).collect::<Vec<_>>())
    }

    /// Throughput gain of one sender over another, pooled over all BLERs.
    pub(super) fn gain(&self, more: System, less: System) -> Mean {
        let throughputs = |sender| self.of(sender).iter().map(Sample::throughputs).collect::<Vec<_>>();
        mean(&pooled_gains(&throughputs(more), &throughputs(less)))
    }

    /// The largest share of packets that RLC gave up in a transfer.
    pub(super) fn most_lost(&self) -> f64 {
        let all = self.samples.iter().flat_map(|sample| sample.values(|t| t.lost));
        all.fold(0.0, f64::max)
    }

    /// A row for each sender, a column for each BLER.
    pub(super) fn table(&self, title: &str, cell: impl Fn(System, usize, &Sample) -> String) -> Table {
        let blers = BLER.map(|bler| format!("BLER {bler} %"));
        let columns: Vec<&str> =
            ["sender", "recipe"].into_iter().chain(blers.iter().map(String::as_str)).collect();
        let mut table = Table::new(title, &columns);
        for &sender in &self.senders {
            let cells = self.of(sender).iter().enumerate().map(|(i, sample)| cell(sender, i, sample));
            table.row([sender.name().to_owned(), format!("`{}`", sender.recipe())].into_iter().chain(cells));
        }
        table
    }

    /// Throughput against BLER, a curve for each of `senders`.
    pub(super) fn throughput_chart(&self, title: &str, senders: &[System]) -> Chart {
        let curve = |sender: &System| {
            let throughputs: Vec<_> = self.of(*sender).iter().map(Sample::throughputs).collect();
            Curve::line(
                sender.name(),
                BLER.iter().zip(&throughputs).map(|(x, y)| (f64::from(*x), y.as_slice())),
            )
        };
        Chart {
            title: title.to_owned(),
            x: Axis::new("BLER, %", Scale::FromZero),
            y: Axis::new("TCP throughput, kbit/s", Scale::FromZero),
            curves: senders.iter().map(curve).collect(),
        }
    }
}
