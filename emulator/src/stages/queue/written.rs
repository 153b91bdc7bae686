//! The settings of a queue as a scenario writes them: one flat table, in which `discipline` determines the
//! other keys.

use airwire::time::Duration;
use airwire::units::{Probability, Size};
use serde::{Deserialize, Serialize};

use super::config::{Bounds, CodelConfig, Discipline, FqCodelConfig, PieConfig, QueueConfig, RedConfig};
use super::length::Length;

/// The name of a discipline in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Name {
    DropTail,
    Codel,
    FqCodel,
    Pie,
    Red,
}

impl Name {
    const ALL: [Self; 5] = [Self::DropTail, Self::Codel, Self::FqCodel, Self::Pie, Self::Red];

    const fn word(self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Codel => "codel",
            Self::FqCodel => "fq-codel",
            Self::Pie => "pie",
            Self::Red => "red",
        }
    }

    /// Returns the keys that are valid with the discipline.
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::DropTail => &[],
            Self::Codel => &["target", "interval", "mtu", "ecn"],
            Self::FqCodel => &["target", "interval", "mtu", "ecn", "flows", "quantum"],
            Self::Pie => &["target", "mtu", "ecn", "t_update", "alpha", "beta", "max_burst", "mark_ecnth"],
            Self::Red => &["min", "max", "weight", "max_p", "gentle", "ecn"],
        }
    }
}

macro_rules! written {
    ($($key:ident: $type:ty,)*) => {
        /// The table in a scenario.
        #[derive(Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct Written {
            discipline: Option<Name>,
            packets: Option<usize>,
            bytes: Option<Size>,
            $($key: Option<$type>,)*
        }

        impl Written {
            /// Returns the discipline-specific keys that are present.
            fn present(&self) -> impl Iterator<Item = &'static str> {
                [$((stringify!($key), self.$key.is_some()),)*].into_iter().filter(|(_, there)| *there).map(|(key, _)| key)
            }
        }
    };
}

written! {
    target: Duration,
    interval: Duration,
    mtu: Size,
    flows: u32,
    quantum: Size,
    t_update: Duration,
    alpha: f64,
    beta: f64,
    max_burst: Duration,
    mark_ecnth: Probability,
    min: Length,
    max: Length,
    weight: Probability,
    max_p: Probability,
    gentle: bool,
    ecn: bool,
}

impl Written {
    fn codel(&self, usual: CodelConfig) -> CodelConfig {
        CodelConfig {
            target: self.target.unwrap_or(usual.target),
            interval: self.interval.unwrap_or(usual.interval),
            mtu: self.mtu.unwrap_or(usual.mtu),
            ecn: self.ecn.unwrap_or(usual.ecn),
        }
    }

    fn fq_codel(&self) -> FqCodelConfig {
        let usual = FqCodelConfig::default();
        FqCodelConfig {
            flows: self.flows.unwrap_or(usual.flows),
            quantum: self.quantum.unwrap_or(usual.quantum),
            codel: self.codel(usual.codel),
        }
    }

    fn pie(&self) -> PieConfig {
        let usual = PieConfig::default();
        PieConfig {
            target: self.target.unwrap_or(usual.target),
            t_update: self.t_update.unwrap_or(usual.t_update),
            alpha: self.alpha.unwrap_or(usual.alpha),
            beta: self.beta.unwrap_or(usual.beta),
            max_burst: self.max_burst.unwrap_or(usual.max_burst),
            mtu: self.mtu.unwrap_or(usual.mtu),
            ecn: self.ecn.unwrap_or(usual.ecn),
            mark_ecnth: self.mark_ecnth.unwrap_or(usual.mark_ecnth),
        }
    }

    fn red(&self) -> RedConfig {
        let usual = RedConfig::default();
        RedConfig {
            min: self.min.unwrap_or(usual.min),
            max: self.max.unwrap_or(usual.max),
            weight: self.weight.unwrap_or(usual.weight),
            max_p: self.max_p.unwrap_or(usual.max_p),
            gentle: self.gentle.unwrap_or(usual.gentle),
            ecn: self.ecn.unwrap_or(usual.ecn),
        }
    }

    fn with_codel(self, config: CodelConfig) -> Self {
        Self {
            target: Some(config.target),
            interval: Some(config.interval),
            mtu: Some(config.mtu),
            ecn: Some(config.ecn),
            ..self
        }
    }
}

impl TryFrom<Written> for QueueConfig {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let name = written.discipline.unwrap_or(Name::DropTail);
        if let Some(key) = written.present().find(|key| !name.keys().contains(key)) {
            let owners: Vec<_> = Name::ALL
                .iter()
                .filter(|other| other.keys().contains(&key))
                .map(|other| format!("\"{}\"", other.word()))
                .collect();
            return Err(format!(
                "`{key}` is valid only with the discipline {}, but the discipline is \"{}\": remove it, or change the discipline",
                owners.join(" or "),
                name.word()
            ));
        }
        let mut bounds = Bounds { packets: written.packets, bytes: written.bytes };
        let discipline = match name {
            Name::DropTail => Discipline::DropTail,
            Name::Codel => Discipline::Codel(written.codel(CodelConfig::default())),
            Name::FqCodel => {
                bounds.packets = bounds.packets.or(Some(FqCodelConfig::PACKETS));
                Discipline::FqCodel(written.fq_codel())
            }
            Name::Pie => Discipline::Pie(written.pie()),
            Name::Red => Discipline::Red(written.red()),
        };
        Ok(Self { bounds, discipline })
    }
}

impl From<QueueConfig> for Written {
    fn from(QueueConfig { bounds, discipline }: QueueConfig) -> Self {
        let base = Self { packets: bounds.packets, bytes: bounds.bytes, ..Self::default() };
        match discipline {
            Discipline::DropTail => base,
            Discipline::Codel(config) => Self { discipline: Some(Name::Codel), ..base.with_codel(config) },
            Discipline::FqCodel(FqCodelConfig { flows, quantum, codel }) => Self {
                discipline: Some(Name::FqCodel),
                flows: Some(flows),
                quantum: Some(quantum),
                ..base.with_codel(codel)
            },
            Discipline::Pie(config) => Self {
                discipline: Some(Name::Pie),
                target: Some(config.target),
                t_update: Some(config.t_update),
                alpha: Some(config.alpha),
                beta: Some(config.beta),
                max_burst: Some(config.max_burst),
                mtu: Some(config.mtu),
                ecn: Some(config.ecn),
                mark_ecnth: Some(config.mark_ecnth),
                ..base
            },
            Discipline::Red(config) => Self {
                discipline: Some(Name::Red),
                min: Some(config.min),
                max: Some(config.max),
                weight: Some(config.weight),
                max_p: Some(config.max_p),
                gentle: Some(config.gentle),
                ecn: Some(config.ecn),
                ..base
            },
        }
    }
}
