//! Runs as JSON files.
//!
//! A file contains the complete [`Run`]: the scenario with all defaults, and the hosts with all fields of
//! their profiles. No field may be missing, so that a file means the same in later versions, or is rejected.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Run;

/// Version of the format.
const SCHEMA: u64 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile<R> {
    schema_version: u64,
    run: R,
}

/// The reason why a text is not a [`Run`].
#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    /// The text is not JSON, or a value is invalid.
    #[error("not a valid run: {0}")]
    Json(#[from] serde_json::Error),
    /// The text has another version.
    #[error("`schema_version` is not {SCHEMA}; this program only reads version {SCHEMA}")]
    Version,
    /// A field is missing.
    #[error("`{0}` is missing; a run needs every field, and `null` where it has no value")]
    Missing(String),
    /// A number is outside of the range that a host can handle.
    #[error("`{path}` is {value}; use a number from {least} to {most}")]
    OutOfRange {
        /// The field.
        path: String,
        /// The value of the field.
        value: String,
        /// Least possible value.
        least: f64,
        /// Largest possible value.
        most: f64,
    },
}

/// Sizes of socket buffers in bytes, as on the command line.
const BUFFERS: (f64, f64) = (1.0, (1_u64 << 30) as f64);
const BUFFER_FIELDS: [&str; 3] = ["recv_buffer", "send_buffer", "receive_buffer"];
/// Windows in segments, factors and rates. Larger numbers of segments exceed 64 bits in bytes.
const FRACTIONS: (f64, f64) = (0.0, 1e12);

impl Run {
    /// Returns the run as JSON. [`Run::from_json`] returns a run with the same report.
    ///
    /// # Panics
    /// If a value in the run has no JSON form, such as an infinite number. No text that
    /// [`Run::from_json`] accepts contains one.
    pub fn to_json(&self) -> String {
        let file = RunFile { schema_version: SCHEMA, run: self };
        serde_json::to_string_pretty(&file).expect("runs have only text keys and finite numbers") + "\n"
    }

    /// Reads a run from JSON.
    ///
    /// # Errors
    /// If a field is missing, unknown or invalid.
    pub fn from_json(text: &str) -> Result<Self, RunFileError> {
        let read: Value = serde_json::from_str(text)?;
        if read.get("schema_version").is_some_and(|version| *version != SCHEMA) {
            return Err(RunFileError::Version);
        }
        let file: RunFile<Self> = serde_json::from_str(text)?;
        let complete = serde_json::to_value(&file.run)?;
        // serde accepts a missing field for `None`.
        if let Some(path) = missing(&complete, &read["run"]) {
            return Err(RunFileError::Missing(format!("run{path}")));
        }
        ["fixed", "mobile", "flows"]
            .into_iter()
            .try_for_each(|part| check(&complete[part], &format!("run.{part}")))?;
        Ok(file.run)
    }
}

/// Checks the sizes of buffers and all numbers with a fraction in `value`, whose place is `path`.
fn check(value: &Value, path: &str) -> Result<(), RunFileError> {
    match value {
        Value::Object(fields) => {
            fields.iter().try_for_each(|(key, inner)| check(inner, &format!("{path}.{key}")))
        }
        Value::Array(items) => (0..)
            .zip(items)
            .try_for_each(|(index, inner): (usize, _)| check(inner, &format!("{path}[{index}]"))),
        Value::Number(number) => {
            let is_buffer = BUFFER_FIELDS.iter().any(|field| path.ends_with(&format!(".{field}")));
            let range = if is_buffer { Some(BUFFERS) } else { number.is_f64().then_some(FRACTIONS) };
            let Some((least, most)) = range else { return Ok(()) };
            match number.as_f64() {
                Some(value) if !(least..=most).contains(&value) => {
                    let value = number.to_string();
                    Err(RunFileError::OutOfRange { path: path.to_owned(), value, least, most })
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Returns the path of the first key in `complete` that `read` does not have.
fn missing(complete: &Value, read: &Value) -> Option<String> {
    match (complete, read) {
        (Value::Object(complete), Value::Object(read)) => complete.iter().find_map(|(key, value)| {
            let Some(inner) = read.get(key) else { return Some(format!(".{key}")) };
            missing(value, inner).map(|path| format!(".{key}{path}"))
        }),
        (Value::Array(complete), Value::Array(read)) => {
            let mut both = complete.iter().zip(read).enumerate();
            both.find_map(|(index, (complete, read))| {
                missing(complete, read).map(|path| format!("[{index}]{path}"))
            })
        }
        _ => None,
    }
}

/// A scenario with all settings as JSON, like [`Scenario::to_json`].
pub(super) mod scenario {
    use airlink::scenario::Scenario;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};
    use serde_json::Value;

    pub(in crate::run) fn serialize<S: Serializer>(
        scenario: &Scenario,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        scenario.to_json().serialize(serializer)
    }

    pub(in crate::run) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Scenario, D::Error> {
        let mut json = Value::deserialize(deserializer)?;
        let name = json.as_object_mut().and_then(|json| json.remove("name"));
        let name = name.as_ref().and_then(Value::as_str);
        let name = name.ok_or_else(|| D::Error::custom("a scenario is an object with a `name`"))?;
        let text = toml::to_string(&json).map_err(D::Error::custom)?;
        Scenario::parse(&text, name).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use airlink::scenario::{Scenario, presets};
    use airtcp::profile::Profile;
    use airwire::time::{Duration, Instant};

    use super::*;
    use crate::run::{Until, run};
    use crate::world::{Flow, HostSpec, Length};

    /// A run in which every optional field has a value in one flow and none in the other.
    fn plan() -> Run {
        let special = Flow {
            start: Instant::from_nanos(1_234_567),
            recipe: Some("sack+iw=4".parse().unwrap()),
            profile: Some(Profile::linux()),
            receive_buffer: Some(20_000),
            ..Flow::down(Length::Octets(300_000))
        };
        Run {
            scenario: Scenario::load("wcdma-384").unwrap(),
            seed: 7,
            fixed: HostSpec { profile: Profile::ns2(), recipe: "newreno+judges".parse().unwrap() },
            mobile: HostSpec::receiver(),
            flows: vec![special, Flow::down(Length::Endless), Flow::up(Length::Octets(20_000))],
            until: Until::At(Instant::from_secs(20)),
            from: Instant::from_millis(2500),
            score: true,
        }
    }

    #[test]
    fn run_from_json_has_same_report() {
        let plan = plan();
        let again = Run::from_json(&plan.to_json()).unwrap();
        assert_eq!(again.to_json(), plan.to_json());
        assert_eq!(run(&again).unwrap(), run(&plan).unwrap());
        let until = Until::Complete(Duration::from_secs(600));
        assert_eq!(Run::from_json(&Run { until, ..plan }.to_json()).unwrap().until, until);
    }

    #[test]
    fn presets_survive_json_round_trip() {
        for preset in presets::ALL {
            let scenario = Scenario::load(preset.name).unwrap();
            let again = Run::from_json(&Run { scenario: scenario.clone(), ..plan() }.to_json()).unwrap();
            assert_eq!(again.scenario, scenario);
        }
    }

    /// serde_json rounds such numbers without its feature `float_roundtrip`.
    #[test]
    fn numbers_are_exact() {
        let mut plan = plan();
        for index in 1..40_u32 {
            let value = f64::from(index).sqrt() / 3.0;
            plan.fixed.profile.recovery.decrease.beta = value;
            let again = Run::from_json(&plan.to_json()).unwrap();
            assert_eq!(again.fixed.profile.recovery.decrease.beta.to_bits(), value.to_bits());
        }
    }

    #[test]
    fn numbers_that_no_host_can_handle_are_errors() {
        let json: Value = serde_json::from_str(&plan().to_json()).unwrap();
        let with = |path: &str, value: Value| {
            let mut changed = json.clone();
            *changed.pointer_mut(path).unwrap() = value;
            Run::from_json(&changed.to_string()).map(drop).map_err(|error| error.to_string())
        };
        let loss_window = "/run/fixed/profile/recovery/timeout/loss_window";
        for (path, wrong) in [
            (loss_window, Value::from(1e300)),
            (loss_window, Value::from(-1.0)),
            (loss_window, Value::from(u64::MAX)),
            ("/run/fixed/profile/acks/recv_buffer", Value::from(0)),
            ("/run/mobile/profile/sending/send_buffer", Value::from(u64::MAX)),
            ("/run/flows/1/receive_buffer", Value::from(u64::MAX)),
        ] {
            let message = with(path, wrong).unwrap_err();
            let field = path.rsplit('/').next().unwrap();
            assert!(message.contains(field) && message.contains("use a number from"), "{message}");
        }
        for (path, good) in [
            (loss_window, Value::from(2.0)),
            ("/run/fixed/profile/acks/recv_buffer_max", Value::from(u64::MAX)),
            ("/run/flows/1/receive_buffer", Value::from(1 << 30)),
        ] {
            assert_eq!(with(path, good), Ok(()), "{path}");
        }
    }

    #[test]
    fn missing_and_unknown_fields_are_errors() {
        let json: Value = serde_json::from_str(&plan().to_json()).unwrap();
        let error_after = |change: &dyn Fn(&mut Value)| {
            let mut changed = json.clone();
            change(&mut changed);
            Run::from_json(&changed.to_string()).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let remove = |path: &'static str, key: &'static str| {
            error_after(&|json| {
                json.pointer_mut(path).unwrap().as_object_mut().unwrap().remove(key).unwrap();
            })
        };
        let optional = remove("/run/fixed/profile/recovery/transmission", "max_burst");
        assert!(
            optional.starts_with("`run.fixed.profile.recovery.transmission.max_burst` is missing"),
            "{optional}"
        );
        let of_flow = remove("/run/flows/1", "receive_buffer");
        assert!(of_flow.starts_with("`run.flows[1].receive_buffer` is missing"), "{of_flow}");
        let of_stage = remove("/run/scenario/stage/0/down", "delay");
        assert!(of_stage.starts_with("`run.scenario.stage[0].down.delay` is missing"), "{of_stage}");
        let needed = remove("/run/mobile/profile", "ttl");
        assert!(needed.starts_with("not a valid run: missing field `ttl`"), "{needed}");
        for path in ["/run", "/run/fixed", "/run/fixed/profile/timers/rto", "/run/flows/0", "/run/scenario"] {
            let unknown = error_after(&|json| json.pointer_mut(path).unwrap()["spelling"] = 1.into());
            assert!(unknown.contains("spelling"), "{path}: {unknown}");
        }
        let newer = error_after(&|json| json["schema_version"] = 2.into());
        assert_eq!(newer, "`schema_version` is not 1; this program only reads version 1");
        assert!(error_after(&|json| json["run"]["fixed"]["recipe"] = "fastest".into()).contains("fastest"));
    }
}
