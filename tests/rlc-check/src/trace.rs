//! Reads the PDUs of a capture with tshark.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::str::{FromStr, Split};
use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};

use crate::settings::{DirectionSettings, Time};

/// Direction of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the mobile side.
    Down,
    /// From the mobile side.
    Up,
}

/// A transmitted PDU.
#[derive(Clone, Debug, PartialEq)]
pub struct Pdu {
    /// Number of the PDU's frame in the capture.
    pub frame: u64,
    /// Time of transmission, since 1970.
    pub at: Time,
    /// Direction of the PDU.
    pub direction: Direction,
    /// Whether the channel damaged the PDU.
    pub lost: bool,
    /// Size of the PDU in bytes.
    pub octets: usize,
    /// Whether the PDU contains padding.
    pub padded: bool,
    /// The U-RNTI, which the capture uses as an epoch.
    pub epoch: u32,
    /// Type and content of the PDU.
    pub kind: PduKind,
    /// tshark's objections to the PDU.
    pub objections: String,
    /// tshark's objections to the packet inside.
    pub packet_objections: String,
}

/// Type and content of a PDU (§9.2.1).
#[derive(Clone, Debug, PartialEq)]
pub enum PduKind {
    /// A data PDU.
    Data {
        /// Sequence number.
        sn: u16,
        /// The polling bit.
        poll: bool,
        /// A report in the space after the data.
        piggybacked: Option<Status>,
    },
    /// A status report.
    Status(Status),
    /// A RESET.
    Reset {
        /// Reset sequence number.
        rsn: bool,
        /// The sender's hyper frame number.
        hfni: u32,
    },
    /// A RESET ACK, the answer to a RESET.
    ResetAck {
        /// Reset sequence number of the RESET.
        rsn: bool,
        /// The sender's hyper frame number.
        hfni: u32,
    },
}

/// The SUFIs of a status report (§9.2.2.11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// LSN of an ACK: all PDUs below it have arrived, except those reported missing.
    pub lsn: Option<u16>,
    /// WSN of a WINDOW.
    pub window: Option<u16>,
    /// Sequence numbers that LIST, BITMAP and RLIST report missing.
    pub missing: Vec<u16>,
    /// SN_MRW_LENGTH and N_LENGTH of an MRW.
    pub mrw: Option<(u16, u8)>,
    /// SN_ACK and N of an MRW_ACK.
    pub mrw_ack: Option<(u16, u8)>,
    /// Poll_SN of a POLL.
    pub poll_sn: Option<u16>,
}

impl Status {
    /// Returns whether Timer_Status_Prohibit applies to the report (§9.7.2).
    pub fn acknowledges(&self) -> bool {
        self.lsn.is_some() || !self.missing.is_empty()
    }
}

const FIELDS: &str = "frame.number frame.time_epoch udp.srcport udp.length rlc.channel.dir rlc.channel.ueid \
    rlc.channel.rbid rlc.dc rlc.seq rlc.p rlc.ctrl_pdu_type rlc.sufi.type rlc.sufi.len rlc.sufi.lsn rlc.sufi.wsn \
    rlc.sufi.sn rlc.sufi.l rlc.sufi.fsn rlc.sufi.bitmap rlc.sufi.cw rlc.sufi.sn_mrw rlc.sufi.n rlc.sufi.sn_ack \
    rlc.sufi.poll_sn rlc.rsn rlc.hfni _ws.malformed _ws.expert.message rlc.li.value rlc.padding";

/// Fields that are objections to the PDU.
const OBJECTIONS: &str = "rlc.li.reserved rlc.li.incorrect rlc.li.too_many rlc.he.invalid rlc.header_only.expert \
    rlc.reserved_bits_not_zero rlc.ctrl_pdu_type.invalid rlc.sufi.type.invalid rlc.sufi.len.invalid \
    rlc.sufi.cw.invalid rlc.reassembly.fail.unfinished_sequence rlc.reassembly.fail.flag_set \
    rlc.reassembly.unknown_error rlc.lingering_endpoint";

/// The names of all fields. Each PDU looks up most of them, so they are split only once.
static NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| FIELDS.split_whitespace().chain(OBJECTIONS.split_whitespace()).collect());

/// Bytes of the UDP header and of the framing before a PDU.
const AROUND: usize = 8 + 24;

/// Reads all PDUs of a capture, or only the PDUs of one radio bearer. `lost_port` is the UDP source port of
/// PDUs that the channel damaged. `settings` contains the downlink, then the uplink.
pub fn read(
    pcap: &Path,
    lost_port: u16,
    bearer: Option<u8>,
    settings: [&DirectionSettings; 2],
) -> Result<Vec<Pdu>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(pcap).args(["-n", "--enable-heuristic", "rlc_udp", "-T", "fields"]);
    // Only RLC is checked, so other dissectors must not raise objections to the data that it carries.
    for protocol in ["tcp", "icmp", "icmpv6", "ipv6", "rtcp"] {
        tshark.args(["--disable-protocol", protocol]);
    }
    tshark.args(["-E", "separator=|"]);
    for field in NAMES.iter() {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().context("cannot start tshark: apt-get install tshark")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tshark cannot read {}: {errors}", pcap.display());
    let text = String::from_utf8(output.stdout).context("tshark wrote something that is not text")?;
    let mut pdus = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        if bearer.is_some_and(|bearer| number::<u8>(fields.get(6).copied().unwrap_or("")) != Some(bearer)) {
            continue;
        }
        pdus.push(pdu(&fields, lost_port, settings).with_context(|| format!("tshark's line `{line}`"))?);
    }
    Ok(pdus)
}

fn pdu(values: &[&str], lost_port: u16, settings: [&DirectionSettings; 2]) -> Result<Pdu> {
    ensure!(values.len() == NAMES.len(), "{} fields instead of {}", values.len(), NAMES.len());
    let field =
        |name: &str| values[NAMES.iter().position(|field| *field == name).expect("a requested field")];
    // The field may exist for both the carrier packet and the packet inside. The carrier's value comes first.
    let outer = |name: &str| field(name).split(',').next().unwrap_or("");
    let octets = number::<usize>(outer("udp.length")).context("no UDP length")?.saturating_sub(AROUND);
    let direction = if field("rlc.channel.dir") == "1" { Direction::Down } else { Direction::Up };
    let kind = match (field("rlc.dc"), field("rlc.ctrl_pdu_type")) {
        ("1", _) => {
            let sn = number(field("rlc.seq")).context("no sequence number")?;
            // Among 15-bit length indicators, 126 is an ordinary length.
            let indicator = settings[direction as usize].piggyback_indicator().to_string();
            let piggybacked = field("rlc.li.value").split(',').any(|value| value == indicator);
            let piggybacked = piggybacked.then(|| status(&field)).transpose()?;
            PduKind::Data { sn, poll: field("rlc.p") == "1", piggybacked }
        }
        ("0", "0") => PduKind::Status(status(&field)?),
        ("0", kind @ ("1" | "2")) => {
            let rsn = field("rlc.rsn") == "1";
            let hfni = number(field("rlc.hfni")).context("no HFNI")?;
            if kind == "1" { PduKind::Reset { rsn, hfni } } else { PduKind::ResetAck { rsn, hfni } }
        }
        (dc, kind) => bail!("not an RLC AM PDU: D/C `{dc}`, control PDU type `{kind}`"),
    };
    let objections: Vec<_> = OBJECTIONS.split_whitespace().filter(|name| !field(name).is_empty()).collect();
    let packet_objections = format!("{}{}", field("_ws.malformed"), field("_ws.expert.message"));
    Ok(Pdu {
        frame: number(field("frame.number")).context("no frame number")?,
        at: nanoseconds(field("frame.time_epoch")).context("no time")?,
        direction,
        lost: number(outer("udp.srcport")) == Some(lost_port),
        octets,
        padded: !field("rlc.padding").is_empty(),
        epoch: u32::from_str_radix(field("rlc.channel.ueid").trim_start_matches("0x"), 16)?,
        kind,
        packet_objections: if objections.is_empty() { packet_objections } else { String::new() },
        objections: objections.join(" "),
    })
}

/// The values of the fields that super-fields use. tshark lists the values of each field of all super-fields
/// together.
struct Values<'f, 'a, F> {
    field: &'f F,
    unread: BTreeMap<&'static str, Split<'a, char>>,
}

impl<'a, F: Fn(&str) -> &'a str> Values<'_, 'a, F> {
    /// Reads the next value of a field.
    fn text(&mut self, name: &'static str) -> Result<&'a str> {
        let values = self.unread.entry(name).or_insert_with(|| (self.field)(name).split(','));
        values.find(|value| !value.is_empty()).context("tshark shows fewer values than its SUFIs need")
    }

    /// Reads the next value of a field, a number.
    fn number(&mut self, name: &'static str) -> Result<u16> {
        number(self.text(name)?).context("not a number")
    }

    /// Reads a LIST (§9.2.2.11.4).
    fn list(&mut self) -> Result<Vec<u16>> {
        let mut missing = Vec::new();
        for _ in 0..self.number("rlc.sufi.len")? {
            let (sn, further) = (self.number("rlc.sufi.sn")?, self.number("rlc.sufi.l")?);
            missing.extend((0..=further).map(|n| (sn + n) % 4096));
        }
        Ok(missing)
    }

    /// Reads a BITMAP (§9.2.2.11.5).
    fn bitmap(&mut self) -> Result<Vec<u16>> {
        self.number("rlc.sufi.len")?;
        let fsn = self.number("rlc.sufi.fsn")?;
        let mut missing = Vec::new();
        for (octet, pair) in self.text("rlc.sufi.bitmap")?.as_bytes().chunks(2).enumerate() {
            let bits = u8::from_str_radix(std::str::from_utf8(pair)?, 16)?;
            let zeros = (0..8).filter(|bit| bits & (0x80 >> bit) == 0);
            missing.extend(zeros.map(|bit| (fsn + 8 * octet as u16 + bit) % 4096));
        }
        Ok(missing)
    }

    /// Reads an RLIST.
    fn relative_list(&mut self) -> Result<Vec<u16>> {
        let (len, fsn) = (self.number("rlc.sufi.len")?, self.number("rlc.sufi.fsn")?);
        let words = (0..len).map(|_| self.number("rlc.sufi.cw")).collect::<Result<Vec<_>>>()?;
        relative_list(fsn, &words)
    }

    /// Reads SN_MRW_LENGTH and N_LENGTH of an MRW.
    fn move_receiving_window(&mut self) -> Result<(u16, u8)> {
        for _ in 1..self.number("rlc.sufi.len")? {
            self.number("rlc.sufi.sn_mrw")?;
        }
        Ok((self.number("rlc.sufi.sn_mrw")?, self.number("rlc.sufi.n")? as u8))
    }
}

/// Reads the super-fields of a STATUS PDU.
fn status<'a>(field: &impl Fn(&str) -> &'a str) -> Result<Status> {
    let mut values = Values { field, unread: BTreeMap::new() };
    let mut status = Status::default();
    for kind in field("rlc.sufi.type").split(',').filter(|kind| !kind.is_empty()) {
        match kind {
            "0" => {}
            "1" => status.window = Some(values.number("rlc.sufi.wsn")?),
            "2" => status.lsn = Some(values.number("rlc.sufi.lsn")?),
            "3" => status.missing.extend(values.list()?),
            "4" => status.missing.extend(values.bitmap()?),
            "5" => status.missing.extend(values.relative_list()?),
            "6" => status.mrw = Some(values.move_receiving_window()?),
            "7" => {
                let n = values.number("rlc.sufi.n")? as u8;
                status.mrw_ack = Some((values.number("rlc.sufi.sn_ack")?, n));
            }
            "8" => status.poll_sn = Some(values.number("rlc.sufi.poll_sn")?),
            _ => bail!("SUFI type {kind}"),
        }
    }
    Ok(status)
}

/// Decodes an RLIST (§9.2.2.11.6). Each code word contains three bits of a number, the least significant ones
/// first, and its last bit marks the end of the number. The code word 0001 means that the next number counts
/// consecutive errors.
fn relative_list(fsn: u16, words: &[u16]) -> Result<Vec<u16>> {
    let mut missing = vec![fsn];
    let (mut distance, mut shift, mut burst) = (0, 0, false);
    for &word in words {
        if word == 1 && shift == 0 {
            burst = true;
            continue;
        }
        distance |= (word >> 1) << shift;
        shift += 3;
        if word & 1 == 1 {
            let last = *missing.last().expect("the list begins with FSN");
            if burst {
                missing.extend((1..=distance).map(|n| (last + n) % 4096));
            } else {
                missing.push((last + distance) % 4096);
            }
            (distance, shift, burst) = (0, 0, false);
        }
    }
    ensure!(shift == 0 && !burst, "an unfinished RLIST");
    Ok(missing)
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// Parses a time such as "1.000000020" into nanoseconds. Floating point would not be exact.
fn nanoseconds(text: &str) -> Option<Time> {
    let (seconds, fraction) = text.split_once('.')?;
    (fraction.len() == 9).then_some(())?;
    Some(seconds.parse::<Time>().ok()? * 1_000_000_000 + fraction.parse::<Time>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_as(line: &str, settings: &str) -> Pdu {
        let none = "|".repeat(OBJECTIONS.split_whitespace().count() + 1);
        let settings: DirectionSettings = settings.parse().unwrap();
        pdu(&format!("{line}{none}").split('|').collect::<Vec<_>>(), 50_002, [&settings; 2]).unwrap()
    }

    fn parsed(line: &str) -> Pdu {
        parsed_as(line, "pdu=42")
    }

    #[test]
    fn list_bitmap_and_rlist_are_parsed() {
        let list = "3|0.020000000|50000|74|0|0x00000001|5|0|||0|3,2|2|12||4,10|1,0||||||||||||";
        let PduKind::Status(status) = parsed(list).kind else { panic!("expected a STATUS PDU") };
        assert_eq!((status.missing, status.lsn), (vec![4, 5, 10], Some(12)));
        let bitmap = "4|0.030000000|50002|74|0|0x00000001|5|0|||0|4,2|1|116||||100|b7ff||||||||||";
        let PduKind::Status(status) = parsed(bitmap).kind else { panic!("expected a STATUS PDU") };
        assert_eq!(status.missing, [101, 104]);
        // Errors 1 and 5, the three after 5, and 28: code words 1001 0001 0111 1000 0101.
        let rlist = "5|0.040000000|50000|74|0|0x00000001|5|0|||0|5,2|5|40||||1||9,1,7,8,5|||||||||";
        let PduKind::Status(status) = parsed(rlist).kind else { panic!("expected a STATUS PDU") };
        assert_eq!(status.missing, [1, 5, 6, 7, 8, 28]);
        assert!(relative_list(1, &[8]).is_err());
        assert!(relative_list(1, &[9, 1]).is_err());
    }

    #[test]
    fn li_126_marks_report_only_with_7_bits() {
        let li_126 = |settings: &str| {
            let around = format!("1|1.000000020|50000|{}|1|0x00000001|5|1|2|0|", 126 + AROUND);
            parsed_as(&format!("{around}||||||||||||||||||126"), settings).kind
        };
        let empty = PduKind::Data { sn: 2, poll: false, piggybacked: Some(Status::default()) };
        let none = PduKind::Data { sn: 2, poll: false, piggybacked: None };
        assert_eq!([li_126("pdu=126"), li_126("pdu=127")], [empty.clone(), none.clone()]);
        assert_eq!([li_126("pdu=126,flexible=7bit"), li_126("pdu=1505,flexible=15bit")], [empty, none]);
    }

    #[test]
    fn data_and_reset_pdus_are_parsed() {
        let data = "1|1.000000020|50002|74,20|1|0x00001002|5|1|2|1|||||||||||||||||||20,127";
        let pdu = parsed(data);
        assert_eq!(pdu.kind, PduKind::Data { sn: 2, poll: true, piggybacked: None });
        assert_eq!((pdu.at, pdu.epoch, pdu.octets), (1_000_000_020, 0x1002, 42));
        assert_eq!((pdu.lost, pdu.direction), (true, Direction::Down));
        let reset = "1|1.000000020|50000|74|0|0x00001002|5|0|||1||||||||||||||1|74565|||";
        assert_eq!(parsed(reset).kind, PduKind::Reset { rsn: true, hfni: 0x12345 });
    }
}
