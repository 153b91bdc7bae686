//! The interface of the LTE and NR entities: SDUs and events of the layer above, PDUs of the layer below.

use std::sync::Arc;

use smallvec::SmallVec;

/// An SDU for a transmitting entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sdu {
    /// Identifier, chosen by the layer above. Identifiers ascend in the order of submission, like the COUNT
    /// of PDCP. [`Event`] and [`PduKind`] identify SDUs by this number.
    pub id: u64,
    /// Content: 1 to 65 535 octets.
    pub octets: Arc<[u8]>,
}

/// Identifiers of the SDUs in a PDU, rarely more than two.
pub type SduIds = SmallVec<[u64; 2]>;

/// An event for the layers above: PDCP and RRC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer's SDU, reassembled.
    Delivered(Vec<u8>),
    /// The peer has acknowledged all octets of the SDU with this identifier.
    Confirmed(u64),
    /// RETX_COUNT of the SDU with this identifier (LTE: of a PDU that begins with this SDU) has reached
    /// maxRetxThreshold. RRC must be informed.
    MaxRetx(u64),
}

/// A PDU for the layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// The encoded PDU.
    pub octets: Vec<u8>,
    /// Type of the PDU, for the owner's records.
    pub kind: PduKind,
}

/// Type of a PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PduKind {
    /// An AMD PDU, an AMD PDU segment or a UMD PDU.
    Data {
        /// Unwrapped sequence number. A UMD PDU without a sequence number (NR) has the number of the next
        /// segmented SDU here.
        sn: u64,
        /// 1 for the first transmission, 2 + RETX_COUNT for a retransmission.
        transmission: u32,
        /// Whether the P field is set.
        polls: bool,
        /// The SDUs that have octets in the PDU.
        sdus: SduIds,
    },
    /// A STATUS PDU.
    Status,
}

/// Octets that wait in an entity: the data volume that MAC reports (36.322 §4.5, 38.322 §5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStatus {
    /// Octets that have not been transmitted, including those that a full window holds back.
    pub new: u64,
    /// Octets that wait for retransmission.
    pub retransmission: u64,
    /// Size of the STATUS PDU that can be sent now.
    pub status: u64,
    /// Number of SDUs whose transmission has not begun.
    pub sdus: usize,
}

impl BufferStatus {
    /// The sum of all waiting octets.
    pub fn total(self) -> u64 {
        self.new + self.retransmission + self.status
    }
}

/// Whether a call of `pull` counts the MAC subheader of each PDU as a part of the transport block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MacSubheaders {
    /// The transport block consists of RLC PDUs only.
    #[default]
    NotCounted,
    /// NR (38.321 §6.1.2): each PDU has a subheader of 2 octets, or 3 if it exceeds 255 octets. LTE (36.321
    /// §6.1.2): a STATUS PDU has a subheader of 2 octets, or 3 if it exceeds 127 octets; the data PDU, which
    /// is the last one, has a subheader of 1 octet without a length.
    Counted,
}
