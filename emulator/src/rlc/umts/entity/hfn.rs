//! Hyper frame numbers (§11.4.1). COUNT-C of an AMD PDU consists of the HFN of its direction and its SN. This
//! entity does not cipher. RESET and RESET ACK PDUs carry the HFNs nevertheless, so that a peer that ciphers
//! stays synchronized.

/// An HFN has 20 bits.
const MASK: u32 = 0xf_ffff;
/// Number of SNs with the same HFN.
const MODULUS: u64 = 4096;

/// HFN of each direction, as known to one entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hfns {
    /// HFN of the first AMD PDU sent since the last reset. The HFN increases by one with each wrap of the SN.
    own: u32,
    /// HFN of the first AMD PDU received from the peer since the last reset.
    peer: u32,
}

impl Hfns {
    /// Returns the value that upper layers configure for both directions (§9.7.7).
    pub(super) const fn configured(hfn: u32) -> Self {
        let hfn = hfn & MASK;
        Self { own: hfn, peer: hfn }
    }

    /// Sets the value that upper layers configure for the sending direction (§9.7.7).
    pub(super) const fn with_own(self, hfn: u32) -> Self {
        Self { own: hfn & MASK, peer: self.peer }
    }

    /// HFN of a sent AMD PDU, given its unwrapped SN.
    pub(super) const fn of_own(self, sn: u64) -> u32 {
        wrapped(self.own, sn)
    }

    /// HFN of an AMD PDU of the peer, given its unwrapped SN.
    pub(super) const fn of_peer(self, sn: u64) -> u32 {
        wrapped(self.peer, sn)
    }

    /// Highest HFN used (§11.4.1). It belongs to VT(S) − 1 or, if nothing has been transmitted, to SN 0.
    pub(super) const fn highest(self, vt_s: u64) -> u32 {
        self.of_own(vt_s.saturating_sub(1))
    }

    /// HFNI of a RESET ACK that is sent again. The peer adds one and obtains the HFN in use.
    ///
    /// Deviation: §11.4.3 requires a copy of the first RESET ACK. The two are equal unless this entity has
    /// been reset by a procedure of its own in the meantime. In that case, the HFNI of the copy would leave
    /// the peer's HFN one too low permanently.
    pub(super) const fn repeated_hfni(self) -> u32 {
        self.own.wrapping_sub(1) & MASK
    }

    /// Adapts the HFNs to a restart of the SN at 0, where VT(S) was `vt_s`. The HFN does not restart.
    pub(super) const fn restarted(self, vt_s: u64) -> Self {
        Self { own: self.highest(vt_s), peer: self.peer }
    }

    /// Sets the peer's HFN to the HFNI of its RESET or RESET ACK PDU (§11.4.3, §11.4.4, §11.4.5.3).
    pub(super) const fn with_peer(self, hfni: u32) -> Self {
        Self { own: self.own, peer: hfni & MASK }
    }

    /// Increases both HFNs by one, for the first AMD PDUs after the reset (§11.4.3, §11.4.4).
    pub(super) const fn increased(self) -> Self {
        Self { own: wrapped(self.own, MODULUS), peer: wrapped(self.peer, MODULUS) }
    }
}

const fn wrapped(first: u32, sn: u64) -> u32 {
    first.wrapping_add((sn / MODULUS) as u32) & MASK
}
