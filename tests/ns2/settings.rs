//! Converts the settings of a scenario to a profile and a recipe.

use airtcp::profile::Profile;
use airtcp::profile::recovery::{
    self, ExitWindow, InitialWindow, PartialAckDeflation, PartialAckTimer, RecoveryRules, Rounding,
};
use airtcp::recovery::Recipe;
use airtcp::rtt::{RtoLimits, TimerStyle};
use airtcp::tcp::Connection;
use airwire::time::Duration;

use crate::vector::{Careful, Flow, SenderKind};

pub(crate) fn profile(flow: &Flow) -> Profile {
    let mut profile = Profile::ns2();
    // Without a SYN in the scenario, the handshake takes no time, and its round trip is not an RTT sample.
    profile.timers.samples_handshake = flow.syn;
    profile.handshake.timestamps = flow.timestamps;
    profile.timers.rto.style = TimerStyle::Ns2 {
        tick: Duration::from_secs_f64(flow.tick),
        phase: Duration::from_secs_f64(flow.tick_phase),
        min_before_backoff: flow.min_rto_before_backoff,
    };
    profile.timers.rto.limits = RtoLimits {
        min: Duration::from_secs_f64(flow.min_rto),
        max: Duration::from_secs_f64(flow.max_rto),
        initial: Duration::from_secs_f64(flow.initial_rto),
    };
    set_recovery_rules(&mut profile.recovery, flow);
    profile
}

fn set_recovery_rules(rules: &mut RecoveryRules, flow: &Flow) {
    // Without delay_growth_, the ACK of segment 0 (the SYN) increases the window like any other ACK.
    let grown = u32::from(flow.syn && !flow.delay_growth);
    rules.initial.window = InitialWindow::Segments(flow.initial_window + grown);
    rules.initial.window_after_lost_syn = Some(f64::from(flow.initial_window_after_syn_loss));
    rules.decrease.rounding = if flow.precision_reduce { Rounding::WholeSsthresh } else { Rounding::Whole };
    rules.fast_recovery.careful = match flow.careful {
        Careful::Off => recovery::Careful::No,
        Careful::On => recovery::Careful::Yes,
        Careful::Less => recovery::Careful::Less,
        Careful::AckHeuristic => recovery::Careful::AckHeuristic { segments: 3 },
        Careful::TimestampHeuristic => recovery::Careful::TimestampHeuristic,
    };
    rules.fast_recovery.relaxed_recover_at = Some(u32::from(!flow.syn));
    rules.fast_recovery.partial_ack_timer =
        if flow.impatient { PartialAckTimer::Impatient } else { PartialAckTimer::SlowButSteady };
    rules.fast_recovery.partial_ack_deflation =
        if flow.partial_window_deflation { PartialAckDeflation::Rfc6582 } else { PartialAckDeflation::All };
    rules.fast_recovery.exit_window =
        if flow.exit_recovery_fix { ExitWindow::Outstanding } else { ExitWindow::Keep };
    rules.transmission.max_burst = (flow.max_burst > 0).then_some(flow.max_burst);
    if !flow.fast_retransmit {
        rules.detection.dup_thresh = u32::MAX;
    }
}

pub(crate) fn recipe(flow: &Flow) -> Result<Recipe, String> {
    let mut name = match flow.sender {
        // RFC 793 does not define fast retransmission. With slow start added, it is Tahoe without fast
        // retransmission.
        SenderKind::Tahoe | SenderKind::Rfc793 => "tahoe",
        SenderKind::Reno => "reno",
        SenderKind::Newreno => "newreno",
        SenderKind::Sack => "sack",
    }
    .to_owned();
    if flow.limited_transmit {
        name += "+limited-transmit";
    }
    if flow.frto {
        name += "+frto";
    }
    name.parse().map_err(|error| format!("recipe {name}: {error}"))
}

/// Formats the state of a sender on one line.
pub(crate) fn note(connection: &Connection) -> String {
    let cc = connection.recovery().congestion();
    let rtt = connection.rtt();
    format!(
        "{:?} cwnd {:.3} ssthresh {} inflation {} dupacks {} RTO {:?} SRTT {:?} RTTVAR {:?} backoff {}",
        cc.state(),
        cc.cwnd,
        cc.ssthresh,
        cc.inflation(),
        cc.dupacks(),
        rtt.rto().get(),
        rtt.srtt().unwrap_or_default(),
        rtt.rttvar(),
        rtt.backoff(),
    )
}
