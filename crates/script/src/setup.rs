//! From the lines above the first event to a host: `--flags`, `recipe`, `profile`.

use std::net::{IpAddr, SocketAddr};

use airwire::time::Duration;

use super::ast::{Place, Script};
use super::check::{Push, Rules};
use super::tuning::Tuning;
use super::verdict::ScriptError;

/// How to run a script; what is set here overrides the script.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Instead of the one that the script names.
    pub recipe: Option<String>,
    /// Instead of the one that the script names.
    pub profile: Option<String>,
    /// How far packets and calls may be from their time.
    pub tolerance: Option<Duration>,
    /// What it means if packets are left over.
    pub end: End,
}

/// What it means if the host has sent more than the script spoke of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum End {
    /// Nothing, as in packetdrill.
    #[default]
    Open,
    /// The script has failed.
    Exact,
}

#[derive(Debug)]
pub(super) struct Setup {
    /// The host's end: where bind without an address binds to.
    pub(super) local: SocketAddr,
    /// The script's end: where connect without an address connects to.
    pub(super) remote: SocketAddr,
    pub(super) mtu: usize,
    pub(super) rules: Rules,
    pub(super) cut: Cut,
    pub(super) end: End,
    pub(super) tuning: Tuning,
    pub(super) notes: Vec<String>,
}

/// Whether a line's payload may arrive in several packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cut {
    /// As packetdrill: equal segments add up.
    Concatenated,
    /// `--strict_segments`.
    AsWritten,
}

/// Flags of packetdrill that make no difference in virtual time and without a wire.
const IGNORED: [&str; 17] = [
    "debug",
    "dry_run",
    "gateway_ip",
    "init_scripts",
    "define",
    "live_gateway_ip",
    "netmask_ip",
    "no_cleanup",
    "non_fatal",
    "send_omit_free",
    "so_filename",
    "speed",
    "udp_encapsulation",
    "use_expect",
    "verbose",
    "wire_client_dev",
    "wire_server_dev",
];

impl Setup {
    pub(super) fn new(script: &Script, options: &RunOptions) -> Result<Self, ScriptError> {
        let flag = |name: &str| script.settings.flags.iter().rev().find(|(_, known, _)| known == name);
        let v6 = match flag("ip_version") {
            None => false,
            Some((_, _, version)) if version == "ipv4" => false,
            Some((_, _, version)) if version == "ipv6" => true,
            Some((place, _, version)) => {
                return Err(error(place, format!("`--ip_version={version}`: airtcp knows ipv4 and ipv6")));
            }
        };
        let (local_ip, remote_ip) =
            if v6 { ("fd3d:a0b:17d6::1", "2001:db8::1") } else { ("192.168.0.1", "192.0.2.1") };
        let rules = Rules { push: Push::Neutral, tick: None, tolerance: Duration::ZERO };
        let mut setup = Self {
            local: SocketAddr::new(address(local_ip).expect("a constant above"), 8080),
            remote: SocketAddr::new(address(remote_ip).expect("a constant above"), 8080),
            mtu: 1500,
            rules,
            cut: Cut::Concatenated,
            end: options.end,
            tuning: Tuning::default(),
            notes: Vec::new(),
        };
        for (place, name, value) in &script.settings.flags {
            setup.flag(name, value).map_err(|message| error(place, message))?;
        }
        if setup.local.is_ipv6() != v6 || setup.remote.is_ipv6() != v6 {
            let place = flag("local_ip").or_else(|| flag("remote_ip")).map(|(place, ..)| place);
            let message =
                "--local_ip and --remote_ip must be of the version that --ip_version says".to_owned();
            return Err(match place {
                Some(place) => error(place, message),
                None => error(&script.settings.flags[0].0, message),
            });
        }
        if let Some(recipe) = &script.settings.recipe {
            setup.tuning.recipe(&recipe.name).map_err(|message| error(&recipe.place, message))?;
        }
        if let Some(profile) = &script.settings.profile {
            setup.tuning.profile(&profile.name).map_err(|message| error(&profile.place, message))?;
        }
        // What the caller says comes from a command line, not from a place in a file.
        let caller = || Place { file: std::rc::Rc::new("command line".into()), line: 0 };
        if let Some(recipe) = &options.recipe {
            setup.tuning.recipe(recipe).map_err(|message| error(&caller(), message))?;
        }
        if let Some(profile) = &options.profile {
            setup.tuning.profile(profile).map_err(|message| error(&caller(), message))?;
        }
        if let Some(tolerance) = options.tolerance {
            setup.rules.tolerance = tolerance;
        }
        Ok(setup)
    }

    fn flag(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            // Read before the others.
            "ip_version" => {}
            "local_ip" => self.local.set_ip(address(value)?),
            "remote_ip" => self.remote.set_ip(address(value)?),
            "bind_port" => self.local.set_port(number(name, value)?),
            "connect_port" => self.remote.set_port(number(name, value)?),
            "mtu" => self.mtu = number(name, value)?,
            "tolerance_usecs" => self.rules.tolerance = Duration::from_micros(number(name, value)?),
            "tcp_ts_tick_usecs" => {
                let tick: u64 = number(name, value)?;
                self.rules.tick = (tick > 0).then_some(Duration::from_micros(tick));
            }
            "strict_segments" => self.cut = Cut::AsWritten,
            "psh" => {
                self.rules.push = match value {
                    "neutral" => Push::Neutral,
                    "exact" => Push::Exact,
                    _ => return Err(format!("`--psh={value}`: it is `neutral` or `exact`")),
                };
            }
            "so_flags" => {
                for (name, value) in self.tuning.so_flags(value)? {
                    // What the library is told may be a flag of ours too.
                    self.flag(&name, &value)?;
                }
            }
            _ if IGNORED.contains(&name) => self.notes.push(format!("--{name} makes no difference here")),
            _ => return Err(format!("there is no flag `--{name}`")),
        }
        Ok(())
    }
}

fn error(place: &Place, message: String) -> ScriptError {
    ScriptError::Setup { place: place.clone(), message }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an IP address"))
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`--{name}={text}`: expected a number"))
}
