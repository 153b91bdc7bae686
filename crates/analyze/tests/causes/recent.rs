//! The verdict about the last seconds follows a path that changes.

use std::io::Cursor;

use aircaptures::{Capture, capture::Next};
use airtcp_analyze::connection::findings::Cause;
use airtcp_analyze::survey::{Progress, Survey};
use airtcp_analyze::{Limits, Traces};
use airwire::time::Duration;

use crate::cases::path;
use crate::transfer::Transfer;

const SECOND: i64 = 1_000_000_000;
/// The second in which the path changes. The change must be visible `NOTICED_WITHIN` seconds later.
const CHANGE: i64 = 20;
const NOTICED_WITHIN: i64 = 7;

/// Returns the verdicts about the last seconds, one per second, and the last one of the whole connection.
fn recent_causes(capture: Vec<u8>) -> (Vec<Cause>, Cause) {
    let mut capture = Capture::of("capture", Cursor::new(capture)).unwrap();
    let mut survey = Survey::new(Traces::None, Limits::default()).judging_recent();
    let (mut causes, mut whole) = (Vec::new(), Cause::Undetermined);
    loop {
        let next = capture.read();
        let at = if let Next::Frame(frame) = &next { Some(frame.at) } else { None };
        if survey.feed(next, &mut |_| {}) == Progress::End {
            return (causes, whole);
        }
        let Some((at, begin)) = at.zip(survey.begin()) else { continue };
        if at.0 - begin.0 < (causes.len() as i64 + 1) * SECOND {
            continue;
        }
        let Some(connection) = survey.followed().next() else { continue };
        let recent = survey.recent(connection.ends, at).unwrap();
        assert!(recent.seconds <= 8.1, "{recent:?}");
        causes.push(recent.verdict.cause);
        whole = survey.results_so_far(connection.ends).unwrap().findings.verdict.cause;
    }
}

fn check(before: Cause, after: Cause, transfer: Transfer, seed: u64) {
    for (capture, place) in transfer.run(seed).into_iter().zip(["sender", "receiver"]) {
        let (causes, whole) = recent_causes(capture);
        let context = format!("{before} then {after}, seed {seed}, at the {place}: {causes:?}, {whole}");
        let (early, late) = causes.split_at(CHANGE as usize);
        assert!(early[8..].iter().all(|cause| *cause == before), "{context}");
        assert!(late[NOTICED_WITHIN as usize..].iter().all(|cause| *cause == after), "{context}");
    }
}

fn loss(per: &str) -> String {
    format!("[[stage]]\nkind = \"loss\"\nname = \"radio\"\ndown = {{ model = \"uniform\", per = \"{per}\" }}")
}

fn changing(before: String, after: String) -> Transfer {
    let later = Some((Duration::from_secs(CHANGE as u64), after));
    Transfer { later, lasts: Duration::from_secs(40), ..Transfer::over(before) }
}

#[test]
fn recent_cause_follows_losses_that_begin() {
    for seed in [1, 2] {
        let (before, after) =
            (path(4_000.0, 40.0, 30_000.0, ""), path(100_000.0, 40.0, 300_000.0, &loss("0.5%")));
        check(Cause::LinkRate, Cause::RandomLoss, changing(before, after), seed);
    }
}

#[test]
fn recent_cause_follows_queue_that_grows() {
    for seed in [1, 2] {
        let (before, after) = (path(20_000.0, 30.0, 60_000.0, ""), path(2_000.0, 30.0, 400_000.0, ""));
        check(Cause::LinkRate, Cause::Bufferbloat, changing(before, after), seed);
    }
}
