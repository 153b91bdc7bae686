//! The host that a script runs against: profile, recipe, and the sysctls that change single
//! parameters (`sysctls`).

mod fast_open;
mod sysctls;

use std::net::IpAddr;
use std::path::Path;

use airtcp::host::HostConfig;
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::FastOpenKeys;

use self::sysctls::{SYSCTLS, Setting};
use super::shell::{self, Effect};

/// A profile with changes, and a recipe.
#[derive(Clone, Debug)]
pub struct Tuning {
    profile: Profile,
    recipe: Recipe,
    fast_open_keys: FastOpenKeys,
    /// Applied changes, which are repeated if the profile is replaced later.
    changes: Vec<(String, String)>,
}

/// Whether airtcp supports a sysctl.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SysctlSupport {
    /// Supported and applied.
    Applied,
    /// Not supported.
    Unsupported,
}

/// Beginnings of full names of sysctls.
const PREFIXES: [&str; 3] = ["net.ipv4.", "net.core.", "net.inet.tcp."];

/// FreeBSD's sysctls whose last component is ambiguous or has another meaning in Linux.
const BSD_NAMES: [(&str, &str); 7] = [
    ("net.inet.tcp.sack.enable", "tcp_sack"),
    ("net.inet.tcp.ecn.enable", "tcp_ecn"),
    ("net.inet.tcp.rfc1323", "rfc1323"),
    ("net.inet.tcp.delacktime", "ack_delay_ms"),
    ("net.inet.tcp.rexmit_initial", "initial_rto_ms"),
    ("net.inet.tcp.rexmit_min", "min_rto_ms"),
    ("net.inet.tcp.initcwnd_segments", "initial_window"),
];

/// Seed of the host's only random choices: initial sequence numbers and ports.
const SEED: u64 = 1;

impl Default for Tuning {
    /// The configuration that most packetdrill scripts assume.
    fn default() -> Self {
        Self {
            profile: Profile::linux(),
            recipe: "sack".parse().expect("the catalogue has sack"),
            fast_open_keys: fast_open::default_keys(),
            changes: Vec::new(),
        }
    }
}

impl Tuning {
    /// Replaces the profile and repeats the changes made so far.
    pub fn profile(&mut self, name: &str) -> Result<(), String> {
        self.profile = Profile::by_name(name)
            .ok_or_else(|| format!("unknown profile `{name}`; known are {}", Profile::NAMES.join(", ")))?;
        for (name, value) in self.changes.clone() {
            self.apply(&name, &value)?;
        }
        Ok(())
    }

    /// Replaces the recipe.
    pub fn recipe(&mut self, name: &str) -> Result<(), String> {
        self.recipe = name.parse::<Recipe>().map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Applies the value of `--so_flags`: `profile=linux,recipe=sack+limited-transmit,tcp_sack=0`.
    /// Returns the settings that do not concern the host, such as `psh`.
    pub fn so_flags(&mut self, flags: &str) -> Result<Vec<(String, String)>, String> {
        let mut others = Vec::new();
        let mut settings = Vec::new();
        for flag in flags.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
            settings.push(
                flag.split_once('=')
                    .ok_or_else(|| format!("`{flag}`: expected NAME=VALUE, several separated by commas"))?,
            );
        }
        // The profile comes first, because some settings exist in one profile only.
        settings.sort_by_key(|(name, _)| *name != "profile");
        for (name, value) in settings {
            match name {
                "profile" => self.profile(value)?,
                "recipe" => self.recipe(value)?,
                _ => {
                    if self.sysctl(name, value)? == SysctlSupport::Unsupported {
                        others.push((name.to_owned(), value.to_owned()));
                    }
                }
            }
        }
        Ok(others)
    }

    /// Applies the sysctls that a shell line sets. Returns a note for each other command. Helper
    /// scripts are found relative to `script_dir`.
    pub fn shell(&mut self, command: &str, script_dir: &Path) -> Result<Vec<String>, String> {
        let mut notes = Vec::new();
        for effect in shell::effects(command, script_dir) {
            match effect {
                Effect::Set { position, name, value } => match self.sysctl(&name, &value) {
                    Ok(SysctlSupport::Applied) => {}
                    Ok(SysctlSupport::Unsupported) => {
                        notes.push(format!("{position}`{name}` was not set: airtcp does not support it"));
                    }
                    Err(message) => return Err(format!("{position}{message}")),
                },
                Effect::Note(note) => notes.push(note),
            }
        }
        Ok(notes)
    }

    /// Applies a sysctl, given by its full name or the last component, or a setting of airtcp.
    pub fn sysctl(&mut self, name: &str, value: &str) -> Result<SysctlSupport, String> {
        let name = match BSD_NAMES.iter().find(|(bsd, _)| *bsd == name) {
            Some((_, name)) => name,
            None => PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name),
        };
        let known = self.apply(name, value)?;
        if known == SysctlSupport::Applied {
            self.changes.push((name.to_owned(), value.to_owned()));
        }
        Ok(known)
    }

    /// Returns the number of sysctls that have been set.
    pub(crate) fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Returns the configuration of a host with these addresses. The seed is always the same.
    pub fn host_config(&self, addrs: Vec<IpAddr>, mtu: usize) -> Result<HostConfig, String> {
        Ok(HostConfig { addrs, mtu, profile: self.profile.clone(), recipe: self.recipe.clone(), seed: SEED })
    }

    /// Returns the keys of TCP Fast Open cookies, which the host must use.
    pub fn fast_open_keys(&self) -> FastOpenKeys {
        self.fast_open_keys
    }

    fn apply(&mut self, name: &str, value: &str) -> Result<SysctlSupport, String> {
        let Some((_, set)) = SYSCTLS.iter().find(|(known, _)| *known == name) else {
            return Ok(SysctlSupport::Unsupported);
        };
        set(self, &Setting { name, value })?;
        Ok(SysctlSupport::Applied)
    }
}

#[cfg(test)]
mod tests {
    use airtcp::profile::{
        Challenge, MtuLimits, MtuProbing, MtuSearch, ReceiveMemory, SackOffer, WindowUpdate,
    };
    use airwire::time::Duration;

    use super::*;

    fn profile(tuning: &Tuning) -> Profile {
        tuning.host_config(Vec::new(), 1500).unwrap().profile
    }

    #[test]
    fn sysctls_survive_later_profile_change() {
        let mut tuning = Tuning::default();
        let notes = tuning
            .shell("sysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_autocorking=1\n../common/defaults.sh && /sbin/sysctl -w net.ipv4.tcp_rmem=\"4096 8192 9000\"", Path::new("nowhere"))
            .unwrap();
        assert_eq!(
            notes,
            [
                "`net.ipv4.tcp_autocorking` was not set: airtcp does not support it",
                "`../common/defaults.sh` was not run: no such file",
            ]
        );
        tuning.profile("freebsd").unwrap();
        let profile = profile(&tuning);
        assert_eq!(
            (profile.name, profile.handshake.sack, profile.acks.recv_buffer),
            ("freebsd", SackOffer::Never, 8192)
        );
    }

    #[test]
    fn linux_buffer_sysctls_keep_window_tuning() {
        let mut tuning = Tuning::default();
        let command = "sysctl -q net.ipv4.tcp_rmem='4096 540000 15728640' net.core.rmem_max=$((1 << 20)) \
                       net.ipv4.tcp_wmem='4096 16384 4194304'";
        assert_eq!(tuning.shell(command, Path::new("")), Ok(Vec::new()));
        let profile = profile(&tuning);
        let memory = ReceiveMemory { initial: 540_000, most: 15_728_640 };
        assert_eq!(profile.acks.window_update, WindowUpdate::Tuned(memory));
        assert_eq!((profile.acks.recv_buffer_max, profile.sending.send_buffer), (1 << 20, 4_194_304));
    }

    #[test]
    fn window_scaling_returns_to_value_of_profile() {
        for (name, scale) in [("linux", 0), ("freebsd", 6), ("default", 8)] {
            let mut tuning = Tuning::default();
            tuning.profile(name).unwrap();
            tuning.sysctl("tcp_window_scaling", "0").unwrap();
            tuning.sysctl("tcp_window_scaling", "1").unwrap();
            assert_eq!(profile(&tuning).handshake.window_scale, Some(scale), "{name}");
        }
    }

    #[test]
    fn freebsd_sysctls_are_matched_by_full_name() {
        let mut tuning = Tuning::default();
        let notes = tuning
            .shell(
                "sysctl net.inet.tcp.sack.enable=0 net.inet.tcp.rfc1323=0 net.inet.udp.enable=1",
                Path::new(""),
            )
            .unwrap();
        assert_eq!(notes, ["`net.inet.udp.enable` was not set: airtcp does not support it"]);
        let profile = profile(&tuning);
        assert_eq!(
            (profile.handshake.sack, profile.handshake.timestamps, profile.handshake.window_scale),
            (SackOffer::Never, false, None)
        );
    }

    #[test]
    fn so_flags_returns_settings_unrelated_to_host() {
        let mut tuning = Tuning::default();
        let others = tuning.so_flags("profile=freebsd, recipe=newreno,psh=neutral,insecure_rst=1").unwrap();
        assert_eq!(others, [("psh".to_owned(), "neutral".to_owned())]);
        assert_eq!(profile(&tuning).validation.challenge_rst, Challenge::Rfc793);
    }

    #[test]
    fn mtu_search_sysctls_set_profile() {
        let mut tuning = Tuning::default();
        let limits = "net.ipv4.tcp_base_mss=512 net.ipv4.tcp_mtu_probe_floor=64 net.ipv4.tcp_min_snd_mss=96";
        let times = "net.ipv4.tcp_probe_threshold=4 net.ipv4.tcp_probe_interval=60";
        let notes =
            tuning.shell(&format!("sysctl -q net.ipv4.tcp_mtu_probing=2 {limits} {times}"), Path::new(""));
        assert_eq!(notes.unwrap(), [""; 0]);
        let profile = profile(&tuning);
        let interval = Duration::from_secs(60);
        let limits = MtuLimits { base_mss: 512, floor: 64, least_mss: 96, threshold: 4, interval };
        assert_eq!(
            (profile.icmp.mtu_probing, profile.icmp.mtu_search),
            (MtuProbing::Always, MtuSearch::Linux(limits))
        );
        assert!(tuning.sysctl("tcp_mtu_probing", "3").unwrap_err().contains("up to 2"));
    }

    #[test]
    fn invalid_tuning_values_are_reported() {
        let mut tuning = Tuning::default();
        assert_eq!(
            tuning.profile("bsd").unwrap_err(),
            "unknown profile `bsd`; known are default, linux, freebsd, ns2"
        );
        assert_eq!(
            tuning.sysctl("min_rto_ms", "18446744073709551615").unwrap_err(),
            "`min_rto_ms=18446744073709551615`: expected a number up to 2147483647"
        );
        assert!(tuning.sysctl("window_scale", "15").unwrap_err().contains("up to 14"));
        assert_eq!(tuning.sysctl("tcp_sack", "no").unwrap_err(), "`tcp_sack=no`: expected a number");
        assert_eq!(
            tuning.sysctl("net.ipv4.tcp_rmem", "4096").unwrap_err(),
            "`tcp_rmem=4096`: expected three numbers: minimum, initial size, maximum"
        );
        assert!(tuning.sysctl("tcp_ecn", "3").unwrap_err().contains("up to 2"));
        assert_eq!(tuning.sysctl("net.ipv4.neigh.default.mss", "1"), Ok(SysctlSupport::Unsupported));
        tuning.profile("freebsd").unwrap();
        assert_eq!(
            tuning.sysctl("quick_acks", "4").unwrap_err(),
            "`quick_acks=4`: only profile linux has this setting"
        );
        assert!(tuning.so_flags("linux").unwrap_err().contains("NAME=VALUE"));
    }
}
