//! Maximum sizes, in bytes, of files that are read whole.

/// Limit for files written by hand: scenarios, sweeps, packet scripts, lists of expected results.
pub const WRITTEN_BY_HAND: u64 = 4 << 20;
/// Limit for Mahimahi traces: room for more than ten million delivery opportunities.
pub const TRACE: u64 = 64 << 20;
/// Limit for files that programs write: decisions, logs, results.
pub const RESULT: u64 = 1 << 30;

/// Formats a limit: `4 MiB`.
pub(crate) fn in_words(limit: u64) -> String {
    match limit {
        whole if whole >= 1 << 30 && whole.is_multiple_of(1 << 30) => format!("{} GiB", whole >> 30),
        whole if whole >= 1 << 20 && whole.is_multiple_of(1 << 20) => format!("{} MiB", whole >> 20),
        octets => format!("{octets} octets"),
    }
}
