//! TCP Fast Open of one connection (RFC 7413): data in the SYN.
//!
//! The host caches the cookies of servers and checks the cookies of clients. It passes a [`Plan`] to an
//! active open and an [`Answer`] to a passive one. An active open returns a [`Report`].

pub(super) mod keys;

use airwire::fast_open::{FastOpen as FastOpenOption, Format};
use airwire::segment::{Flags, Segment};
use airwire::time::Instant;
pub use keys::FastOpenKeys;
pub(crate) use keys::Validity;

use super::socket::State;

/// Maximum length of the options of a segment. A SYN with data leaves this space unused, because middleboxes
/// may add options (Linux, tcp_send_syn_data()).
pub(super) const OPTION_SPACE: u64 = 40;

/// Number of timeouts in a row before the one that indicates a black hole.
const BLACK_HOLE_AFTER: u32 = 2;

/// The Fast Open part of an active open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// The option of the SYN. `None`: data without a cookie.
    pub(crate) option: Option<FastOpenOption>,
    /// Whether the SYN carries data, and how much.
    pub(crate) text: SynText,
    /// True if this is one of the first connections after a suspension of Fast Open.
    pub(crate) resumes: bool,
}

/// The data in a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SynText {
    /// None: the SYN only requests a cookie.
    None,
    /// The first write of the application, cut to one segment for a server with this MSS.
    UpTo { mss: u16 },
}

/// The host's decision about a SYN at a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The handshake continues without Fast Open.
    Ordinary,
    /// Like `Ordinary`, and the first SYN,ACK carries this cookie.
    Offer(FastOpenOption),
    /// The data is accepted, and may be answered before the handshake is complete. The first SYN,ACK may
    /// carry a new cookie.
    Accept(Option<FastOpenOption>),
}

/// The result of an active open, for the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Report {
    /// The SYN was acknowledged.
    Opened {
        /// The server's MSS.
        mss: u16,
        /// The option of the SYN,ACK.
        option: Option<FastOpenOption>,
        /// The format of a request that was not answered although no SYN was lost.
        unanswered: Option<Format>,
        /// Whether all data in the SYN was acknowledged. `None`: there was none.
        text_acked: Option<bool>,
    },
    /// A firewall probably drops the packets of connections with Fast Open.
    BlackHole,
    /// A connection that resumes Fast Open has received data.
    NoBlackHole,
}

/// The reason why the SYN's acknowledgment did not cover its data (Linux, `tcpi_fastopen_client_fail`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastOpenFailure {
    /// No cookie of the server is known.
    CookieUnavailable = 1,
    /// The SYN,ACK did not acknowledge all of the data.
    DataNotAcked = 2,
    /// The SYN was retransmitted.
    SynRetransmitted = 3,
}

/// The state of Fast Open.
#[derive(Debug, Default)]
pub(super) enum FastOpen {
    #[default]
    Unused,
    /// An active open. Boxed to keep other connections small.
    Client(Box<Client>),
    /// A passive open whose first SYN,ACK carries a cookie. Its data was not accepted.
    Offering(Box<FastOpenOption>),
    /// A passive open whose data was accepted.
    Server(Box<Server>),
}

#[derive(Debug)]
pub(super) struct Client {
    plan: Plan,
    stage: ClientStage,
    failure: Option<FastOpenFailure>,
    report: Option<Report>,
}

/// The progress of an active open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ClientStage {
    /// The SYN waits for the first write of the application.
    WaitsForData,
    /// The SYN is sent next.
    Ready,
    /// The SYN was sent with this many bytes of data.
    Sent { text: u64 },
    /// The handshake is complete. `text_acked` is true if it acknowledged all data in the SYN. `None`: there
    /// was none.
    Open { text_acked: Option<bool> },
}

#[derive(Debug)]
pub(super) struct Server {
    /// True if the SYN had data.
    text: bool,
    stage: ServerStage,
}

/// The progress of the handshake of a passive open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ServerStage {
    /// The SYN,ACK has not been acknowledged. Unlike other SYNs, it is not in the list of data in flight,
    /// because it must not count against the initial window of the data that follows.
    Pending {
        option: Option<FastOpenOption>,
        /// The time of its first transmission, and the number of transmissions.
        sent: Option<(Instant, u16)>,
        /// True if data was sent.
        has_sent_data: bool,
    },
    Open,
}

impl Client {
    /// Returns true if the SYN had the option or data.
    fn is_used(&self) -> bool {
        let text =
            matches!(self.stage, ClientStage::Sent { text: 1.. } | ClientStage::Open { text_acked: Some(_) });
        self.plan.option.is_some() || text
    }
}

impl FastOpen {
    /// Returns the state of an active open.
    pub(super) fn of_plan(plan: Plan) -> Self {
        let stage = if plan.text == SynText::None { ClientStage::Ready } else { ClientStage::WaitsForData };
        let failure = (stage == ClientStage::Ready).then_some(FastOpenFailure::CookieUnavailable);
        Self::Client(Box::new(Client { plan, stage, failure, report: None }))
    }

    fn client(&self) -> Option<&Client> {
        match self {
            Self::Client(client) => Some(client),
            _ => None,
        }
    }

    fn client_mut(&mut self) -> Option<&mut Client> {
        match self {
            Self::Client(client) => Some(client),
            _ => None,
        }
    }

    /// Returns true if the data of the peer's SYN was accepted.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Ends the wait of a SYN for data. Returns true if there is one.
    #[inline]
    pub(super) fn release_syn(&mut self) -> bool {
        match self {
            Self::Client(client) if client.stage == ClientStage::WaitsForData => {
                client.stage = ClientStage::Ready;
                true
            }
            _ => false,
        }
    }

    /// Returns the option of the SYN or SYN,ACK that is sent next in `state`. Retransmissions have none.
    pub(super) fn option(&self, state: State) -> Option<FastOpenOption> {
        match self {
            Self::Client(client) if client.stage == ClientStage::Ready && state == State::SynSent => {
                client.plan.option
            }
            Self::Offering(option) => Some(**option),
            Self::Server(server) => match server.stage {
                ServerStage::Pending { option, .. } => option,
                ServerStage::Open => None,
            },
            _ => None,
        }
    }

    /// Records the SYN or SYN,ACK that was just sent in `state`, with `text` bytes of data. Returns false for a
    /// SYN,ACK that is not in the list of data in flight.
    pub(super) fn on_syn_sent(&mut self, state: State, now: Instant, text: u64) -> bool {
        match self {
            Self::Client(client)
                if matches!(client.stage, ClientStage::WaitsForData | ClientStage::Ready) =>
            {
                match state {
                    State::SynSent => client.stage = ClientStage::Sent { text },
                    // The peer's SYN came before ours.
                    _ => *self = Self::Unused,
                }
            }
            Self::Offering(_) => *self = Self::Unused,
            Self::Server(server) => {
                if let ServerStage::Pending { option, sent, .. } = &mut server.stage {
                    *option = None;
                    let (first, times) = sent.unwrap_or((now, 0));
                    *sent = Some((first, times.saturating_add(1)));
                }
                return false;
            }
            _ => {}
        }
        true
    }

    /// Returns when the SYN,ACK of a passive open whose data was accepted was first sent, and how often.
    /// `None`: it is acknowledged, or was not sent yet.
    pub(super) fn early_syn_ack(&self) -> Option<(Instant, u16)> {
        match self {
            Self::Server(server) => match server.stage {
                ServerStage::Pending { sent, .. } => sent,
                ServerStage::Open => None,
            },
            _ => None,
        }
    }

    /// Records that data is sent although the SYN,ACK is not acknowledged. Returns true for the first data,
    /// or `None` if no data may be sent yet.
    pub(super) fn begin_early_data(&mut self) -> Option<bool> {
        match self {
            Self::Server(server) => match &mut server.stage {
                ServerStage::Pending { sent: Some(_), has_sent_data, .. } => {
                    Some(!std::mem::replace(has_sent_data, true))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Records that the handshake is complete. Returns whether the receiver and the sender began before that.
    pub(super) fn complete(&mut self) -> (bool, bool) {
        match self {
            Self::Server(server) => match std::mem::replace(&mut server.stage, ServerStage::Open) {
                ServerStage::Pending { has_sent_data, .. } => (true, has_sent_data),
                ServerStage::Open => (true, true),
            },
            _ => (false, false),
        }
    }

    /// Processes the ACK of our SYN. `is_missing` is true if it does not acknowledge all data in the SYN, and
    /// `is_resent` if the SYN was retransmitted. Returns false if this is not an active open with Fast Open.
    pub(super) fn on_syn_acked(
        &mut self,
        segment: &Segment<'_>,
        mss: u16,
        is_missing: bool,
        is_resent: bool,
    ) -> bool {
        let Some(client) = self.client_mut() else { return false };
        let ClientStage::Sent { text } = client.stage else { return false };
        // In a simultaneous open, the option is not an answer.
        let option = segment.options.fast_open.filter(|_| segment.flags.contains(Flags::SYN));
        let request = client.plan.option.filter(|_| text == 0 && option.is_none() && !is_resent);
        let text_acked = (text > 0).then_some(!is_missing);
        client.stage = ClientStage::Open { text_acked };
        client.report = Some(Report::Opened {
            mss,
            // An option that was not requested is ignored.
            option: option.filter(|_| client.plan.option.is_some()),
            unanswered: request.map(|option| option.format),
            text_acked,
        });
        match is_missing {
            true if is_resent => client.failure = Some(FastOpenFailure::SynRetransmitted),
            true => client.failure = Some(FastOpenFailure::DataNotAcked),
            false => {}
        }
        true
    }

    fn report_black_hole(&mut self) {
        if let Some(client) = self.client_mut()
            && client.is_used()
        {
            client.report = Some(Report::BlackHole);
        }
    }

    /// Suspects a black hole at the third timeout in a row (Linux, tcp_fastopen_active_detect_blackhole()).
    pub(super) fn on_timeout(&mut self, earlier: u32) {
        if earlier == BLACK_HOLE_AFTER {
            self.report_black_hole();
        }
    }

    /// Suspects a black hole if the connection is given up before that (RFC 9293 §3.8.3, R2).
    pub(super) fn on_given_up(&mut self, timeouts: u32) {
        if timeouts < BLACK_HOLE_AFTER {
            self.report_black_hole();
        }
    }

    /// Processes the end of the connection (Linux, tcp_fastopen_active_disable_ofo_check()). `has_only_fin`
    /// is true if the peer's FIN has arrived, but earlier data is missing.
    pub(super) fn on_end(&mut self, has_received: bool, has_only_fin: bool) {
        let Some(client) = self.client_mut() else { return };
        if !has_received && has_only_fin {
            self.report_black_hole();
        } else if has_received && client.plan.resumes {
            client.report = Some(Report::NoBlackHole);
        }
    }

    /// Returns true if the SYN's acknowledgment, in either direction, also covered its data
    /// (TCPI_OPT_SYN_DATA).
    pub(super) fn syn_text_acked(&self) -> bool {
        match self {
            Self::Client(client) => client.stage == ClientStage::Open { text_acked: Some(true) },
            Self::Server(server) => server.text,
            _ => false,
        }
    }

    /// Returns true if the SYN does not wait for data.
    pub(super) fn sends_syn_at_once(&self) -> bool {
        self.client().is_none_or(|client| client.stage == ClientStage::Ready)
    }

    /// Returns the data that the SYN may carry, while the SYN waits for this data.
    pub(super) fn text_while_waiting(&self) -> Option<SynText> {
        self.client()
            .filter(|client| client.stage == ClientStage::WaitsForData)
            .map(|client| client.plan.text)
    }

    /// Returns the data that the SYN may carry, once it does not wait any longer.
    pub(super) fn text_when_ready(&self) -> Option<SynText> {
        self.client().filter(|client| client.stage == ClientStage::Ready).map(|client| client.plan.text)
    }

    /// Returns the state of a passive open whose SYN had data (`text`) or none, and was accepted. Its SYN,ACK
    /// has this option.
    pub(super) fn accepting(option: Option<FastOpenOption>, text: bool) -> Self {
        let stage = ServerStage::Pending { option, sent: None, has_sent_data: false };
        Self::Server(Box::new(Server { text, stage }))
    }

    /// Removes and returns the report for the host.
    #[inline]
    pub(super) fn take_report(&mut self) -> Option<Report> {
        self.client_mut()?.report.take()
    }

    pub(super) fn failure(&self) -> Option<FastOpenFailure> {
        self.client()?.failure
    }
}
