//! Receivers: this kernel with various settings, or a third-party stack behind it.
//!
//! A stack is a directory with an executable `start` that follows `interop/receivers/README.md`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use airtcp_sim::inputs::ReceiverFeatures;

use super::LabError;
use super::agent::Output;
use super::testbed::{PathSide, Running, Start, Testbed, Tools};
use super::workload::{Directions, Stream, Workload};

/// Settings that turn this kernel into a different receiver. They apply only to the lab's namespaces.
#[derive(Debug, PartialEq, Eq)]
pub struct KernelProfile {
    /// The name on the command line.
    pub name: &'static str,
    /// The difference from the default settings.
    pub summary: &'static str,
    sysctls: &'static [(&'static str, &'static str)],
    /// Options of `airtcp sink`.
    sink: &'static [&'static str],
    acks_every_segment: bool,
}

const DEFAULT: KernelProfile = KernelProfile {
    name: "linux",
    summary: "default settings",
    sysctls: &[],
    sink: &[],
    acks_every_segment: false,
};

/// All kernel profiles; the one with the default settings comes first.
pub const KERNEL_PROFILES: &[KernelProfile] = &[
    DEFAULT,
    KernelProfile {
        name: "linux-no-sack",
        summary: "without SACK",
        sysctls: &[("tcp_sack", "0")],
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-no-timestamps",
        summary: "without timestamps",
        sysctls: &[("tcp_timestamps", "0")],
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-bare",
        summary: "without SACK, timestamps and window scaling",
        sysctls: &[("tcp_sack", "0"), ("tcp_timestamps", "0"), ("tcp_window_scaling", "0")],
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-8k",
        summary: "a window of 8 KB",
        sink: &["--receive-buffer", "8192"],
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-1m",
        summary: "a window of 1 MB that does not grow",
        sink: &["--receive-buffer", "1048576"],
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-quickack",
        summary: "an ACK for every segment",
        acks_every_segment: true,
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-delayed-ack",
        summary: "delayed ACKs from the first segment on",
        sink: &["--delayed-ack"],
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-no-compression",
        summary: "a duplicate ACK for every segment out of order",
        sysctls: &[("tcp_comp_sack_nr", "0")],
        ..DEFAULT
    },
    KernelProfile {
        name: "linux-shrinking",
        summary: "shrinks its window",
        sysctls: &[("tcp_shrink_window", "1")],
        sink: &["--shrink-to", "8192"],
        ..DEFAULT
    },
];

/// Settings of every profile, because a new namespace inherits some settings of the machine.
const SYSCTLS: &[(&str, &str)] = &[
    ("tcp_rmem", "4096 131072 6291456"),
    ("tcp_sack", "1"),
    ("tcp_dsack", "1"),
    ("tcp_timestamps", "1"),
    ("tcp_window_scaling", "1"),
    ("tcp_moderate_rcvbuf", "1"),
    ("tcp_ecn", "2"),
];

/// A receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// `airtcp sink` on this kernel.
    Kernel(&'static KernelProfile),
    /// A third-party stack behind the mobile side's kernel.
    Stack {
        /// The name of the directory.
        name: String,
        /// The absolute path of the directory with `start` and `version`.
        directory: PathBuf,
    },
}

/// The address of a stack. Its gateway is the mobile side's kernel, which forwards packets to the stack.
const STACK: &str = "198.51.100.2";
const GATEWAY: &str = "198.51.100.1";
const NETWORK: &str = "198.51.100.0/24";
/// Every route over the path leads to a sender, so all these routes are changed.
const ACKNOWLEDGE_EVERY_SEGMENT: &str = "set -e; ip -4 route show | grep ' dev airlink' | while read -r route; do \
                                         ip route change $route quickack 1; done; ip -4 route show | grep -q quickack";
/// Time limit for the start, in which a guest kernel may have to boot.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The stacks that are built in this directory, sorted by name. Empty if it does not exist.
pub fn built(stacks: &Path) -> Vec<Receiver> {
    let Ok(entries) = fs::read_dir(stacks) else { return Vec::new() };
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names.iter().filter_map(|name| Receiver::find(name, stacks).ok()).collect()
}

impl Receiver {
    /// Returns the kernel profile of this name, or the stack of this name in `stacks`.
    ///
    /// # Errors
    ///
    /// Returns an error if neither exists.
    pub fn find(name: &str, stacks: &Path) -> Result<Self, LabError> {
        if let Some(profile) = KERNEL_PROFILES.iter().find(|profile| profile.name == name) {
            return Ok(Self::Kernel(profile));
        }
        let directory = stacks.join(name);
        if directory.join("start").is_file() {
            let directory = directory.canonicalize().map_err(LabError::file(&directory))?;
            return Ok(Self::Stack { name: name.to_owned(), directory });
        }
        let kernels = KERNEL_PROFILES.iter().map(|profile| profile.name).collect::<Vec<_>>().join(", ");
        Err(LabError::Environment(format!(
            "the receiver `{name}` is not built ({} is missing); build it with `interop/receivers/setup.sh {name}`, or use \
             a kernel receiver: {kernels}",
            directory.join("start").display()
        )))
    }

    /// The name on the command line.
    pub fn name(&self) -> &str {
        match self {
            Self::Kernel(profile) => profile.name,
            Self::Stack { name, .. } => name,
        }
    }

    /// The kernel's version and profile, or the content of the stack's file `version`.
    pub fn version(&self) -> String {
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        match self {
            Self::Kernel(profile) => {
                format!("Linux {}, {}", read(Path::new("/proc/sys/kernel/osrelease")), profile.summary)
            }
            Self::Stack { directory, .. } => read(&directory.join("version")),
        }
    }

    /// Returns true if the window has no reason to close: the program reads without limit, and the buffer can
    /// grow.
    pub(crate) fn reads_at_once(&self) -> bool {
        match self {
            Self::Kernel(profile) => {
                !profile.sink.iter().any(|word| ["--receive-buffer", "--shrink-to"].contains(word))
            }
            Self::Stack { .. } => false,
        }
    }

    /// The features that senders use. A stack counts as having all, because its features are unknown.
    pub(crate) fn receives(&self) -> ReceiverFeatures {
        let Self::Kernel(profile) = self else { return ReceiverFeatures::ALL };
        let is_on = |name: &str| {
            let mut settings = SYSCTLS.iter().chain(profile.sysctls).rev();
            settings.find(|(other, _)| *other == name).is_none_or(|(_, value)| *value != "0")
        };
        let sack = is_on("tcp_sack");
        let (dsack, timestamps) = (sack && is_on("tcp_dsack"), is_on("tcp_timestamps"));
        ReceiverFeatures { sack, dsack, timestamps, ecn: is_on("tcp_ecn") }
    }

    /// Checks that the receiver supports the workload. A stack is on the mobile side, accepts one connection,
    /// and reads at its own pace.
    ///
    /// # Errors
    ///
    /// Returns an error that names the unsupported option.
    pub fn check_workload(&self, workload: &Workload) -> Result<(), String> {
        let Self::Stack { name, .. } = self else { return Ok(()) };
        let cannot = match workload {
            Workload { directions: Directions::Up | Directions::Both, .. } => {
                "is on the mobile side: use --direction down"
            }
            Workload { flows, competitors, .. } if *flows > 1 || !competitors.is_empty() => {
                "accepts a single connection: omit --flows and --competitor"
            }
            Workload { read_rate: Some(_), .. } => "cannot limit its read rate: omit --read-rate",
            _ => return Ok(()),
        };
        Err(format!("the receiver {name} {cannot}, or use a kernel receiver (--receiver linux)"))
    }

    /// Sets up the side on which the receiver runs.
    pub(crate) fn prepare(
        &self,
        testbed: &mut Testbed,
        side: PathSide,
        directory: &Path,
    ) -> Result<(), LabError> {
        let log = directory.join("route.log");
        match self {
            Self::Kernel(profile) => {
                let side = testbed.side(side);
                for (name, value) in SYSCTLS.iter().chain(profile.sysctls) {
                    side.sysctl(&format!("net.ipv4.{name}"), value)?;
                }
                if profile.acks_every_segment {
                    side.run(&["sh", "-c", ACKNOWLEDGE_EVERY_SEGMENT], &log)?;
                }
                Ok(())
            }
            Self::Stack { .. } => {
                let mobile_addr = testbed.mobile.addr.clone();
                testbed.fixed.run(&["ip", "route", "add", NETWORK, "via", &mobile_addr], &log)?;
                testbed.mobile.sysctl("net.ipv4.ip_forward", "1")
            }
        }
    }

    /// Starts the receiver of one connection, and returns when it listens.
    pub(crate) fn start(
        &self,
        tools: &Tools,
        testbed: &mut Testbed,
        stream: &Stream<'_>,
        read_rate: Option<u64>,
        directory: &Path,
    ) -> Result<(Running, SocketAddr), LabError> {
        let stderr = stream.file(directory, "receiver", "log");
        let report = stream.file(directory, "receiver", "jsonl");
        let side = PathSide::receiving(stream.direction);
        let port = stream.port().to_string();
        let (start, addr, listens) = match self {
            Self::Kernel(profile) => {
                let mut argv = vec![tools.airtcp.to_string_lossy().into_owned()];
                argv.extend(["sink", &port, "--json", "--expect-pattern"].map(str::to_owned));
                argv.extend(profile.sink.iter().map(|&word| word.to_owned()));
                if let Some(rate) = read_rate {
                    argv.extend(["--read-rate".to_owned(), rate.to_string()]);
                }
                let stdout = Output::File(report.clone());
                let start = Start { argv, environment: Vec::new(), stdout, stderr };
                // A sink with `--json` reports on stdout that it listens.
                (start, testbed.side(side).addr.clone(), (report, "{"))
            }
            Self::Stack { directory: stack, .. } => {
                let variables = [
                    ("RECEIVER_ADDR", STACK),
                    ("RECEIVER_GATEWAY", GATEWAY),
                    ("RECEIVER_PREFIX", "24"),
                    ("RECEIVER_PORT", &port),
                ];
                let environment =
                    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
                let argv = vec![stack.join("start").to_string_lossy().into_owned()];
                let start = Start { argv, environment, stdout: Output::Digested, stderr: stderr.clone() };
                (start, STACK.to_owned(), (stderr, "listening"))
            }
        };
        let running = testbed.side(side).start(start)?;
        let (log, line) = listens;
        testbed.wait_for_line(running, &log, line, Instant::now() + START_TIMEOUT)?;
        let addr: IpAddr =
            addr.parse().map_err(|_| LabError::Transfer(format!("`{addr}` is not an address")))?;
        Ok((running, SocketAddr::new(addr, stream.port())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_follow_kernel_settings() {
        let of = |name: &str| Receiver::find(name, Path::new("")).unwrap().receives();
        for name in ["linux", "linux-8k", "linux-quickack", "linux-shrinking"] {
            assert_eq!(of(name), ReceiverFeatures::ALL, "{name}");
        }
        let no_sack = ReceiverFeatures { sack: false, dsack: false, ..ReceiverFeatures::ALL };
        assert_eq!(of("linux-no-sack"), no_sack);
        assert_eq!(
            of("linux-no-timestamps"),
            ReceiverFeatures { timestamps: false, ..ReceiverFeatures::ALL }
        );
        assert_eq!(of("linux-bare"), ReceiverFeatures { timestamps: false, ..no_sack });
    }
}
