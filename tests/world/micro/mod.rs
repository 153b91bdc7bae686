//! The micro-scenarios of P0 (Pan, Mark, Shen) and P2 (Inamura, Miyake, Okada), compared event by event.

mod p0;
mod p2;
mod sequence;
