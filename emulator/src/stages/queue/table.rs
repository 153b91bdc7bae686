//! The settings of a queue as a scenario writes them: one flat table, in which `discipline` determines the
//! other keys.

use airwire::time::Duration;
use airwire::units::{Probability, Size};
use serde::{Deserialize, Serialize};

use super::config::{Bounds, CodelConfig, Discipline, FqCodelConfig, PieConfig, QueueConfig, RedConfig};
use super::length::Length;
use crate::settings::{Invalid, Variant};

/// The name of a discipline in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DisciplineName {
    DropTail,
    Codel,
    FqCodel,
    Pie,
    Red,
}

/// The keys of each discipline, in the order of [`DisciplineName`].
const DISCIPLINES: [Variant; 5] = [
    Variant::new("drop-tail", &[], &[]),
    Variant::new("codel", &[], &["target", "interval", "mtu", "ecn"]),
    Variant::new("fq-codel", &[], &["target", "interval", "mtu", "ecn", "flows", "quantum"]),
    Variant::new(
        "pie",
        &[],
        &["target", "mtu", "ecn", "t_update", "alpha", "beta", "max_burst", "mark_ecnth"],
    ),
    Variant::new("red", &[], &["min", "max", "weight", "max_p", "gentle", "ecn"]),
];

macro_rules! queue_table {
    ($($key:ident: $type:ty,)*) => {
        /// The table in a scenario.
        #[derive(Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct QueueTable {
            discipline: Option<DisciplineName>,
            packets: Option<usize>,
            bytes: Option<Size>,
            $($key: Option<$type>,)*
        }

        impl QueueTable {
            /// Returns the keys that depend on the discipline, and whether each is set.
            fn keys(&self) -> impl Iterator<Item = (&'static str, bool)> {
                [$((stringify!($key), self.$key.is_some()),)*].into_iter()
            }
        }
    };
}

queue_table! {
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

/// Returns the defaults, with the values of these keys from the table.
macro_rules! overridden {
    ($defaults:expr, $table:expr, $($key:ident)*) => {{
        let mut config = $defaults;
        $(if let Some(value) = $table.$key { config.$key = value; })*
        config
    }};
}

/// Returns the table with the values of these keys from the settings.
macro_rules! with_keys {
    ($table:expr, $config:expr, $($key:ident)*) => {
        QueueTable { $($key: Some($config.$key),)* ..$table }
    };
}

impl TryFrom<QueueTable> for QueueConfig {
    type Error = String;

    fn try_from(table: QueueTable) -> Result<Self, String> {
        let name = table.discipline.unwrap_or(DisciplineName::DropTail);
        let checked = DISCIPLINES[name as usize].check("discipline", &DISCIPLINES, table.keys());
        checked.map_err(|Invalid { key, message }| format!("`{key}` is {message}"))?;
        let mut bounds = Bounds { packets: table.packets, bytes: table.bytes };
        let discipline = match name {
            DisciplineName::DropTail => Discipline::DropTail,
            DisciplineName::Codel => {
                Discipline::Codel(overridden!(CodelConfig::default(), table, target interval mtu ecn))
            }
            DisciplineName::FqCodel => {
                bounds.packets = bounds.packets.or(Some(FqCodelConfig::PACKETS));
                let mut config = overridden!(FqCodelConfig::default(), table, flows quantum);
                config.codel = overridden!(config.codel, table, target interval mtu ecn);
                Discipline::FqCodel(config)
            }
            DisciplineName::Pie => Discipline::Pie(overridden!(
                PieConfig::default(), table, target t_update alpha beta max_burst mtu ecn mark_ecnth
            )),
            DisciplineName::Red => {
                Discipline::Red(overridden!(RedConfig::default(), table, min max weight max_p gentle ecn))
            }
        };
        Ok(Self { bounds, discipline })
    }
}

impl From<QueueConfig> for QueueTable {
    fn from(QueueConfig { bounds, discipline }: QueueConfig) -> Self {
        let table = Self { packets: bounds.packets, bytes: bounds.bytes, ..Self::default() };
        let (name, table) = match discipline {
            Discipline::DropTail => return table,
            Discipline::Codel(config) => {
                (DisciplineName::Codel, with_keys!(table, config, target interval mtu ecn))
            }
            Discipline::FqCodel(config) => {
                let table = with_keys!(table, config, flows quantum);
                (DisciplineName::FqCodel, with_keys!(table, config.codel, target interval mtu ecn))
            }
            Discipline::Pie(config) => (
                DisciplineName::Pie,
                with_keys!(table, config, target t_update alpha beta max_burst mtu ecn mark_ecnth),
            ),
            Discipline::Red(config) => {
                (DisciplineName::Red, with_keys!(table, config, min max weight max_p gentle ecn))
            }
        };
        Self { discipline: Some(name), ..table }
    }
}
