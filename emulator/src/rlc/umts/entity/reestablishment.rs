//! §9.7.7: the RLC re-establishment function, of the whole entity or of one of its sides.

use airwire::time::Instant;

use super::Entity;

impl Entity {
    /// Re-establishes the whole entity. Both ends have to do so at once, and no PDU that is on its way between them may
    /// arrive any more.
    pub fn reestablish(&mut self, now: Instant) {
        self.unrecoverable = false;
        self.resetting.reestablish();
        self.receiver.reporting.restart(now);
        self.transmitter.polling.restart(now);
        self.reset(now);
    }

    /// Re-establishes the transmitting side. The peer has to re-establish its receiving side at once, and no PDU that is
    /// on its way between them may arrive any more.
    pub fn reestablish_transmitting(&mut self, now: Instant) {
        self.unrecoverable = false;
        self.resetting.reestablish();
        self.hfn = (self.hfni() + 1) & 0xf_ffff;
        self.resets += 1;
        self.transmitter.polling.restart(now);
        self.transmitter.reset(&mut self.stats);
        self.catch_up(now);
    }

    /// Re-establishes the receiving side. The peer has to re-establish its transmitting side at once.
    pub fn reestablish_receiving(&mut self, now: Instant) {
        self.resetting.reestablish();
        self.receiver.reporting.restart(now);
        self.receiver.reset();
        self.catch_up(now);
    }

    /// Takes back all SDUs of which nothing was transmitted: they have no outcome, and their owner may submit them again.
    pub fn withdraw(&mut self) {
        self.transmitter.withdraw();
    }
}
