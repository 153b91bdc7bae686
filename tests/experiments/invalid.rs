//! Transfers that a busy machine or a clock step has disturbed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use airtcp_testkit::machine::{Ended, airtcp};
use serde_json::Value;

use crate::processes::{LabProcess, wait_for};
use crate::scratch::{Scratch, succeeded};

/// Installs an `airlink` that reports late packets in its first `late_runs` runs and none in later runs, even
/// on a busy machine.
fn late_airlink(scratch: &Scratch, late_runs: u32) -> PathBuf {
    let count = scratch.path("count");
    fs::write(&count, "").unwrap();
    scratch.airtcp_with_airlink(&format!(
        "\"$airlink\" \"$@\"; code=$?\n\
         for word; do [ \"$last\" = --summary ] && file=$word; last=$word; done\n\
         late=0; [ \"$(wc -l <'{count}')\" -lt {late_runs} ] && late=99000000\n\
         if [ -n \"$file\" ]; then echo >>'{count}'; sed -i \"s/\\\"p99\\\":[0-9]*/\\\"p99\\\":$late/\" \"$file\"; fi\n\
         exit $code"
    ))
}

/// `airtcp lab run` by this program.
fn lab_by(program: &Path, scratch: &Scratch, more: &[&str]) -> Command {
    let lab = scratch.lab("out", more);
    let mut command = Command::new(program);
    command.args(lab.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// On a busy machine the kernel takes seconds to remove network namespaces.
#[test]
fn slow_airlink_exit_does_not_fail_transfer() {
    let scratch = Scratch::new("slow-end");
    let slow = "\"$airlink\" \"$@\"; code=$?; [ \"$1\" = run ] && sleep 6; exit $code";
    let program = scratch.airtcp_with_airlink(slow);
    let run =
        succeeded(lab_by(&program, &scratch, &["--recipe", "newreno", "--runs", "1", "--bytes", "20k"]));
    assert!(run.stdout.contains("1/1"), "{}", run.stdout);
}

#[test]
fn invalid_transfers_are_repeated_then_left_out() {
    const LATE: &str = "at least 1 % of the packets left the path more than 99 ms late";
    let lab = |scratch: &Scratch, late_runs: u32| {
        let program = late_airlink(scratch, late_runs);
        let options = ["--recipe", "newreno", "--runs", "2", "--bytes", "20k", "--virtual"];
        let run = succeeded(lab_by(&program, scratch, &options));
        assert!(
            run.stderr.lines().next().is_some_and(|first| first.contains(", repeated: ")),
            "{}",
            run.stderr
        );
        (scratch.report(), run.stdout)
    };
    let scratch = Scratch::new("late-once");
    let (report, table) = lab(&scratch, 1);
    assert!(table.contains("1 repeated, 0 left out"), "{table}");
    assert_eq!(report["transfers"][0]["repeated"][0], LATE);
    let page = scratch.path("page.html");
    succeeded(airtcp(&["report", &scratch.path("out"), "-o", &page]));
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("1 repeated") && page.contains("exact, repeated: at least 1 %"),
        "the page agrees with the table"
    );
    assert_eq!(report["summary"][0]["kbit_per_s"]["samples"], 2, "{report}");

    let scratch = Scratch::new("late-always");
    let (report, table) = lab(&scratch, 3);
    assert!(table.contains("2 repeated, 1 left out"), "{table}");
    assert_eq!(
        (&report["transfers"][0]["invalid"], &report["transfers"][1]["invalid"]),
        (&LATE.into(), &Value::Null)
    );
    assert_eq!(report["summary"][0]["kbit_per_s"]["samples"], 1, "{report}");
    assert_eq!(report["summary"][0]["succeeded"], 2, "every byte arrived");
    let compared = &report["in_virtual_time"][0];
    let failure = compared["rounds"][0]["failure"].as_str().unwrap();
    assert!(failure.contains("left out") && failure.contains(LATE), "{failure}");
    assert_eq!(
        (&compared["rounds"][1]["failure"], &compared["real_kbit_per_s"]["samples"]),
        (&Value::Null, &1.into())
    );

    // A lab that is resumed without --virtual keeps the results of the comparison.
    let (_, extended) = scratch.run_lab(&["--recipe", "newreno", "--runs", "3", "--bytes", "20k"]);
    assert_eq!((&extended["rounds"], &extended["in_virtual_time"]), (&3.into(), &report["in_virtual_time"]));
}

/// A library for LD_PRELOAD that sets the wall clock 100 ms ahead as soon as the file in CLOCK_IS_SET_BY
/// exists.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    const char *file = getenv("CLOCK_IS_SET_BY");
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME && file && access(file, F_OK) == 0) {
        now->tv_nsec += 100 * 1000 * 1000;
        if (now->tv_nsec >= 1000000000) { now->tv_nsec -= 1000000000; now->tv_sec += 1; }
    }
    return result;
}
"#;

#[test]
fn clock_step_invalidates_transfer_in_progress() {
    let scratch = Scratch::new("clock");
    let [source, library, trigger] = ["clock.c", "clock.so", "trigger"].map(|name| scratch.path(name));
    fs::write(&source, CLOCK).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source]).status();
    assert!(built.expect("this test needs a C compiler: apt-get install gcc").success());
    let mut lab = scratch.lab("out", &["--recipe", "newreno", "--runs", "2", "--bytes", "300k"]);
    let lab = lab.env("LD_PRELOAD", &library).env("CLOCK_IS_SET_BY", &trigger).spawn().unwrap();
    wait_for("the first transfer's sender", || LabProcess::Sender.pid(lab.id()));
    fs::write(&trigger, "").unwrap();
    let run = Ended::of(lab.wait_with_output().unwrap());
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let report = scratch.report();
    // A busy machine may add other reasons.
    let clock_reasons = |index: usize| {
        let mut reasons = report["transfers"][index]["repeated"].as_array().cloned().unwrap_or_default();
        reasons.retain(|reason| reason.as_str().is_some_and(|reason| reason.starts_with("the clock ")));
        reasons
    };
    assert_eq!(clock_reasons(0), ["the clock of this machine was set by +100 ms"]);
    assert_eq!(clock_reasons(1), [""; 0]);
    assert!(run.stdout.contains(" repeated, "), "{}", run.stdout);
}
