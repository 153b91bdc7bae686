//! Errors that `airtcp lab` reports, for invalid options, missing programs and permissions, and a full disk.

use std::fs;
use std::process::Command;

use airtcp_testkit::machine::Ended;
use airtcp_testkit::programs::program;

use crate::scratch::{Scratch, ended, json, refused, transfers};

#[test]
fn invalid_lab_options_are_reported_in_one_line() {
    let scratch = Scratch::new("errors");
    refused(&ended(scratch.lab("a", &[])), 2, "no sender");
    refused(&ended(scratch.lab("b", &["--sender", "bsd:reno"])), 2, "linux:cubic");
    refused(&ended(scratch.lab("c", &["--recipe", "newrno"])), 2, "did you mean `newreno`");
    refused(&ended(scratch.lab("d", &["--recipe", "newreno", "--recipe", "newreno"])), 2, "given twice");
    refused(&ended(scratch.lab("e", &["--recipe", "newreno", "--set", "radio.down.rate=1Mbit"])), 2, "radio");
    let run = ended(scratch.lab("f", &["--recipe", "newreno", "--receiver", "vax"]));
    refused(&run, 3, "interop/receivers/setup.sh vax");
    fs::create_dir(scratch.0.join("full")).unwrap();
    fs::write(scratch.0.join("full/x"), "").unwrap();
    refused(&ended(scratch.lab("full", &["--recipe", "newreno"])), 2, "is not empty");
    let run = ended(scratch.lab("g", &["--sender", "linux:nonesuch", "--runs", "1"]));
    refused(&run, 3, "no congestion control `nonesuch`");
    assert!(!scratch.0.join("g").exists(), "the command is rejected before it creates its directory");
    refused(&ended(scratch.lab("h", &["--sender", "cubic"])), 2, "use --recipe cubic, or linux:cubic");
    let last = ["--recipe", "newreno", "--seed", "18446744073709551615", "--runs", "2"];
    refused(&ended(scratch.lab("i", &last)), 2, "--seed and --runs together are too large");
}

#[test]
fn missing_airlink_error_explains_build() {
    let scratch = Scratch::new("alone");
    let airtcp = scratch.path("airtcp");
    fs::copy(program("airtcp"), &airtcp).unwrap();
    let run = Command::new(&airtcp)
        .args(["lab", "run", "-s", "lossless", "--recipe", "reno"])
        .env("PATH", "/nowhere")
        .output();
    refused(&Ended::of(run.unwrap()), 3, "cargo build");
}

/// Runs a lab as an unprivileged user, in a mount namespace where /dev/net/tun has this mode.
fn as_unprivileged_user(scratch: &Scratch, mode: &str) -> Ended {
    // Other users may not be permitted to read the checkout.
    let built = program("airtcp");
    for program in ["airtcp", "airlink"] {
        fs::copy(built.with_file_name(program), scratch.0.join(program)).unwrap();
    }
    let script = "node=$0/tun; mknod \"$node\" c 10 200; chmod $1 \"$node\"; mount --bind \"$node\" /dev/net/tun; \
                  chmod 777 \"$0\"; shift; exec setpriv --reuid=65534 --regid=65534 --clear-groups -- \"$@\"";
    let command = scratch
        .lab("out", &["--recipe", "newreno", "--sender", "linux:reno", "--runs", "1", "--bytes", "100k"]);
    let airtcp = scratch.path("airtcp");
    let words = std::iter::once(airtcp.as_ref()).chain(command.get_args());
    let mut unshare = Command::new("unshare");
    unshare
        .args(["-m", "sh", "-c", script])
        .arg(scratch.0.as_os_str())
        .arg(mode)
        .args(words)
        .env("HOME", scratch.0.as_os_str());
    ended(unshare)
}

#[test]
fn unprivileged_user_with_tun_access_runs_lab() {
    let run = as_unprivileged_user(&Scratch::new("somebody"), "666");
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout.matches("1/1").count(), 2, "{}", run.stdout);
}

#[test]
fn missing_tun_permission_is_reported() {
    refused(&as_unprivileged_user(&Scratch::new("nobody"), "600"), 3, "/dev/net/tun");
}

// ----- a full disk -----

/// Runs the script in a separate mount namespace. `$0` is a directory where it mounts a small file system.
fn on_a_small_disk(scratch: &Scratch, bytes: &str, script: &str) -> Ended {
    let small = scratch.path("small");
    fs::create_dir(&small).unwrap();
    let lab = scratch.lab("small/out", &["--recipe", "newreno", "--bytes", bytes]);
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-c", script, &small]).arg(lab.get_program()).args(lab.get_args());
    ended(unshare)
}

#[test]
fn full_disk_ends_lab_with_error() {
    let script = "mount -t tmpfs -o size=300k none \"$0\" && exec \"$@\" --runs 1";
    let run = on_a_small_disk(&Scratch::new("disk"), "2M", script);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("No space left on device"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn full_disk_keeps_table_and_lab_resumes_later() {
    let scratch = Scratch::new("full-disk");
    let copies = scratch.path("copies");
    fs::create_dir(&copies).unwrap();
    // Each capture takes 100 kB on each side, and there are logs, so there is room for two or three
    // transfers.
    let script = format!(
        "mount -t tmpfs -o size=1m none \"$0\" || exit 9\n\
         \"$@\" --runs 20 >'{copies}/first' 2>'{copies}/stderr'; echo \"code $?\" >>'{copies}/stderr'\n\
         cp \"$0/out/lab.json\" '{copies}/first.json'\n\
         mount -o remount,size=20m none \"$0\" || exit 9\n\
         \"$@\" --runs \"$(($(grep -o '\"seed\"' '{copies}/first.json' | wc -l) + 1))\"; code=$?\n\
         cp \"$0/out/lab.json\" '{copies}/second.json'; exit $code"
    );
    let run = on_a_small_disk(&scratch, "100k", &script);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let [table, stderr] =
        ["first", "stderr"].map(|name| fs::read_to_string(scratch.0.join("copies").join(name)).unwrap());
    let [first, second] =
        ["first.json", "second.json"].map(|name| json(&scratch.0.join("copies").join(name)));
    let rounds = first["rounds"].as_u64().unwrap();
    assert!((1..20).contains(&rounds), "{stderr}");
    assert!(stderr.ends_with("code 1\n"), "{stderr}");
    assert!(stderr.contains("the disk is full") && stderr.contains("--output"), "{stderr}");
    assert!(stderr.contains(&format!("Complete rounds: {rounds}")), "{stderr}");
    assert!(table.lines().any(|line| line.contains(&format!(" {rounds}/{rounds} "))), "{table}");
    // No transfer failed because of the full disk.
    assert!(transfers(&first).iter().all(|transfer| transfer["failure"].is_null()), "{first}");
    assert_eq!(second["rounds"], rounds + 1);
    assert_eq!(transfers(&second)[..rounds as usize], transfers(&first)[..]);
    assert!(run.stderr.contains("[1/1]"), "only the missing transfer runs: {}", run.stderr);
}
