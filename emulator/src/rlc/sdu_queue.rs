//! SDUs that wait for their first transmission.

use std::collections::VecDeque;

use super::service::Sdu;

#[derive(Debug, Default)]
pub(in crate::rlc) struct SduQueue {
    /// In the order of submission, which is the order of the identifiers.
    sdus: VecDeque<Sdu>,
    octets: u64,
}

impl SduQueue {
    /// Adds an SDU.
    ///
    /// # Panics
    ///
    /// If the SDU is empty or exceeds 65 535 octets.
    pub(in crate::rlc) fn push(&mut self, sdu: Sdu) {
        assert!(!sdu.octets.is_empty(), "an RLC SDU has at least one octet");
        assert!(sdu.octets.len() <= 0xffff, "an RLC SDU has at most 65535 octets");
        self.octets += sdu.octets.len() as u64;
        self.sdus.push_back(sdu);
    }

    pub(in crate::rlc) fn front(&self) -> Option<&Sdu> {
        self.sdus.front()
    }

    pub(in crate::rlc) fn pop(&mut self) -> Option<Sdu> {
        let sdu = self.sdus.pop_front()?;
        self.octets -= sdu.octets.len() as u64;
        Some(sdu)
    }

    /// Removes the SDU with this identifier. Returns whether it was waiting.
    pub(in crate::rlc) fn discard(&mut self, id: u64) -> bool {
        let Ok(index) = self.sdus.binary_search_by_key(&id, |sdu| sdu.id) else { return false };
        if let Some(sdu) = self.sdus.remove(index) {
            self.octets -= sdu.octets.len() as u64;
        }
        true
    }

    pub(in crate::rlc) fn is_empty(&self) -> bool {
        self.sdus.is_empty()
    }

    pub(in crate::rlc) const fn octets(&self) -> u64 {
        self.octets
    }

    /// Number of SDUs.
    pub(in crate::rlc) fn len(&self) -> usize {
        self.sdus.len()
    }
}
