//! The capacity of the lower layer in one TTI.

/// Capacity of the lower layer in a TTI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A number of PDUs.
    Pdus(usize),
    /// A number of bytes. The last PDU may exceed it, and is completed in a later TTI.
    Bytes {
        /// Available bytes.
        bytes: usize,
        /// Bytes that the lower layer adds to each PDU.
        header: usize,
        /// Maximum number of PDUs.
        pdus: usize,
    },
}

impl Room {
    /// Whether there is room for another PDU in addition to PDUs of these `sizes` and to `reserved` further
    /// ones.
    pub(super) fn takes_another(self, sizes: impl ExactSizeIterator<Item = usize>, reserved: usize) -> bool {
        let count = sizes.len() + reserved;
        match self {
            Self::Pdus(most) => count < most,
            Self::Bytes { bytes, header, pdus: most } => {
                count < most && sizes.map(|size| header + size).sum::<usize>() < bytes
            }
        }
    }

    /// Maximum number of PDUs.
    pub const fn pdus(self) -> usize {
        match self {
            Self::Pdus(pdus) | Self::Bytes { pdus, .. } => pdus,
        }
    }

    /// Limits the number of PDUs to `most`.
    #[must_use]
    pub fn at_most(self, most: usize) -> Self {
        match self {
            Self::Pdus(pdus) => Self::Pdus(pdus.min(most)),
            Self::Bytes { bytes, header, pdus } => Self::Bytes { bytes, header, pdus: pdus.min(most) },
        }
    }
}

/// Whether the transport format set also has a format with one block fewer than the chosen one (TS 25.321
/// §11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneBlockFewer {
    /// The format exists.
    HasFormat,
    /// The format does not exist. Padding would take the place of a block that is left out.
    NoFormat,
}

/// Memory of a block in flight: its bytes, the reference to these bytes, and the overhead of the allocator.
pub(in crate::rlc) fn block_memory(bytes: usize) -> u64 {
    bytes as u64 + 48
}
