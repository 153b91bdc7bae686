//! The rows of all options.

use airwire::time::Duration;

use super::{Need, Row};
use crate::profile::recovery::{InitialWindow, Pacing};
use crate::profile::{AckPolicy, SackOffer, Timer};

pub(super) const OPTIONS: &[Row] = &[
    Row::option(
        "limited-transmit",
        "limited transmit",
        |p| p.recovery.detection.limited_transmit = true,
        "a new segment for each of the first two duplicate ACKs",
        "RFC 3042",
    ),
    Row::option(
        "no-limited-transmit",
        "limited transmit",
        |p| p.recovery.detection.limited_transmit = false,
        "no limited transmit, even if the profile has it",
        "RFC 3042",
    ),
    Row::option(
        "liw",
        "initial window",
        |p| {
            p.recovery.initial.window = InitialWindow::Segments(2);
            p.recovery.timeout.loss_window = 2.0;
            p.recovery.initial.window_after_lost_syn = None;
        },
        "initial window of two segments, also after every restart",
        "Pan et al. 2004, §4.2, RFC 2414",
    ),
    Row::option(
        "iw3390",
        "initial window",
        |p| p.recovery.initial.window = InitialWindow::Rfc3390,
        "initial window of up to four segments, 4380 bytes",
        "RFC 3390",
    ),
    Row::option(
        "pacing",
        "pacing",
        |p| p.recovery.transmission.pacing = Some(Pacing::LINUX),
        "paced segments: two windows per round trip in slow start, 1.2 later, unless the window algorithm sets a rate",
        "Linux, tcp_update_pacing_rate()",
    ),
    Row::number(
        "max-rate",
        "maximum rate",
        (1.0, 100e6, "kbit/s"),
        |p, n| p.recovery.transmission.max_rate = Some(n * 1e3 / 8.0),
        "paced segments, never faster than this rate (payload without headers)",
        "Linux, SO_MAX_PACING_RATE",
    ),
    Row::option(
        "tso-defer",
        "pieces",
        |p| p.sending.defers = true,
        "data waits for an ACK instead of leaving in a burst of less than two segments",
        "Linux, tcp_tso_should_defer()",
    ),
    Row::option(
        "iw10",
        "initial window",
        |p| p.recovery.initial.window = InitialWindow::Rfc6928,
        "initial window of ten segments, 14600 bytes",
        "RFC 6928",
    ),
    Row::number(
        "iw",
        "initial window",
        (1.0, 1000.0, "segments"),
        |p, n| p.recovery.initial.window = InitialWindow::Segments(n as u32),
        "initial window of N segments",
        "RFC 5681 §3.1",
    ),
    Row::number(
        "beta",
        "decrease",
        (0.1, 0.95, ""),
        |p, n| p.recovery.decrease.beta = n,
        "factor by which a loss multiplies the window (0.5)",
        "RFC 5681 §3.1",
    ),
    Row::number(
        "min-ssthresh",
        "minimum ssthresh",
        (1.0, 100.0, "segments"),
        |p, n| {
            p.recovery.decrease.min_ssthresh = n;
            // Fast recovery starts and ends with a window of ssthresh, so the window's lower bound must not
            // be higher.
            p.recovery.decrease.min_window = p.recovery.decrease.min_window.min(n);
        },
        "lower bound of ssthresh after a loss (2); a value below two also bounds the window",
        "Chandra et al. 2003, Table 2, RFC 5681 equation 4",
    ),
    Row::number(
        "mss",
        "segment size",
        (64.0, 65_000.0, "bytes"),
        |p, n| p.handshake.mss = Some(n as u16),
        "advertised maximum segment size, which limits the segments of the other host (less if a packet is smaller)",
        "RFC 9293 §3.7.1",
    ),
    Row::option(
        "reordering-alarm",
        "reordering alarm",
        |p| p.acks.reordering_alarm = true,
        "receiver: ACKs report how many segments were reordered by more than three",
        "Lai et al. 2013, §III B",
    ),
    Row::option(
        "delack",
        "delayed ACK",
        |p| p.acks.policy = AckPolicy::DELAYED,
        "receiver: one ACK per two segments, or after 40 ms",
        "RFC 5681 §4.2",
    ),
    Row::number(
        "delack-time",
        "delayed ACK",
        (1.0, 500.0, "ms"),
        |p, n| p.acks.policy = AckPolicy { delay: Duration::from_secs_f64(n / 1e3), ..AckPolicy::DELAYED },
        "receiver: one ACK per two segments, or after this time",
        "RFC 5681 §4.2; Pan et al. 2004, §3.1",
    ),
    Row::option(
        "no-delack",
        "delayed ACK",
        |p| p.acks.policy = AckPolicy::EVERY,
        "receiver: one ACK per segment (ND in Pan et al.)",
        "Pan et al. 2004, §3.2.1",
    ),
    Row::option(
        "no-sack",
        "SACK",
        |p| p.handshake.sack = SackOffer::Never,
        "SACK neither offered nor accepted",
        "RFC 2018",
    ),
    Row::option(
        "offer-sack",
        "SACK",
        |p| p.handshake.sack = SackOffer::Always,
        "SACK offered even if the sender does not use it",
        "RFC 2018",
    ),
    Row::option(
        "no-timestamps",
        "timestamps",
        |p| p.handshake.timestamps = false,
        "timestamps neither offered nor accepted",
        "RFC 7323",
    ),
    Row::option(
        "timestamps",
        "timestamps",
        |p| p.handshake.timestamps = true,
        "timestamps offered, even if the profile does not offer them",
        "RFC 7323",
    ),
    Row::option(
        "no-window-scale",
        "window scale",
        |p| p.handshake.window_scale = None,
        "window scaling neither offered nor accepted: windows of at most 65535 bytes, exact to the byte",
        "RFC 7323",
    ),
    Row::option(
        "ecn",
        "ECN",
        |p| p.handshake.ecn = true,
        "explicit congestion notification negotiated",
        "RFC 3168",
    )
    .needs(&[Need::Ecn, Need::EcnMarks]),
    Row::option(
        "no-handshake-rtt",
        "handshake RTT",
        |p| p.timers.samples_handshake = false,
        "the handshake provides no RTT sample",
        "ns-2's one-way agents, which have no handshake",
    ),
    Row::option(
        "timer-rfc6298",
        "timer",
        |p| p.timers.rto = Timer::RFC6298,
        "SRTT + max(G, 4·RTTVAR), at least 1 s",
        "RFC 6298",
    ),
    Row::option(
        "timer-bsd",
        "timer",
        |p| p.timers.rto = Timer::BSD,
        "500 ms ticks, at least 1 s, one segment timed",
        "Inamura et al. 2009, §2.2; 4.4BSD",
    ),
    Row::option(
        "timer-freebsd22",
        "timer",
        |p| p.timers.rto = Timer::FREEBSD22,
        "500 ms ticks, at least 1 s, timestamp of each ACK",
        "Inamura et al. 2009, Fig. 5; FreeBSD 2.2, tcp_timer.h",
    ),
    Row::option(
        "timer-freebsd45",
        "timer",
        |p| p.timers.rto = Timer::FREEBSD45,
        "10 ms ticks, at least 1 s, timestamp of each ACK",
        "Inamura et al. 2009, Fig. 5; FreeBSD 4.5, tcp_timer.h",
    ),
    Row::option(
        "timer-linux22",
        "timer",
        |p| p.timers.rto = Timer::LINUX22,
        "at least 200 ms, stretched for small windows",
        "Inamura et al. 2009, Fig. 5",
    ),
    Row::option(
        "timer-linux24",
        "timer",
        |p| p.timers.rto = Timer::LINUX24,
        "variance term of at least 200 ms",
        "Inamura et al. 2009, Fig. 5",
    ),
    Row::option(
        "timer-solaris",
        "timer",
        |p| p.timers.rto = Timer::SOLARIS,
        "1.25·SRTT + 4·RTTVAR, at least 400 ms",
        "Inamura et al. 2009, Fig. 5",
    ),
    Row::number(
        "timer-ns2",
        "timer",
        (1.0, 1000.0, "ms"),
        |p, n| p.timers.rto = Timer::ns2(Duration::from_secs_f64(n / 1e3)),
        "timer of ns-2: ticks of this length, at least two of them, one segment timed",
        "Pan et al. 2004, §3.1",
    ),
    Row::number(
        "min-rto",
        "minimum RTO",
        (1.0, 60_000.0, "ms"),
        |p, n| p.timers.rto.limits.min = Duration::from_secs_f64(n / 1e3),
        "lower bound of the retransmission timeout",
        "RFC 6298 (2.4)",
    ),
    Row::number(
        "max-rto",
        "maximum RTO",
        (1000.0, 3_600_000.0, "ms"),
        |p, n| p.timers.rto.limits.max = Duration::from_secs_f64(n / 1e3),
        "upper bound of the retransmission timeout",
        "RFC 6298 (2.5)",
    ),
];
