//! TCP options: parsed into one flat struct, and written in the order that a real system uses.
//!
//! smoltcp's parser is not used because it keeps only three SACK blocks. A peer without timestamps sends
//! four.

use crate::experiment::{self, LossRate};
use crate::fast_open::{self, FastOpen, Format};
use crate::seq::Seq;

/// The SACK blocks of one segment. At most four fit into the 40 bytes of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(Seq, Seq); 4],
    len: u8,
}

impl SackBlocks {
    /// Adds the block `left..right`. Blocks after the fourth are ignored.
    pub fn push(&mut self, left: Seq, right: Seq) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (left, right);
            self.len += 1;
        }
    }

    /// Returns the blocks in the order in which they were added, which is their order in the segment.
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's timestamp clock.
    pub val: u32,
    /// TSecr: the TSval that the segment echoes. Valid only with the ACK flag.
    pub ecr: u32,
}

/// The options of one segment. `None` and `false` mean that the segment does not carry the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size in bytes (RFC 9293 §3.7.1). SYN only.
    pub mss: Option<u16>,
    /// Shift count for the sender's window fields (RFC 7323 §2). SYN only, at most 14.
    pub window_scale: Option<u8>,
    /// Whether the sender supports SACK (RFC 2018 §2). SYN only.
    pub sack_permitted: bool,
    /// The timestamps. On a SYN, they offer to use timestamps on the whole connection.
    pub timestamps: Option<Timestamps>,
    /// The data that arrived out of order (RFC 2018 §3) or twice (RFC 2883).
    pub sack: SackBlocks,
    /// A Fast Open cookie, or the request for one (RFC 7413 §4.1.1). SYN only.
    pub fast_open: Option<FastOpen>,
    /// Sum of the loss rates that base stations on the path add (Lai et al. 2013, §III B). It is parsed but
    /// never written here.
    pub loss_report: Option<LossRate>,
    /// Number of segments that the receiver reports as reordered by more than three (Lai et al. 2013, §III
    /// B).
    pub reordered: Option<u16>,
}

/// The order and padding in which a system writes its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Layout {
    /// SYN: `mss,sackOK,TS,nop,wscale`. An option that is missing from an aligned group is replaced by
    /// `nop,nop`.
    Linux,
    /// SYN: `mss,nop,wscale,sackOK,TS`, padded with `eol`.
    FreeBsd,
}

const EOL: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

impl Options {
    /// Parses the options of a segment. Returns `None` if the length of an option is invalid; RFC 9293 §3.1
    /// allows such a segment to be dropped.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // Most segments carry no options, or exactly this layout (RFC 7323 appendix A).
        match *bytes {
            [] => Some(Self::default()),
            [NOP, NOP, TIMESTAMPS, 10, a, b, c, d, e, f, g, h] => {
                let (val, ecr) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                Some(Self { timestamps: Some(Timestamps { val, ecr }), ..Self::default() })
            }
            _ => Self::parse_each(bytes),
        }
    }

    fn parse_each(mut bytes: &[u8]) -> Option<Self> {
        let mut options = Self::default();
        loop {
            match bytes {
                [] | [EOL, ..] => return Some(options),
                [NOP, rest @ ..] => bytes = rest,
                [_] => return None,
                [kind, len, ..] => {
                    let len = usize::from(*len);
                    if len < 2 || len > bytes.len() {
                        return None;
                    }
                    options.parse_one(*kind, &bytes[2..len]);
                    bytes = &bytes[len..];
                }
            }
        }
    }

    /// Parses one option. Ignores unknown kinds (RFC 9293 §3.2), and known kinds with an unexpected length.
    fn parse_one(&mut self, kind: u8, body: &[u8]) {
        let word = |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        match (kind, body.len()) {
            (MSS, 2) => self.mss = Some(u16::from_be_bytes([body[0], body[1]])),
            // RFC 7323 §2.3: a shift count larger than 14 must be treated as 14.
            (WINDOW_SCALE, 1) => self.window_scale = Some(body[0].min(14)),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (TIMESTAMPS, 8) => self.timestamps = Some(Timestamps { val: word(0), ecr: word(4) }),
            (SACK, len) if len > 0 && len % 8 == 0 => {
                for [a, b, c, d, e, f, g, h] in body.as_chunks().0 {
                    let (left, right) =
                        (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]));
                    self.sack.push(Seq(left), Seq(right));
                }
            }
            (fast_open::KIND, _) => self.fast_open = FastOpen::parse(Format::Standard, body),
            (experiment::KIND, 2..) if body[..2] == fast_open::EX_ID.to_be_bytes() => {
                self.fast_open = FastOpen::parse(Format::Experimental, &body[2..]);
            }
            (experiment::KIND, 4) if body[..2] == experiment::LOSS_RATE.to_be_bytes() => {
                self.loss_report = Some(LossRate(u16::from_be_bytes([body[2], body[3]])));
            }
            (experiment::KIND, 4) if body[..2] == experiment::REORDERING_ALARM.to_be_bytes() => {
                self.reordered = Some(u16::from_be_bytes([body[2], body[3]]));
            }
            _ => {}
        }
    }

    /// Appends the options, padded to a multiple of four bytes. SACK blocks that do not fit are omitted, the
    /// last ones first. The reordering alarm is omitted if the SACK blocks leave no space, and a Fast Open
    /// option if the other options of the SYN leave no space.
    #[inline]
    pub fn write(&self, layout: Layout, out: &mut Vec<u8>) {
        if !self.has_only_timestamps() {
            self.write_each(layout, out);
        } else if let Some(timestamps) = self.timestamps {
            let [a, b, c, d, e, f, g, h, i, j] = timestamps_bytes(timestamps);
            out.extend_from_slice(&[NOP, NOP, a, b, c, d, e, f, g, h, i, j]);
        }
    }

    fn write_each(&self, layout: Layout, out: &mut Vec<u8>) {
        let begin = out.len();
        match layout {
            Layout::Linux => self.write_linux(out),
            Layout::FreeBsd => self.write_freebsd(begin, out),
        }
        if let Some(option) = self.fast_open
            && out.len() - begin + option.len().next_multiple_of(4) <= 40
        {
            option.write(out);
            while layout == Layout::Linux && !(out.len() - begin).is_multiple_of(4) {
                out.push(NOP);
            }
        }
        let room = (40 - (out.len() - begin)).saturating_sub(4) / 8;
        let blocks = self.sack.as_slice();
        let blocks = &blocks[..blocks.len().min(room)];
        if !blocks.is_empty() {
            out.extend_from_slice(&[NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                out.extend_from_slice(&left.0.to_be_bytes());
                out.extend_from_slice(&right.0.to_be_bytes());
            }
        }
        if let Some(count) = self.reordered
            && out.len() - begin + experiment::LENGTH <= 40
        {
            out.extend([experiment::KIND, experiment::LENGTH as u8]);
            out.extend(experiment::REORDERING_ALARM.to_be_bytes());
            out.extend(count.to_be_bytes());
        }
        while !(out.len() - begin).is_multiple_of(4) {
            out.push(EOL);
        }
    }

    /// Returns true if the segment carries no option besides the timestamps. All layouts then have the same form.
    #[inline]
    fn has_only_timestamps(&self) -> bool {
        let Self {
            mss,
            window_scale,
            sack_permitted,
            timestamps: _,
            sack,
            fast_open,
            loss_report: _,
            reordered,
        } = self;
        let is_syn = mss.is_some() || window_scale.is_some() || *sack_permitted || fast_open.is_some();
        !is_syn && sack.is_empty() && reordered.is_none()
    }

    fn write_linux(&self, out: &mut Vec<u8>) {
        self.write_mss(out);
        match (self.sack_permitted, self.timestamps) {
            (true, Some(timestamps)) => {
                out.extend([SACK_PERMITTED, 2]);
                out.extend_from_slice(&timestamps_bytes(timestamps));
            }
            (true, None) => out.extend([NOP, NOP, SACK_PERMITTED, 2]),
            (false, Some(timestamps)) => {
                out.extend([NOP, NOP]);
                out.extend_from_slice(&timestamps_bytes(timestamps));
            }
            (false, None) => {}
        }
        if let Some(shift) = self.window_scale {
            out.extend([NOP, WINDOW_SCALE, 3, shift]);
        }
    }

    fn write_freebsd(&self, begin: usize, out: &mut Vec<u8>) {
        self.write_mss(out);
        if let Some(shift) = self.window_scale {
            out.extend([NOP, WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            out.extend([SACK_PERMITTED, 2]);
        }
        if let Some(timestamps) = self.timestamps {
            while (out.len() - begin) % 4 != 2 {
                out.push(NOP);
            }
            out.extend_from_slice(&timestamps_bytes(timestamps));
        }
        if !self.sack.is_empty() {
            while !(out.len() - begin).is_multiple_of(4) {
                out.push(NOP);
            }
        }
    }

    fn write_mss(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            out.extend([MSS, 4]);
            out.extend(mss.to_be_bytes());
        }
    }
}

fn timestamps_bytes(timestamps: Timestamps) -> [u8; 10] {
    let [a, b, c, d] = timestamps.val.to_be_bytes();
    let [e, f, g, h] = timestamps.ecr.to_be_bytes();
    [TIMESTAMPS, 10, a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syn(sack: bool, ts: bool, ws: Option<u8>) -> Options {
        Options {
            mss: Some(1460),
            window_scale: ws,
            sack_permitted: sack,
            timestamps: ts.then_some(Timestamps { val: 1, ecr: 2 }),
            sack: SackBlocks::default(),
            fast_open: None,
            loss_report: None,
            reordered: None,
        }
    }

    /// Returns the names of the options in the order in which tcpdump prints them.
    fn kinds(layout: Layout, options: &Options) -> String {
        let mut out = vec![];
        options.write(layout, &mut out);
        assert_eq!(out.len() % 4, 0);
        assert_eq!(Options::parse(&out).as_ref(), Some(options), "{out:?}");
        let (mut names, mut at) = (vec![], 0);
        while at < out.len() {
            names.push(match out[at] {
                EOL => "eol",
                NOP => "nop",
                MSS => "mss",
                WINDOW_SCALE => "wscale",
                SACK_PERMITTED => "sackOK",
                SACK => "sack",
                fast_open::KIND => "FO",
                experiment::KIND => "FOEXP",
                _ => "TS",
            });
            at += if out[at] < 2 { 1 } else { usize::from(out[at + 1]) };
        }
        names.join(",")
    }

    #[test]
    fn syn_option_layouts_match_operating_systems() {
        let linux = |sack, ts, ws| kinds(Layout::Linux, &syn(sack, ts, ws));
        assert_eq!(linux(true, true, Some(8)), "mss,sackOK,TS,nop,wscale");
        assert_eq!(linux(true, false, Some(8)), "mss,nop,nop,sackOK,nop,wscale");
        assert_eq!(linux(false, false, Some(8)), "mss,nop,wscale");
        assert_eq!(linux(true, true, None), "mss,sackOK,TS");
        assert_eq!(linux(true, false, None), "mss,nop,nop,sackOK");
        assert_eq!(linux(false, false, None), "mss");
        let freebsd = |sack, ts, ws| kinds(Layout::FreeBsd, &syn(sack, ts, ws));
        assert_eq!(freebsd(true, true, Some(6)), "mss,nop,wscale,sackOK,TS");
        assert_eq!(freebsd(true, false, None), "mss,sackOK,eol,eol");
    }

    #[test]
    fn timestamps_parse_in_every_layout_and_alignment() {
        let options = Options { timestamps: Some(Timestamps { val: 1, ecr: 2 }), ..Options::default() };
        for layout in [Layout::Linux, Layout::FreeBsd] {
            assert_eq!(kinds(layout, &options), "nop,nop,TS");
        }
        let timestamps = timestamps_bytes(Timestamps { val: 1, ecr: 2 });
        for (before, after) in [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2), (3, 3)] {
            let bytes = [vec![NOP; before], timestamps.to_vec(), vec![EOL; after]].concat();
            assert_eq!(Options::parse(&bytes), Some(options), "{before} before, {after} after");
        }
    }

    #[test]
    fn fast_open_option_follows_other_syn_options() {
        let cookie = |len: usize| fast_open::Cookie::new(&vec![7; len]);
        let with = |cookie, format| Options {
            fast_open: Some(FastOpen { cookie, format }),
            ..syn(true, true, Some(8))
        };
        for (len, padding) in [(4, ",nop,nop"), (6, ""), (8, ",nop,nop"), (16, ",nop,nop")] {
            let options = with(cookie(len), Format::Standard);
            let names = format!("mss,sackOK,TS,nop,wscale,FO{padding}");
            assert_eq!(kinds(Layout::Linux, &options), names, "{len} bytes");
        }
        let request = with(None, Format::Experimental);
        assert_eq!(kinds(Layout::Linux, &request), "mss,sackOK,TS,nop,wscale,FOEXP");
        let request = with(None, Format::Standard);
        assert_eq!(kinds(Layout::FreeBsd, &request), "mss,nop,wscale,sackOK,TS,FO,eol,eol");
        let largest = with(cookie(16), Format::Experimental);
        let mut out = vec![];
        largest.write(Layout::Linux, &mut out);
        assert_eq!(out.len(), 40);
    }

    #[test]
    fn largest_fast_open_option_displaces_sack_blocks() {
        let cookie = fast_open::Cookie::new(&[7; 16]);
        let fast_open = Some(FastOpen { cookie, format: Format::Experimental });
        let mut options = Options { fast_open, ..syn(true, true, Some(8)) };
        options.sack.push(Seq(1), Seq(2));
        let mut out = vec![];
        options.write(Layout::FreeBsd, &mut out);
        assert_eq!(Options::parse(&out).unwrap().fast_open, fast_open);
        assert!(Options::parse(&out).unwrap().sack.is_empty(), "the SACK block has no space");
    }

    #[test]
    fn three_sack_blocks_fit_with_timestamps_four_without() {
        let mut options = Options { timestamps: Some(Timestamps::default()), ..Options::default() };
        for i in 0..4 {
            options.sack.push(Seq(i * 10), Seq(i * 10 + 5));
        }
        let mut out = vec![];
        options.write(Layout::Linux, &mut out);
        assert_eq!((out.len(), Options::parse(&out).unwrap().sack.as_slice().len()), (40, 3));
        options.timestamps = None;
        out.clear();
        options.write(Layout::FreeBsd, &mut out);
        assert_eq!((out.len(), Options::parse(&out).unwrap().sack.as_slice().len()), (36, 4));
    }

    #[test]
    fn three_sack_blocks_displace_reordering_alarm() {
        let timestamps = Some(Timestamps { val: 1, ecr: 2 });
        let mut options = Options { timestamps, reordered: Some(0x0102), ..Options::default() };
        for (blocks, layout) in
            [(0, Layout::Linux), (1, Layout::FreeBsd), (2, Layout::Linux), (3, Layout::Linux)]
        {
            options.sack = SackBlocks::default();
            for i in 0..blocks {
                options.sack.push(Seq(i * 10), Seq(i * 10 + 5));
            }
            let mut out = vec![];
            options.write(layout, &mut out);
            let parsed = Options::parse(&out).unwrap();
            assert_eq!(parsed.reordered, (blocks < 3).then_some(0x0102), "{blocks} blocks");
            assert_eq!(parsed.sack, options.sack);
            assert!(out.len() <= 40 && out.len().is_multiple_of(4));
        }
    }

    #[test]
    fn malformed_options_are_rejected_or_ignored() {
        assert_eq!(Options::parse(&[MSS, 0]), None, "a length of zero");
        assert_eq!(Options::parse(&[MSS, 4, 5]), None, "a length beyond the header");
        assert_eq!(Options::parse(&[TIMESTAMPS]), None, "a missing length");
        assert_eq!(Options::parse(&[MSS, 3, 5]), Some(Options::default()), "a known kind of wrong length");
        assert_eq!(Options::parse(&[254, 6, 1, 2, 3, 4]), Some(Options::default()), "an unknown kind");
        let report = Options::parse(&[254, 6, 0x71, 0x77, 0x40, 0]).unwrap().loss_report;
        assert_eq!(report.map(LossRate::ratio), Some(0.25));
        assert_eq!(Options::parse(&[fast_open::KIND, 5, 1, 2, 3]), Some(Options::default()), "an odd cookie");
        let request = Options::parse(&[254, 4, 0xf9, 0x89]).unwrap().fast_open;
        assert_eq!(request, Some(FastOpen { cookie: None, format: Format::Experimental }));
        assert_eq!(Options::parse(&[WINDOW_SCALE, 3, 99]).unwrap().window_scale, Some(14));
        assert_eq!(Options::parse(&[EOL, MSS, 9]), Some(Options::default()), "bytes after the end option");
    }
}
