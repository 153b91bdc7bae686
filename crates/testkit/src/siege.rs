//! An exchange under attack: the two applications go on while forged packets hit both ends.

use super::exchange::Exchange;
use super::hostile::{Draw, Malice};
use super::pair::Peer;

/// Runs the exchange while up to `blows` forged packets hit its ends. None may provoke more than one packet without
/// text in reply, and every sum must stay right. Whether the streams arrive is for the caller to check.
pub fn siege(
    draw: &mut impl Draw,
    exchange: &mut Exchange,
    malice: Malice,
    blows: u32,
) -> Result<(), String> {
    for _ in 0..blows {
        for _ in 0..draw.below(3) {
            exchange.step()?;
        }
        // Before the handshake is over, nothing tells a forged SYN from the true one.
        if malice == Malice::Survivable && !exchange.is_synchronized() {
            exchange.step()?;
            continue;
        }
        let from = draw.pick(&[Peer::Left, Peer::Right]);
        let Some(packet) = exchange.heard.forge(draw, from, malice) else { continue };
        let replies = exchange.inject(from.other(), &packet);
        if replies > 1 {
            return Err(format!("{replies} replies to {packet:02x?}"));
        }
        exchange.audit()?;
    }
    Ok(())
}
