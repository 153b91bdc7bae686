//! TCP Fast Open of one connection (RFC 7413): data in the SYN, before the handshake is complete.
//!
//! The host keeps the cookies of servers and checks the cookies of clients. It passes a [`Plan`] to an active
//! open and an [`Answer`] to a passive one, and takes a [`Report`] from the former.

mod keys;

use airwire::fast_open::{FastOpen as FastOpenOption, Format};
use airwire::segment::{Flags, Segment};
use airwire::time::Instant;
pub use keys::FastOpenKeys;
pub(crate) use keys::Validity;

use super::connection::Connection;
use super::socket::State;
use crate::recovery::{Departure, Transmission};

/// Maximum length of the options of a segment. The data in a SYN leaves space for all of them, because
/// middleboxes may add some (Linux, tcp_send_syn_data()).
const OPTION_SPACE: u64 = 40;

/// Number of earlier timeouts at the timeout that reveals a black hole.
const BLACK_HOLE_AFTER: u32 = 2;

/// How an active open begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// The option of the SYN. `None`: data without a cookie.
    pub(crate) option: Option<FastOpenOption>,
    /// Whether the SYN carries data, and how much.
    pub(crate) text: TextOfSyn,
    /// True if this is one of the first connections after a suspension of Fast Open.
    pub(crate) resumes: bool,
}

/// The data in a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextOfSyn {
    /// None: the SYN only requests a cookie.
    None,
    /// As much as the application writes first and fits into one segment of a server with this MSS.
    UpTo { mss: u16 },
}

/// The decision about a SYN at a listener.
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

/// Result of an active open, for the host.
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
    /// A firewall seems to drop the packets of such connections.
    BlackHole,
    /// A connection that resumes Fast Open has received data.
    Passes,
}

/// Why the data in a SYN was not acknowledged with it (Linux, `tcpi_fastopen_client_fail`).
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
    stage: Stage,
    failure: Option<FastOpenFailure>,
    report: Option<Report>,
}

/// The progress of an active open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The SYN waits for the application to write.
    Waiting,
    /// The SYN is sent next.
    Ready,
    /// The SYN has left with this many bytes of data.
    Sent { text: u64 },
    /// The handshake is complete. `text_acked` says whether all data in the SYN was acknowledged with it.
    /// `None`: there was none.
    Open { text_acked: Option<bool> },
}

#[derive(Debug)]
pub(super) struct Server {
    /// Whether the SYN had data.
    text: bool,
    stage: Answering,
}

/// The progress of the handshake of a passive open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answering {
    /// The SYN,ACK has not been acknowledged. Unlike other SYNs, it is not in the list of data in flight,
    /// because data in flight after it must not count as outstanding beyond the initial window.
    Pending {
        option: Option<FastOpenOption>,
        /// The time of its first transmission, and the number of transmissions.
        sent: Option<(Instant, u16)>,
        /// True if data was sent.
        sends: bool,
    },
    Open,
}

impl Client {
    /// Returns true if the SYN had the option or data.
    fn is_used(&self) -> bool {
        let text = matches!(self.stage, Stage::Sent { text: 1.. } | Stage::Open { text_acked: Some(_) });
        self.plan.option.is_some() || text
    }
}

impl Connection {
    /// Prepares an active open. Returns true if the SYN can be sent at once.
    pub(super) fn plan_fast_open(&mut self, plan: Option<Plan>) -> bool {
        let Some(plan) = plan else { return true };
        let stage = if plan.text == TextOfSyn::None { Stage::Ready } else { Stage::Waiting };
        let failure = (stage == Stage::Ready).then_some(FastOpenFailure::CookieUnavailable);
        self.fast_open = FastOpen::Client(Box::new(Client { plan, stage, failure, report: None }));
        stage == Stage::Ready
    }

    fn client(&self) -> Option<&Client> {
        match &self.fast_open {
            FastOpen::Client(client) => Some(client),
            _ => None,
        }
    }

    fn client_mut(&mut self) -> Option<&mut Client> {
        match &mut self.fast_open {
            FastOpen::Client(client) => Some(client),
            _ => None,
        }
    }

    /// Returns true if the data of the peer's SYN was accepted and our SYN,ACK is not acknowledged yet. Data
    /// can then be exchanged in SYN-RECEIVED.
    pub fn is_open_early(&self) -> bool {
        self.state == State::SynReceived && self.was_opened_early()
    }

    /// Returns how many bytes the SYN can carry, while it waits for the application to write them. `None`: it
    /// does not wait.
    pub fn room_in_syn(&self) -> Option<usize> {
        let client = self.client().filter(|client| client.stage == Stage::Waiting)?;
        Some(self.syn_limit(client.plan.text) as usize)
    }

    fn syn_limit(&self, text: TextOfSyn) -> u64 {
        let TextOfSyn::UpTo { mss } = text else { return 0 };
        let fits = u64::from(self.pmtu()).saturating_sub(self.negotiated.header_len() as u64);
        let mss = mss.min(self.options.max_seg.unwrap_or(u16::MAX));
        fits.min(mss.into()).saturating_sub(OPTION_SPACE)
    }

    /// Lets a SYN leave that waits for data: the application has written, or will not write.
    #[inline]
    pub(super) fn release_syn(&mut self) {
        if let FastOpen::Client(client) = &mut self.fast_open
            && client.stage == Stage::Waiting
        {
            client.stage = Stage::Ready;
            self.pending.syn = true;
        }
    }

    /// Returns the bytes of data in the SYN that is sent next. A retransmitted SYN has none (RFC 7413
    /// §4.2.2).
    pub(super) fn text_of_syn(&self) -> u64 {
        match self.client() {
            Some(Client { plan, stage: Stage::Ready, .. }) if self.state == State::SynSent => {
                self.syn_limit(plan.text).min(self.snd.buffer.record_end(1) - 1)
            }
            _ => 0,
        }
    }

    /// Returns the Fast Open option of the SYN or SYN,ACK that is sent next. Retransmissions have none.
    pub(super) fn fast_open_option(&self) -> Option<FastOpenOption> {
        match &self.fast_open {
            FastOpen::Client(client) if client.stage == Stage::Ready && self.state == State::SynSent => {
                client.plan.option
            }
            FastOpen::Offering(option) => Some(**option),
            FastOpen::Server(server) => match server.stage {
                Answering::Pending { option, .. } => option,
                Answering::Open => None,
            },
            _ => None,
        }
    }

    /// Records the SYN or SYN,ACK that was just sent, and its data in flight. Returns false for a SYN,ACK
    /// that is not in the list of data in flight.
    pub(super) fn note_syn_sent(&mut self, now: Instant, text: u64) -> bool {
        match &mut self.fast_open {
            FastOpen::Client(client) if matches!(client.stage, Stage::Waiting | Stage::Ready) => {
                match self.state {
                    State::SynSent => client.stage = Stage::Sent { text },
                    // The peer's SYN came before ours.
                    _ => self.fast_open = FastOpen::Unused,
                }
            }
            FastOpen::Offering(_) => self.fast_open = FastOpen::Unused,
            FastOpen::Server(server) => {
                if let Answering::Pending { option, sent, .. } = &mut server.stage {
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

    /// Applies the host's decision about the peer's SYN, whose options are known already.
    pub(crate) fn answer_fast_open(&mut self, now: Instant, syn: &Segment<'_>, answer: Answer) {
        let option = match answer {
            Answer::Ordinary => return,
            Answer::Offer(option) => {
                self.fast_open = FastOpen::Offering(Box::new(option));
                return;
            }
            Answer::Accept(option) => option,
        };
        self.rcv.queued = None;
        self.begin_receiving(now);
        let text = !syn.payload.is_empty();
        if text && self.admits(1, syn.payload.len()) {
            self.statistics.bytes_received += self.rcv.buffer.insert(1, syn.payload, self.rcv.adv);
            self.rcv.mss_seen = syn.payload.len() as u32;
        }
        // Our stream begins after the SYN,ACK.
        self.flight.on_new(1, now, 0);
        self.flight.on_ack(1);
        let stage = Answering::Pending { option, sent: None, sends: false };
        self.fast_open = FastOpen::Server(Box::new(Server { text, stage }));
    }

    /// Returns when the SYN,ACK of a passive open whose data was accepted was first sent, and how often.
    /// `None`: it is acknowledged, or was not sent yet.
    fn early_syn_ack(&self) -> Option<(Instant, u16)> {
        match &self.fast_open {
            FastOpen::Server(server) => match server.stage {
                Answering::Pending { sent, .. } => sent,
                Answering::Open => None,
            },
            _ => None,
        }
    }

    /// Returns the lowest offset that is not acknowledged, and the time when it was first sent.
    pub(super) fn oldest_sent(&self) -> Option<(u64, Instant)> {
        let syn_ack = self.early_syn_ack().map(|(first, _)| (0, first));
        syn_ack.or_else(|| self.flight.head().map(|head| (head.start, head.first_sent)))
    }

    /// Returns true if data or a FIN is to be sent although the SYN,ACK is not acknowledged. The first call
    /// that does so prepares the sender.
    pub(super) fn prepare_early_data(&mut self, now: Instant) -> bool {
        let fin = self.fin_to_send().is_some_and(|fin| self.flight.max() <= fin);
        // After a timeout, data that was sent early is retransmitted first, once the handshake is complete.
        if (self.unsent() == 0 && !fin) || self.snd.wnd == 0 || self.flight.has_rewound() {
            return false;
        }
        let FastOpen::Server(server) = &mut self.fast_open else { return false };
        let Answering::Pending { sent: Some(_), sends, .. } = &mut server.stage else { return false };
        if !std::mem::replace(sends, true) {
            self.begin_sending(now);
        }
        true
    }

    /// Reacts to a timeout of the SYN,ACK after data was sent: regular TCP would have begun with a smaller
    /// window (Linux, tcp_fastopen_synack_timer()). Returns true if the window was reduced, which also backs
    /// off the timer.
    pub(super) fn reduce_early_window(&mut self, now: Instant) -> bool {
        if !self.is_open_early() || self.syn_timeouts != 2 || self.flight.is_empty() {
            return false;
        }
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_timeout(&mut path);
        true
    }

    /// Processes the ACK of our SYN and of data that was sent with it. Returns when the SYN was first sent,
    /// and how often.
    pub(super) fn take_ack_of_syn(&mut self, segment: &Segment<'_>) -> Option<(Instant, u16)> {
        if self.was_opened_early() {
            return self.early_syn_ack();
        }
        let sent = self.flight.head().map(|syn| (syn.first_sent, syn.transmissions));
        self.flight.on_ack(1);
        if let Some(acked) = segment.ack.offset(self.snd.iss, 1).filter(|acked| *acked > 1) {
            self.advance(acked);
        }
        sent
    }

    /// Prepares the receiver and the sender, unless data in the SYN has already done so.
    pub(super) fn begin_transfer(&mut self, now: Instant) {
        let (receives, sends) = match &mut self.fast_open {
            FastOpen::Server(server) => match std::mem::replace(&mut server.stage, Answering::Open) {
                Answering::Pending { sends, .. } => (true, sends),
                Answering::Open => (true, true),
            },
            _ => (false, false),
        };
        if !receives {
            self.begin_receiving(now);
        }
        if !sends {
            self.begin_sending(now);
        }
        if !self.flight.is_empty() {
            self.restart_rto(now);
        }
    }

    /// Draws the conclusions from the end of the handshake, and retransmits the data of the SYN that it does
    /// not acknowledge (RFC 7413 §4.2.2).
    pub(super) fn conclude_handshake(&mut self, now: Instant, segment: &Segment<'_>) {
        let Some(Client { plan, stage: Stage::Sent { text }, .. }) = self.client() else { return };
        let (plan, text) = (*plan, *text);
        let retransmitted = self.syn_timeouts > 0;
        let missing = !self.flight.is_empty();
        // A simultaneous open has no server.
        let option = segment.options.fast_open.filter(|_| segment.flags.contains(Flags::SYN));
        let request = plan.option.filter(|_| text == 0 && option.is_none() && !retransmitted);
        let mss = self.negotiated.peer_mss();
        if let Some(client) = self.client_mut() {
            let text_acked = (text > 0).then_some(!missing);
            client.stage = Stage::Open { text_acked };
            client.report = Some(Report::Opened {
                mss,
                // An option that was not asked for is ignored.
                option: option.filter(|_| plan.option.is_some()),
                unanswered: request.map(|option| option.format),
                text_acked,
            });
            client.failure = match missing {
                true if retransmitted => Some(FastOpenFailure::SynRetransmitted),
                true => Some(FastOpenFailure::DataNotAcked),
                false => client.failure,
            };
        }
        if missing {
            self.resend_text_of_syn(now);
        }
    }

    /// Retransmits at once. This is not congestion, so the window stays.
    fn resend_text_of_syn(&mut self, now: Instant) {
        let tsval = self.negotiated.ts_now(&self.profile, now);
        let (start, end) = (self.flight.una(), self.flight.max());
        let departure = Departure { start, end, kind: Transmission::New, tsval };
        let (recovery, mut path) = self.recovery_and_path(now);
        recovery.on_sent(&mut path, &departure);
        self.flight.rewind();
    }

    /// Suspects a black hole at the third timeout in a row (Linux, tcp_fastopen_active_detect_blackhole()).
    pub(super) fn suspect_blocked_fast_open(&mut self) {
        if self.timeouts_in_row() == BLACK_HOLE_AFTER {
            self.report_black_hole();
        }
    }

    /// Suspects a black hole also if the connection is given up before (RFC 9293 §3.8.3, R2).
    pub(super) fn suspect_blocked_fast_open_at_end(&mut self) {
        if self.timeouts_in_row() < BLACK_HOLE_AFTER {
            self.report_black_hole();
        }
    }

    fn timeouts_in_row(&self) -> u32 {
        match self.state {
            State::SynSent | State::SynReceived => self.rtt.backoff(),
            _ => self.recovery.congestion().timeouts_in_row,
        }
    }

    fn report_black_hole(&mut self) {
        if let Some(client) = self.client_mut()
            && client.is_used()
        {
            client.report = Some(Report::BlackHole);
        }
    }

    /// Draws the conclusions from the end of the connection (Linux, tcp_fastopen_active_disable_ofo_check()).
    pub(super) fn conclude_fast_open(&mut self) {
        let Some(resumes) = self.client().map(|client| client.plan.resumes) else { return };
        if self.state == State::Closed {
            return;
        }
        let held = !self.rcv.buffer.out_of_order().is_empty();
        let has_received = self.statistics.bytes_received > 0 || held;
        if !has_received && self.rcv.fin.is_some_and(|fin| fin > self.rcv.buffer.next()) {
            self.report_black_hole();
        } else if has_received
            && resumes
            && let Some(client) = self.client_mut()
        {
            client.report = Some(Report::Passes);
        }
    }

    /// Returns what the host should know, once.
    #[inline]
    pub(crate) fn take_fast_open_report(&mut self) -> Option<Report> {
        match &mut self.fast_open {
            FastOpen::Client(client) => client.report.take(),
            _ => None,
        }
    }

    /// Returns true if the data of the peer's SYN was accepted.
    pub(crate) fn was_opened_early(&self) -> bool {
        matches!(self.fast_open, FastOpen::Server(_))
    }

    /// Returns whether the data in a SYN of either end was acknowledged with it (TCPI_OPT_SYN_DATA).
    pub(super) fn syn_text_acked(&self) -> bool {
        match &self.fast_open {
            FastOpen::Client(client) => client.stage == Stage::Open { text_acked: Some(true) },
            FastOpen::Server(server) => server.text,
            _ => false,
        }
    }

    pub(super) fn fast_open_failure(&self) -> Option<FastOpenFailure> {
        self.client()?.failure
    }
}
