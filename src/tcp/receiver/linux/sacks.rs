//! The SACK blocks of the next ACK, newest first, four at most (`selective_acks`).
//!
//! A fifth block replaces the oldest one, which is not restored: a segment adjacent to the lost block starts
//! a new block.

/// A range of bytes.
type Block = (u64, u64);

#[derive(Clone, Debug, Default)]
pub(in crate::tcp::receiver) struct Sacks {
    blocks: [Block; 4],
    len: u8,
}

/// Number of blocks that an ACK is expected to have room for (TCP_SACK_BLOCKS_EXPECTED). A change of later
/// blocks is acknowledged at once.
const EXPECTED: usize = 2;

impl Sacks {
    pub(in crate::tcp::receiver) fn as_slice(&self) -> &[Block] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Returns true if an out-of-order segment displaces blocks that no ACK has reported yet.
    pub(in crate::tcp::receiver) fn displaces_unreported(&self, segment: Block) -> bool {
        let mut first = self.as_slice().iter().take(EXPECTED);
        self.as_slice().len() >= EXPECTED && !first.any(|block| touches(*block, segment))
    }

    /// Adds an out-of-order segment (tcp_sack_new_ofo_skb()).
    pub(in crate::tcp::receiver) fn add(&mut self, segment: Block) {
        let mut list: Vec<Block> = self.as_slice().to_vec();
        let mut first = segment;
        if let Some(at) = list.iter().position(|block| touches(*block, segment)) {
            first = join(list.remove(at), segment);
            // The joined block may now touch other blocks, which are merged in list order
            // (tcp_sack_maybe_coalesce()).
            list.retain(|block| {
                let is_adjacent = touches(first, *block);
                if is_adjacent {
                    first = join(first, *block);
                }
                !is_adjacent
            });
        }
        list.insert(0, first);
        list.truncate(self.blocks.len());
        self.set(&list);
    }

    /// Removes the blocks that RCV.NXT has reached (tcp_sack_remove()).
    pub(in crate::tcp::receiver) fn remove_below(&mut self, rcv_nxt: u64) {
        let list: Vec<Block> = self.as_slice().iter().copied().filter(|block| block.0 > rcv_nxt).collect();
        self.set(&list);
    }

    fn set(&mut self, list: &[Block]) {
        self.blocks[..list.len()].copy_from_slice(list);
        self.len = list.len() as u8;
    }
}

fn touches(a: Block, b: Block) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}

fn join(a: Block, b: Block) -> Block {
    (a.0.min(b.0), a.1.max(b.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sacks(segments: &[Block]) -> Vec<Block> {
        let mut sacks = Sacks::default();
        for segment in segments {
            sacks.add(*segment);
        }
        sacks.as_slice().to_vec()
    }

    #[test]
    fn most_recently_extended_block_comes_first() {
        assert_eq!(sacks(&[(10, 20), (30, 40), (20, 25)]), [(10, 25), (30, 40)]);
        assert_eq!(sacks(&[(10, 20), (30, 40), (20, 30)]), [(10, 40)]);
    }

    #[test]
    fn dropped_fifth_block_is_not_restored() {
        let five = [(10, 20), (30, 40), (50, 60), (70, 80), (90, 100)];
        assert_eq!(sacks(&five), [(90, 100), (70, 80), (50, 60), (30, 40)]);
        let joined = [five.as_slice(), &[(20, 25)]].concat();
        assert_eq!(sacks(&joined), [(20, 25), (90, 100), (70, 80), (50, 60)]);
    }

    #[test]
    fn remove_below_drops_blocks_reached_by_rcv_nxt() {
        let mut sacks = Sacks::default();
        sacks.add((10, 20));
        sacks.add((30, 40));
        sacks.remove_below(20);
        assert_eq!(sacks.as_slice(), [(30, 40)]);
        assert!(!sacks.displaces_unreported((50, 60)), "the next ACK has room for both blocks");
    }
}
