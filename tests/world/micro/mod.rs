//! The micro-scenarios of P0 (Pan, Mark, Shen) and P2 (Inamura, Miyake, Okada), event for event.

mod p0;
mod p2;
mod sequence;
