//! The hyper frame numbers (§11.4.1). COUNT-C of an AMD PDU is the HFN of its direction and its SN. There is no
//! ciphering here; RESET and RESET ACK PDUs tell the HFNs, so that a peer that ciphers stays in step.

/// An HFN has 20 bits.
const MASK: u32 = 0xf_ffff;
/// An HFN lasts for so many SNs.
const MODULUS: u64 = 4096;

/// The HFN of each direction, as one entity knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hfns {
    /// That of the first AMD PDU sent since the last reset. It grows by one with each wrap of SN.
    own: u32,
    /// That of the first AMD PDU of the peer.
    peer: u32,
}

impl Hfns {
    /// The value that upper layers configure for both directions (§9.7.7).
    pub(super) const fn configured(hfn: u32) -> Self {
        let hfn = hfn & MASK;
        Self { own: hfn, peer: hfn }
    }

    /// The value that upper layers configure for what is sent (§9.7.7).
    pub(super) const fn sending(self, hfn: u32) -> Self {
        Self { own: hfn & MASK, peer: self.peer }
    }

    /// That of an AMD PDU sent, by its SN without the modulus.
    pub(super) const fn of_own(self, sn: u64) -> u32 {
        wrapped(self.own, sn)
    }

    /// That of an AMD PDU of the peer, by its SN without the modulus.
    pub(super) const fn of_peer(self, sn: u64) -> u32 {
        wrapped(self.peer, sn)
    }

    /// §11.4.1: the highest HFN used, that of VT(S) − 1; if nothing was transmitted, that of SN 0.
    pub(super) const fn highest(self, vt_s: u64) -> u32 {
        self.of_own(vt_s.saturating_sub(1))
    }

    /// What a RESET ACK says that is sent again. The peer adds one to it, and gets the HFN that is used now.
    ///
    /// Deviation: §11.4.3 repeats the RESET ACK exactly as it was. It is the same, unless this entity has been reset
    /// by a procedure of its own meanwhile; then the old HFNI would put the peer one behind for good.
    pub(super) const fn told_again(self) -> u32 {
        self.own.wrapping_sub(1) & MASK
    }

    /// SN begins again with 0, and HFN goes on: the state variables are reset when VT(S) is `vt_s`.
    pub(super) const fn restarted(self, vt_s: u64) -> Self {
        Self { own: self.highest(vt_s), peer: self.peer }
    }

    /// §11.4.3, §11.4.4, §11.4.5.3: the peer's HFN is HFNI of its RESET or RESET ACK PDU.
    pub(super) const fn told(self, hfni: u32) -> Self {
        Self { own: self.own, peer: hfni & MASK }
    }

    /// §11.4.3, §11.4.4: both are increased by one, for the first AMD PDUs after the reset.
    pub(super) const fn increased(self) -> Self {
        Self { own: wrapped(self.own, MODULUS), peer: wrapped(self.peer, MODULUS) }
    }
}

const fn wrapped(first: u32, sn: u64) -> u32 {
    first.wrapping_add((sn / MODULUS) as u32) & MASK
}
