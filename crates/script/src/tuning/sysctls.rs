//! The sysctls and settings that change a parameter of the profile, one row each.

use airtcp::profile::recovery::{AfterIdle, InitialWindow};
use airtcp::profile::{
    AckCompression, AckRules, Challenge, FastOpenRules, LinuxAcks, MtuLimits, MtuProbing, MtuSearch,
    OpeningErrors, Profile, ReceiveMemory, SackOffer, SynFin, WindowUpdate,
};
use airwire::time::Duration;

use super::{Tuning, fast_open};

/// Applies a setting.
type Set = fn(&mut Tuning, &Setting<'_>) -> Result<(), String>;

/// The last components of the names of sysctls, and airtcp's settings.
pub(super) const SYSCTLS: &[(&str, Set)] = &[
    // Handshake.
    ("tcp_timestamps", |it, s| s.on().map(|on| it.profile.handshake.timestamps = on)),
    ("tcp_sack", |it, s| {
        it.profile.handshake.sack = if s.on()? { SackOffer::Always } else { SackOffer::Never };
        Ok(())
    }),
    ("tcp_window_scaling", set_window_scaling),
    // Timestamps and window scaling together.
    ("rfc1323", |it, s| {
        it.profile.handshake.timestamps = s.on()?;
        set_window_scaling(it, s)
    }),
    ("window_scale", |it, s| s.up_to(14).map(|scale| it.profile.handshake.window_scale = Some(scale as u8))),
    ("tcp_ecn", |it, s| {
        // Higher values are Accurate ECN.
        let mode = s.up_to(2)?;
        (it.profile.handshake.ecn, it.profile.handshake.ecn_passive) = (mode == 1, mode != 0);
        Ok(())
    }),
    ("tcp_syn_retries", |it, s| {
        let handshake = &mut it.profile.handshake;
        handshake.syn_ack_retries.get_or_insert(handshake.syn_retries);
        // The profile's minimum time must not extend an explicit count.
        (handshake.syn_retries, handshake.min_syn_time) = (s.count()?, Duration::ZERO);
        Ok(())
    }),
    ("tcp_syn_linear_timeouts", |it, s| {
        it.profile.handshake.syn_linear_timeouts = s.up_to(255)? as u16;
        Ok(())
    }),
    ("tcp_synack_retries", |it, s| {
        let handshake = &mut it.profile.handshake;
        (handshake.syn_ack_retries, handshake.min_syn_time) = (Some(s.count()?), Duration::ZERO);
        Ok(())
    }),
    ("drop_synfin", |it, s| {
        it.profile.handshake.syn_fin = if s.on()? { SynFin::Drop } else { SynFin::Accepted };
        Ok(())
    }),
    ("mss", |it, s| s.up_to(u16::MAX.into()).map(|mss| it.profile.handshake.mss = Some(mss as u16))),
    ("tcp_fastopen", |it, s| {
        let fast_open = &mut it.profile.handshake.fast_open;
        let rules = fast_open::rules(s.value).ok_or_else(|| s.expected("a number"))?;
        *fast_open = FastOpenRules { black_hole: fast_open.black_hole, ..rules };
        Ok(())
    }),
    ("tcp_fastopen_blackhole_timeout_sec", |it, s| {
        it.profile.handshake.fast_open.black_hole = Duration::from_secs(s.number()?);
        Ok(())
    }),
    ("tcp_fastopen_key", |it, s| {
        let keys = fast_open::keys(s.value);
        it.fast_open_keys = keys.ok_or_else(|| s.expected("four hexadecimal numbers such as 1-2-3-4"))?;
        Ok(())
    }),
    // ACKs.
    ("tcp_dsack", |it, s| s.on().map(|on| it.profile.acks.dsack = on)),
    ("ack_delay_ms", |it, s| {
        s.must_not_be_linux(it)?;
        s.millis().map(|delay| it.profile.acks.policy.delay = delay)
    }),
    ("ack_every", |it, s| {
        s.must_not_be_linux(it)?;
        s.count().map(|every| it.profile.acks.policy.every = every)
    }),
    ("quick_acks", |it, s| {
        s.must_be_linux(it)?;
        let quick = s.count()?;
        if let AckRules::Linux(acks) = &mut it.profile.acks.policy.rules {
            acks.quick = quick;
        }
        Ok(())
    }),
    ("tcp_comp_sack_nr", |it, s| {
        let most = s.count()?;
        // Other profiles do not compress ACKs, so only 0 is valid.
        if most > 0 {
            s.must_be_linux(it)?;
        }
        if let AckRules::Linux(acks) = &mut it.profile.acks.policy.rules {
            let default = LinuxAcks::DEFAULT.compression;
            acks.compression = default.filter(|_| most > 0).map(|it| AckCompression { most, ..it });
        }
        Ok(())
    }),
    // Buffers.
    ("tcp_rmem", |it, s| {
        let (initial, most) = s.initial_and_most()?;
        match &mut it.profile.acks.window_update {
            WindowUpdate::Tuned(memory) => *memory = ReceiveMemory { initial, most },
            // Profiles with these rules have a buffer of fixed size.
            WindowUpdate::Doubled | WindowUpdate::QuarterBuffer => it.profile.acks.recv_buffer = initial,
        }
        Ok(())
    }),
    // The kernel's send buffer grows with the congestion window up to the maximum. airtcp's has its
    // maximum size from the start, as in every profile.
    ("tcp_wmem", |it, s| s.initial_and_most().map(|(_, most)| it.profile.sending.send_buffer = most)),
    ("rmem_max", |it, s| s.number().map(|most| it.profile.acks.recv_buffer_max = most as usize)),
    // The window is the free part of a buffer of this size, which does not grow.
    ("recv_buffer", |it, s| {
        it.profile.acks.recv_buffer = s.number()? as usize;
        if let WindowUpdate::Tuned(_) = it.profile.acks.window_update {
            it.profile.acks.window_update = WindowUpdate::Doubled;
        }
        Ok(())
    }),
    // Loss detection and congestion control.
    ("tcp_slow_start_after_idle", |it, s| {
        it.profile.recovery.growth.after_idle = if s.on()? { AfterIdle::Decay } else { AfterIdle::Keep };
        Ok(())
    }),
    ("tcp_reordering", |it, s| s.count().map(|count| it.profile.recovery.detection.dup_thresh = count)),
    ("limited_transmit", |it, s| s.on().map(|on| it.profile.recovery.detection.limited_transmit = on)),
    ("initial_window", |it, s| {
        it.profile.recovery.initial.window = InitialWindow::Segments(s.count()?);
        Ok(())
    }),
    ("beta", |it, s| {
        it.profile.recovery.decrease.beta = s.value.parse().map_err(|_| s.expected("a fraction"))?;
        Ok(())
    }),
    // Timers.
    ("tcp_retries1", |it, s| s.count().map(|count| it.profile.timers.reported_retries = count)),
    ("tcp_retries2", |it, s| s.count().map(|count| it.profile.timers.retries = count)),
    ("initial_rto_ms", |it, s| s.millis().map(|rto| it.profile.timers.rto.limits.initial = rto)),
    ("min_rto_ms", |it, s| s.millis().map(|rto| it.profile.timers.rto.limits.min = rto)),
    ("max_rto_ms", |it, s| s.millis().map(|rto| it.profile.timers.rto.limits.max = rto)),
    ("time_wait_ms", |it, s| s.millis().map(|time| it.profile.timers.time_wait = time)),
    // Validation of segments.
    ("tcp_challenge_ack_limit", |it, s| {
        s.count().map(|count| it.profile.validation.challenge_acks_per_second = count)
    }),
    ("tcp_invalid_ratelimit", |it, s| {
        s.millis().map(|interval| it.profile.validation.challenge_interval = interval)
    }),
    ("insecure_rst", |it, s| s.challenge().map(|rule| it.profile.validation.challenge_rst = rule)),
    ("insecure_syn", |it, s| s.challenge().map(|rule| it.profile.validation.challenge_syn = rule)),
    // ICMP and the path MTU.
    ("ip_no_pmtu_disc", |it, s| s.on().map(|on| it.profile.icmp.pmtu_discovery = !on)),
    ("tcp_mtu_probing", |it, s| {
        it.profile.icmp.mtu_probing = match s.up_to(2)? {
            0 => MtuProbing::Off,
            1 => MtuProbing::OnLoss,
            _ => MtuProbing::Always,
        };
        Ok(())
    }),
    ("pmtud_blackhole_detection", |it, s| {
        it.profile.icmp.mtu_probing = if s.on()? { MtuProbing::OnLoss } else { MtuProbing::Off };
        Ok(())
    }),
    ("tcp_base_mss", |it, s| set_limit(it, s, |limits, number| limits.base_mss = mss(number))),
    ("tcp_mtu_probe_floor", |it, s| set_limit(it, s, |limits, number| limits.floor = mss(number))),
    ("tcp_min_snd_mss", |it, s| set_limit(it, s, |limits, number| limits.least_mss = mss(number))),
    ("tcp_probe_threshold", |it, s| set_limit(it, s, |limits, number| limits.threshold = number as u32)),
    ("tcp_probe_interval", |it, s| {
        set_limit(it, s, |limits, number| limits.interval = Duration::from_secs(number))
    }),
    ("opening_errors", |it, s| {
        it.profile.icmp.opening_errors = match s.value {
            "hard" => OpeningErrors::Hard,
            "all" => OpeningErrors::All,
            "freebsd" => OpeningErrors::FreeBsd,
            _ => return Err(s.expected("`hard`, `all` or `freebsd`")),
        };
        Ok(())
    }),
];

/// A setting with its value as written.
pub(super) struct Setting<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl Setting<'_> {
    fn expected(&self, what: &str) -> String {
        format!("`{}={}`: expected {what}", self.name, self.value)
    }

    fn parse(&self, word: &str, most: u64) -> Result<u64, String> {
        match word.parse::<u64>() {
            Ok(number) if number <= most => Ok(number),
            Ok(_) => Err(self.expected(&format!("a number up to {most}"))),
            Err(_) => Err(self.expected("a number")),
        }
    }

    fn up_to(&self, most: u64) -> Result<u64, String> {
        self.parse(self.value.trim(), most)
    }

    /// Sysctls are of type int.
    fn number(&self) -> Result<u64, String> {
        self.up_to(i32::MAX as u64)
    }

    fn count(&self) -> Result<u32, String> {
        self.number().map(|number| number as u32)
    }

    fn millis(&self) -> Result<Duration, String> {
        self.number().map(Duration::from_millis)
    }

    fn on(&self) -> Result<bool, String> {
        self.number().map(|number| number != 0)
    }

    fn challenge(&self) -> Result<Challenge, String> {
        self.on().map(|insecure| if insecure { Challenge::Rfc793 } else { Challenge::Rfc5961 })
    }

    /// Returns the initial and the maximum size of a buffer. The minimum has no effect, because it is for
    /// a kernel with little memory.
    fn initial_and_most(&self) -> Result<(usize, usize), String> {
        let [least, initial, most] = self.value.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(self.expected("three numbers: minimum, initial size, maximum"));
        };
        let size = |word| self.parse(word, i32::MAX as u64).map(|size| size as usize);
        size(least)?;
        Ok((size(initial)?, size(most)?))
    }

    fn must_be_linux(&self, tuning: &Tuning) -> Result<(), String> {
        if is_linux(tuning) {
            return Ok(());
        }
        Err(format!("`{}={}`: only profile linux has this setting", self.name, self.value))
    }

    fn must_not_be_linux(&self, tuning: &Tuning) -> Result<(), String> {
        if !is_linux(tuning) {
            return Ok(());
        }
        Err(format!("`{}={}`: profile linux does not have this setting", self.name, self.value))
    }
}

fn is_linux(tuning: &Tuning) -> bool {
    tuning.profile.acks.policy.rules != AckRules::Plain
}

/// Switches window scaling off, or on with the scale of the profile.
fn set_window_scaling(tuning: &mut Tuning, setting: &Setting<'_>) -> Result<(), String> {
    let default = Profile::by_name(tuning.profile.name).and_then(|profile| profile.handshake.window_scale);
    let scale = &mut tuning.profile.handshake.window_scale;
    *scale = if setting.on()? { scale.or(default) } else { None };
    Ok(())
}

/// Changes a limit of Linux's search for the path MTU. Other profiles search differently.
fn set_limit(tuning: &mut Tuning, setting: &Setting<'_>, set: fn(&mut MtuLimits, u64)) -> Result<(), String> {
    let number = setting.number()?;
    if let MtuSearch::Linux(limits) = &mut tuning.profile.icmp.mtu_search {
        set(limits, number);
    }
    Ok(())
}

fn mss(number: u64) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
