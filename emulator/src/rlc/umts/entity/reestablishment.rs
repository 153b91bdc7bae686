//! The RLC re-establishment function (§9.7.7), for a whole entity or for one of its sides. `hfn` is the HFN
//! that upper layers configure for the re-established directions.

use airwire::time::Instant;

use super::Entity;
use super::hfn::Hfns;

impl Entity {
    /// Re-establishes the whole entity. Both ends must do this at the same time. PDUs in flight must not
    /// arrive.
    pub fn reestablish(&mut self, now: Instant, hfn: u32) {
        self.unrecoverable = false;
        self.transmitter.resume();
        self.resetting.reestablish();
        self.receiver.reporting.restart(now);
        self.transmitter.polling.restart(now);
        self.reset(now, Hfns::configured(hfn));
    }

    /// Re-establishes the transmitting side. The peer must re-establish its receiving side at the same time.
    /// PDUs in flight must not arrive.
    pub fn reestablish_transmitting(&mut self, now: Instant, hfn: u32) {
        self.unrecoverable = false;
        self.transmitter.resume();
        self.resetting.reestablish();
        self.hfns = self.hfns.with_own(hfn);
        self.resets += 1;
        self.transmitter.polling.restart(now);
        self.transmitter.reset(&mut self.stats);
        self.catch_up(now);
    }

    /// Re-establishes the receiving side. The peer must re-establish its transmitting side at the same time.
    pub fn reestablish_receiving(&mut self, now: Instant, hfn: u32) {
        self.hfns = self.hfns.with_peer(hfn);
        self.resetting.reestablish();
        self.receiver.reporting.restart(now);
        self.receiver.reset();
        self.catch_up(now);
    }

    /// Removes all SDUs whose transmission has not begun. They have no outcome, and their owner may
    /// submit them again.
    pub fn withdraw(&mut self) {
        self.transmitter.withdraw();
    }
}
