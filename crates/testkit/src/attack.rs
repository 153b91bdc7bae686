//! An exchange under attack: the two applications continue while forged packets arrive at both ends.

use super::exchange::Exchange;
use super::hostile::{Draw, ForgeryScope};
use super::pair::Peer;

/// Runs the exchange while up to `forged_packets` forged packets arrive at its ends. No forged packet may
/// cause more than one response without data, and all totals must remain consistent. The caller checks
/// whether the streams arrive.
pub fn attack(
    draw: &mut impl Draw,
    exchange: &mut Exchange,
    scope: ForgeryScope,
    forged_packets: u32,
) -> Result<(), String> {
    for _ in 0..forged_packets {
        for _ in 0..draw.below(3) {
            exchange.step()?;
        }
        // Before the handshake is complete, a forged SYN cannot be distinguished from the genuine one.
        if scope == ForgeryScope::Survivable && !exchange.is_synchronized() {
            exchange.step()?;
            continue;
        }
        let from = draw.pick(&[Peer::Left, Peer::Right]);
        let Some(packet) = exchange.eavesdropper.forge(draw, from, scope) else { continue };
        let replies = exchange.inject(from.other(), &packet);
        if replies > 1 {
            return Err(format!("{replies} replies to {packet:02x?}"));
        }
        exchange.audit()?;
    }
    Ok(())
}
