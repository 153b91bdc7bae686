//! Hosts over the paths of airlink in virtual time: each algorithm behaves as in its paper.

mod etcp;
mod fitted;
mod handovers;
mod judges;
mod many_flows;
mod micro;
mod models;
mod oracle;
mod paths;
mod queues;
mod spurious;
mod timers;
mod unwatched;
mod windows;
