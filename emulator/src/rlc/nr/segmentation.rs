//! Segmentation (§5.2.2.1.1, §5.2.3.1.1): the longest segment that fits a PDU.

use std::ops::Range;

use super::codec::Position;

/// The longest segment that begins at the start of `range`, lies within it, and fits a PDU of `room` octets.
/// `length` is the length of the SDU, and `header` the size of a header. `None` if not even one octet fits.
pub(super) fn fit(
    range: Range<u32>,
    length: u32,
    room: usize,
    header: impl Fn(Position) -> usize,
) -> Option<Range<u32>> {
    let Range { start, end } = range;
    if header(Position::of(start, end, length)) + (end - start) as usize <= room {
        return Some(start..end);
    }
    // Any end before the last octet of the SDU implies the same header.
    let octets = room.checked_sub(header(Position::of(start, start, length)))?;
    let end = end.min(start + octets as u32);
    (start < end).then_some(start..end)
}
