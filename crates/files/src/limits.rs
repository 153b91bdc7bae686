//! How long a file may be that is read whole, in octets.

/// What people write: scenarios, sweeps, packet scripts, lists of what is expected.
pub const WRITTEN_BY_HAND: u64 = 4 << 20;
/// A trace of mahimahi's: ten million opportunities and more.
pub const TRACE: u64 = 64 << 20;
/// What programs keep: decisions, logs, results.
pub const KEPT: u64 = 1 << 30;

/// As people say it: `4 MiB`.
pub(crate) fn in_words(limit: u64) -> String {
    match limit {
        whole if whole >= 1 << 30 && whole.is_multiple_of(1 << 30) => format!("{} GiB", whole >> 30),
        whole if whole >= 1 << 20 && whole.is_multiple_of(1 << 20) => format!("{} MiB", whole >> 20),
        octets => format!("{octets} octets"),
    }
}
