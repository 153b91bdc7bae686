//! Derives the host's configuration from the lines above the first event: `--flags`, `recipe`,
//! `profile`.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use airwire::time::Duration;

use super::ast::{Flag, Position, Script};
use super::check::{Push, Rules};
use super::flags::{FLAGS, FlagSupport, IgnoredValue, Tolerance};
use super::script_flow::Echo;
use super::tuning::Tuning;
use super::verdict::ScriptError;

/// Options for running a script, which override the script's own settings.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Recipe to use instead of the script's.
    pub recipe: Option<String>,
    /// Profile to use instead of the script's.
    pub profile: Option<String>,
    /// Tolerance for the times of packets and calls. Overrides the script and `flags`.
    pub tolerance: Option<Tolerance>,
    /// Treatment of packets that no line of the script lists.
    pub unlisted: UnlistedPackets,
    /// packetdrill's options by name. They take effect as if they were the script's last flags.
    pub flags: Vec<(String, Option<String>)>,
}

impl RunOptions {
    /// Checks these options independently of any script. Returns a description of the first error.
    pub fn check(&self) -> Result<(), String> {
        match Setup::new(&Script::default(), self, Path::new("")) {
            Err(ScriptError::Setup { message, .. }) => Err(message),
            Err(other) => Err(other.to_string()),
            Ok(_) => Ok(()),
        }
    }
}

/// Treatment of packets that no line of the script lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnlistedPackets {
    /// Ignored, as in packetdrill.
    #[default]
    Ignored,
    /// The script fails.
    Refused,
}

#[derive(Debug)]
pub(super) struct Setup {
    /// The host's address, to which bind without an address binds.
    pub(super) local: SocketAddr,
    /// The script's address, to which connect without an address connects.
    pub(super) remote: SocketAddr,
    pub(super) mtu: usize,
    pub(super) rules: Rules,
    pub(super) segment_matching: SegmentMatching,
    pub(super) unlisted: UnlistedPackets,
    pub(super) echo: Echo,
    pub(super) mismatch: Mismatch,
    pub(super) mode: RunMode,
    pub(super) tuning: Tuning,
    pub(super) notes: Vec<String>,
}

/// Treatment of a packet that differs from its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mismatch {
    Fatal,
    /// `--non_fatal=packet`: reported, and the script continues.
    Reported,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RunMode {
    Play,
    /// `--dry_run`: the script is only parsed.
    Dry,
}

/// Whether several packets together may match one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SegmentMatching {
    /// Consecutive segments of equal size are concatenated, as in packetdrill.
    Merged,
    /// `--strict_segments`: each line matches one packet.
    Strict,
}

impl Setup {
    /// Combines the script's settings with the options. `script_dir` is the directory of the script's
    /// helpers.
    pub(super) fn new(script: &Script, options: &RunOptions, script_dir: &Path) -> Result<Self, ScriptError> {
        let caller = || Position::of_line(std::rc::Rc::new("command line".into()), 0);
        let given = options.flags.iter().map(|(name, value)| Flag {
            position: caller(),
            name: name.replace('-', "_"),
            value: value.clone(),
        });
        let flags: Vec<Flag> = script.settings.flags.iter().cloned().chain(given).collect();
        let flag = |name: &str| flags.iter().rev().find(|flag| flag.name == name);
        let v6 = match flag("ip_version").map(|flag| (flag, flag.value.as_deref().unwrap_or_default())) {
            // An IPv4-mapped socket is an IPv6 socket that sends IPv4 packets, so its packets do
            // not differ on the wire.
            None | Some((_, "ipv4" | "ipv4-mapped-ipv6")) => false,
            Some((_, "ipv6")) => true,
            Some((flag, version)) => {
                let message = format!("`--ip_version={version}`: expected ipv4, ipv6 or ipv4-mapped-ipv6");
                return Err(error(&flag.position, message));
            }
        };
        let (local_ip, remote_ip) =
            if v6 { ("fd3d:a0b:17d6::1", "2001:db8::1") } else { ("192.168.0.1", "192.0.2.1") };
        let rules = Rules { push: Push::Neutral, tick: None, tolerance: Tolerance::PACKETDRILL };
        let mut setup = Self {
            local: SocketAddr::new(address(local_ip).expect("a constant above"), 8080),
            remote: SocketAddr::new(address(remote_ip).expect("a constant above"), 8080),
            mtu: 1500,
            rules,
            segment_matching: SegmentMatching::Merged,
            unlisted: options.unlisted,
            echo: Echo::Named,
            mismatch: Mismatch::Fatal,
            mode: RunMode::Play,
            tuning: Tuning::default(),
            notes: Vec::new(),
        };
        // The flags come after the profile, because some settings exist in one profile only.
        if let Some(recipe) = &script.settings.recipe {
            setup.tuning.recipe(&recipe.name).map_err(|message| error(&recipe.position, message))?;
        }
        if let Some(profile) = &script.settings.profile {
            setup.tuning.profile(&profile.name).map_err(|message| error(&profile.position, message))?;
        }
        for Flag { position, name, value } in &flags {
            let before = setup.notes.len();
            setup.flag(name, value.as_deref(), script_dir).map_err(|message| error(position, message))?;
            setup.locate_notes(before, position);
        }
        if setup.local.is_ipv6() != v6 || setup.remote.is_ipv6() != v6 {
            let position = flag("local_ip").or_else(|| flag("remote_ip")).map(|flag| flag.position.clone());
            let message = "--local_ip and --remote_ip must have the version given with --ip_version";
            return Err(error(&position.unwrap_or_else(caller), message.to_owned()));
        }
        if let Some(tolerance) = options.tolerance {
            setup.rules.tolerance = tolerance;
        }
        if let Some(recipe) = &options.recipe {
            setup.tuning.recipe(recipe).map_err(|message| error(&caller(), message))?;
        }
        if let Some(profile) = &options.profile {
            setup.tuning.profile(profile).map_err(|message| error(&caller(), message))?;
        }
        Ok(setup)
    }

    /// Adds the position in the script to the notes from index `from` on.
    pub(super) fn locate_notes(&mut self, from: usize, position: &Position) {
        for note in &mut self.notes[from..] {
            *note = format!("{position}: {note}");
        }
    }

    /// Returns the value of a flag that has an effect. Notes a flag that has none.
    fn supported_value<'a>(&mut self, name: &str, value: Option<&'a str>) -> Result<Option<&'a str>, String> {
        let Some((info, support)) = FLAGS.iter().find(|(info, _)| info.name == name) else {
            return Err(format!("unknown flag `--{name}`"));
        };
        match (info.value, value) {
            (Some(what), None) => return Err(format!("`--{name}` needs a value: `--{name}={what}`")),
            (None, Some(value)) => return Err(format!("`--{name}` takes no value, but has `{value}`")),
            _ => {}
        }
        let value = value.unwrap_or_default();
        let valid = match support {
            FlagSupport::Supported => return Ok(Some(value)),
            FlagSupport::Refused(reason) => return Err(format!("`--{name}`: {reason}")),
            FlagSupport::Ignored(IgnoredValue::Any) => true,
            FlagSupport::Ignored(IgnoredValue::Number) => number::<u32>(name, value).is_ok(),
            FlagSupport::Ignored(IgnoredValue::Positive) => number::<u32>(name, value)? > 0,
        };
        if !valid {
            return Err(format!("`--{name}={value}`: expected a number from 1"));
        }
        self.notes.push(format!("--{name} has no effect"));
        Ok(None)
    }

    fn flag(&mut self, name: &str, value: Option<&str>, script_dir: &Path) -> Result<(), String> {
        let Some(value) = self.supported_value(name, value)? else { return Ok(()) };
        match name {
            "local_ip" => self.local.set_ip(address(value)?),
            // packetdrill accepts a prefix length here.
            "remote_ip" => self.remote.set_ip(address(value.split('/').next().unwrap_or(value))?),
            "bind_port" => self.local.set_port(port(name, value)?),
            "connect_port" => self.remote.set_port(port(name, value)?),
            // From the minimum MTU of RFC 791 section 3.2 to the maximum length of an IP packet.
            "mtu" => match number(name, value)? {
                mtu @ 68..=65535 => self.mtu = mtu,
                _ => return Err(format!("`--{name}={value}`: expected a number from 68 to 65535")),
            },
            "tolerance_usecs" => match number::<u32>(name, value)?.into() {
                0 => return Err(format!("`--{name}=0`: expected a number from 1")),
                micros => self.rules.tolerance.least = Duration::from_micros(micros),
            },
            "tolerance_percent" => match number::<f64>(name, value)? {
                percent @ 0.0..=100.0 => self.rules.tolerance.fraction = percent / 100.0,
                _ => return Err(format!("`--{name}={value}`: expected a number from 0 to 100")),
            },
            "tcp_ts_tick_usecs" => match number(name, value)? {
                tick @ 0..=1_000_000 => {
                    self.rules.tick = (tick > 0).then_some(Duration::from_micros(tick));
                }
                _ => return Err(format!("`--{name}={value}`: expected a number from 0 to 1000000")),
            },
            "tcp_ts_ecr_scaled" => self.echo = Echo::Scaled,
            "strict_segments" => self.segment_matching = SegmentMatching::Strict,
            "dry_run" => self.mode = RunMode::Dry,
            "non_fatal" => {
                for what in value.split([',', ' ']).filter(|what| !what.is_empty()) {
                    match what {
                        "packet" => self.mismatch = Mismatch::Reported,
                        // packetdrill accepts other words too, but a wrong result of a call is
                        // still fatal in packetdrill.
                        _ => self.notes.push(format!("--non_fatal={what} has no effect")),
                    }
                }
            }
            "init_scripts" => {
                for script in value.split(',') {
                    self.notes.extend(self.tuning.shell(&format!(". '{script}'"), script_dir)?);
                }
            }
            "psh" => {
                self.rules.push = match value {
                    "neutral" => Push::Neutral,
                    "exact" => Push::Exact,
                    _ => return Err(format!("`--psh={value}`: expected `neutral` or `exact`")),
                };
            }
            "so_flags" => {
                for (name, value) in self.tuning.so_flags(value)? {
                    // The value may also contain flags of a script.
                    self.flag(&name, Some(&value), script_dir)?;
                }
            }
            // ip_version and define were handled earlier.
            _ => {}
        }
        Ok(())
    }
}

fn error(position: &Position, message: String) -> ScriptError {
    ScriptError::Setup { position: position.clone(), message }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an IP address"))
}

fn port(name: &str, text: &str) -> Result<u16, String> {
    match number(name, text)? {
        0 => Err(format!("`--{name}=0`: expected a port from 1 to 65535")),
        port => Ok(port),
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`--{name}={text}`: expected a number"))
}
