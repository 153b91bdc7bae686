//! The errors of a world.

use airlink::path::OutOfMemory;
use airlink::scenario::ScenarioError;
use airtcp::host::{ConnectError, ListenError};
use airtcp::recovery::RecipeError;
use airwire::time::Instant;
use airwire::units::Size;

use super::{MAX_FLOWS, StreamError};

/// Error when a world is created or advanced.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The recipe given to [`World::one_flow`](super::World::one_flow) is invalid.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The flows would use too much memory.
    #[error("too many flows for one world: {0}; the maximum is {MAX_FLOWS}")]
    TooManyFlows(usize),
    /// The sender's host refused to connect.
    #[error("flow {flow} cannot start: {error}")]
    Connect {
        /// Index of the flow.
        flow: usize,
        /// The host's error.
        error: ConnectError,
    },
    /// A receiver's host refused to listen.
    #[error("cannot open a listener: {0}")]
    Listen(#[from] ListenError),
    /// The received data differs from the data written.
    #[error("flow {flow} at {at}: {error}")]
    Stream {
        /// Index of the flow.
        flow: usize,
        /// Time at which the receiver read the data.
        at: Instant,
        /// Position and kind of the difference.
        error: StreamError,
    },
    /// Packets circulate endlessly at this instant: the path causes no delay, and a flow is
    /// endless.
    #[error(
        "virtual time does not advance after {0}; give a link of the scenario a `rate` or a `delay`, or limit the flows"
    )]
    Standstill(Instant),
    /// The packets inside the path exceed the memory limit.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The data recorded about watched flows exceeds the memory limit.
    #[error(
        "out of memory at {at} s: the recorded decisions and losses take more than {limit}; shorten the run, or record fewer flows"
    )]
    Records {
        /// Time at which the limit was exceeded.
        at: Instant,
        /// The limit.
        limit: Size,
    },
}
