//! The programs run for an ordinary user in the three ways that docs/getting-started/install.md describes.

use std::fs;
use std::process::Command;

use airtcp_testkit::machine::{Ended, TempDir};
use airtcp_testkit::programs::{program, repository};

/// A directory that every user can read, with the programs and a directory for results. `also` is a command
/// that runs there.
fn installed(name: &str, also: &str) -> TempDir {
    let directory = TempDir::new(name);
    for program in ["airtcp", "airtcp-serve", "airlink"].map(program) {
        fs::copy(&program, directory.path(program.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let script = format!("chmod 755 . airtcp airtcp-serve airlink && mkdir -m 777 results && {also}");
    let made = Command::new("sh").args(["-ec", &script]).current_dir(&directory).status().unwrap();
    assert!(made.success(), "{script}");
    directory
}

/// Runs a script as an unprivileged user. All users may open `/dev/net/tun`, as with udev. `capabilities` are
/// options of setpriv.
fn as_user(directory: &TempDir, capabilities: &str, script: &str) -> Ended {
    let device = "mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200";
    let user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let all = format!("{device} && exec timeout 60 {user} {capabilities} sh -c \"$1\"");
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-ec", &all, "sh", script]).current_dir(directory);
    Ended::of(unshare.output().unwrap())
}

/// The capabilities of a command that airlink runs, a transfer through airlink, and an experiment.
const RUN: &str = "\
    ./airlink run -s lossless --server true -- grep CapEff /proc/self/status && \
    ./airlink run -s lossless --server './airtcp sink 9000' -- \
      sh -c 'sleep 1; ./airtcp source --bytes 100k $AIRLINK_FIXED:9000' && \
    ./airtcp lab run -s lossless --recipe newreno --bytes 100k --runs 1 --output results/lab";

#[test]
fn file_capabilities_suffice_for_links_and_labs() {
    let set = "setcap cap_net_admin,cap_sys_admin+ep airtcp && setcap cap_net_admin,cap_sys_admin+ep airlink";
    let directory = installed("file-capabilities", set);
    let ended = as_user(&directory, "--inh-caps=-all", RUN).success();
    // In a user namespace, which is the fallback, the command would have capabilities.
    assert!(ended.stdout.contains("CapEff:\t0000000000000000"), "{}", ended.stdout);
    assert!(ended.stdout.contains("1/1"), "{}", ended.stdout);
}

#[test]
fn user_namespace_suffices_for_links_and_labs() {
    let directory = installed("user-namespace", "true");
    let ended = as_user(&directory, "--inh-caps=-all --bounding-set=-all", RUN).success();
    assert!(!ended.stdout.contains("CapEff:\t0000000000000000"), "{}", ended.stdout);
    assert!(ended.stdout.contains("1/1"), "{}", ended.stdout);
}

/// Runs the command line in packaging/airtcp-serve.service.
#[test]
fn serve_needs_one_capability() {
    let unit = fs::read_to_string(repository().join("packaging/airtcp-serve.service")).unwrap();
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/")).unwrap();
    assert!(unit.contains("AmbientCapabilities=CAP_NET_ADMIN\n"), "{unit}");
    let directory = installed("one-capability", "sysctl -qw net.ipv4.ip_forward=1");
    let fetch = "curl -sf --retry 20 --retry-delay 1 --retry-all-errors --connect-timeout 2 --max-time 30";
    let script = format!(
        "cd results; head -c 300000 /dev/zero > data; \
         python3 -m http.server 8080 --bind 127.0.0.1 >/dev/null 2>&1 & server=$!; \
         ../{command} & serve=$!; \
         {fetch} http://10.83.0.2/data | wc -c; kill $serve $server; wait"
    );
    let one = "--bounding-set=-all,+net_admin --inh-caps=-all,+net_admin --ambient-caps=-all,+net_admin";
    let ended = as_user(&directory, one, &script);
    assert!(ended.stdout.contains("300000\n"), "{}{}", ended.stdout, ended.stderr);
}
