//! TCP_INFO: by name for asserts, and as a struct for getsockopt.

use airtcp::tcp::{Info, State};
use airwire::time::Duration;

struct Field {
    name: &'static str,
    offset: usize,
    /// Width in bytes.
    width: usize,
    value: fn(&Info) -> u64,
}

const fn row(name: &'static str, offset: usize, width: usize, value: fn(&Info) -> u64) -> Field {
    Field { name, offset, width, value }
}

/// Size of `struct tcp_info` in Linux 6, in bytes.
pub const LEN: usize = 280;

const FIELDS: [Field; 33] = [
    row("tcpi_state", 0, 1, |info| state(info.state)),
    row("tcpi_ca_state", 1, 1, |info| info.ca_state as u64),
    row("tcpi_retransmits", 2, 1, |info| info.retransmits.into()),
    row("tcpi_probes", 3, 1, |info| info.probes.into()),
    row("tcpi_backoff", 4, 1, |info| info.backoff.into()),
    row("tcpi_options", 5, 1, options),
    // Two fields of four bits, which have separate names in asserts.
    row("tcpi_wscales", 6, 1, |info| u64::from(info.snd_wscale | info.rcv_wscale << 4)),
    // The two bits above the lowest one, which is another field.
    row("tcpi_fastopen_bits", 7, 1, |info| fast_open_failure(info) << 1),
    row("tcpi_rto", 8, 4, |info| info.rto.as_micros()),
    row("tcpi_snd_mss", 16, 4, |info| info.snd_mss.into()),
    row("tcpi_rcv_mss", 20, 4, |info| info.rcv_mss.into()),
    row("tcpi_unacked", 24, 4, |info| info.unacked.into()),
    row("tcpi_sacked", 28, 4, |info| info.sacked.into()),
    row("tcpi_lost", 32, 4, |info| info.lost.into()),
    row("tcpi_retrans", 36, 4, |info| info.retrans.into()),
    row("tcpi_pmtu", 60, 4, |info| info.pmtu.into()),
    row("tcpi_rtt", 68, 4, |info| info.rtt.as_micros()),
    row("tcpi_rttvar", 72, 4, |info| info.rttvar.as_micros()),
    row("tcpi_snd_ssthresh", 76, 4, |info| info.ssthresh.unwrap_or(INFINITE_SSTHRESH).into()),
    row("tcpi_snd_cwnd", 80, 4, |info| info.cwnd.into()),
    row("tcpi_advmss", 84, 4, |info| info.advmss.into()),
    row("tcpi_reordering", 88, 4, |info| info.reordering.into()),
    row("tcpi_rcv_space", 96, 4, |info| info.rcv_space.into()),
    row("tcpi_total_retrans", 100, 4, |info| info.total_retrans.into()),
    row("tcpi_bytes_acked", 120, 8, |info| info.bytes_acked),
    row("tcpi_bytes_received", 128, 8, |info| info.bytes_received),
    row("tcpi_segs_out", 136, 4, |info| info.segs_out),
    row("tcpi_segs_in", 140, 4, |info| info.segs_in),
    row("tcpi_min_rtt", 148, 4, |info| info.min_rtt.map_or_else(|| u64::from(u32::MAX), Duration::as_micros)),
    row("tcpi_delivered", 192, 4, delivered),
    row("tcpi_bytes_retrans", 208, 8, |info| info.bytes_retrans),
    row("tcpi_dsack_dups", 216, 4, |info| info.dsack_dups.into()),
    row("tcpi_reord_seen", 220, 4, |info| info.reord_seen.into()),
];

/// Linux's value while ssthresh is arbitrarily high.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The constants available in asserts.
const CONSTANTS: [(&str, u64); 21] = [
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_SYN_DATA", 32),
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
];

/// Returns the value of a constant such as `TCP_CA_Open`.
pub(crate) fn constant(name: &str) -> Option<u64> {
    CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// Returns the value of a field such as `tcpi_snd_cwnd`.
pub(crate) fn field(info: &Info, name: &str) -> Option<u64> {
    match name {
        "tcpi_snd_wscale" => Some(info.snd_wscale.into()),
        "tcpi_rcv_wscale" => Some(info.rcv_wscale.into()),
        "tcpi_fastopen_client_fail" => Some(fast_open_failure(info)),
        _ => FIELDS.iter().find(|field| field.name == name).map(|field| (field.value)(info)),
    }
}

/// Returns `struct tcp_info` in little-endian byte order.
pub fn bytes(info: &Info) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    for field in &FIELDS {
        // Truncate to the width of the field, as the kernel does with counters.
        let value = (field.value)(info).to_le_bytes();
        bytes[field.offset..field.offset + field.width].copy_from_slice(&value[..field.width]);
    }
    bytes
}

/// Linux's numbers for the states of RFC 9293.
fn state(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// Linux also counts the SYN.
fn delivered(info: &Info) -> u64 {
    u64::from(info.delivered) + u64::from(info.state.is_synchronized())
}

fn fast_open_failure(info: &Info) -> u64 {
    info.fast_open_failure.map_or(0, |failure| failure as u64)
}

/// The TCPI_OPT bits. The window shifts have a separate byte.
fn options(info: &Info) -> u64 {
    let bits = [
        (info.timestamps, 1),
        (info.sack, 2),
        (info.snd_wscale > 0 || info.rcv_wscale > 0, 4),
        (info.ecn, 8),
        (info.syn_data, 32),
    ];
    bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_aligned_and_do_not_overlap() {
        let mut end = 0;
        for field in &FIELDS {
            assert!(field.offset >= end, "{}", field.name);
            assert_eq!(field.offset % field.width, 0, "{}", field.name);
            end = field.offset + field.width;
        }
        assert!(end <= LEN);
    }
}
