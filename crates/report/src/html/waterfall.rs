//! The requests and responses of a connection over time, as plain HTML and CSS.

use std::fmt::Write;

use airtcp_analyze::trace::{Offset, Sending, Trace};
use airtcp_numbers::units::show_bytes;

use super::table::escape;

/// Maximum number of exchanges with a bar.
const MAX_BARS: usize = 100;

/// The exchanges of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waterfall {
    /// The heading.
    pub title: String,
    /// Whether the bars are visible at once. Otherwise a click opens them.
    pub is_open: bool,
    /// The exchanges in order of time.
    pub exchanges: Vec<Exchange>,
}

/// A request of the client and the response of the server. The request or the response can be missing:
/// servers can begin, and clients can end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The request.
    pub request: Option<Message>,
    /// The response.
    pub response: Option<Message>,
}

/// Data of one end, until the other end sends data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The time of the first packet.
    pub from: Offset,
    /// The time of the last packet.
    pub to: Offset,
    /// Data in bytes, without retransmissions.
    pub bytes: u64,
}

impl Exchange {
    fn from(&self) -> Offset {
        self.request.or(self.response).map_or(0, |message| message.from)
    }

    fn to(&self) -> Offset {
        self.response.or(self.request).map_or(0, |message| message.to)
    }

    /// Returns the time between the end of the request and the begin of the response.
    fn wait(&self) -> Option<Offset> {
        Some(self.response?.from - self.request?.to)
    }

    /// Describes the exchange in a few words.
    fn words(&self) -> String {
        let bytes =
            |message: Option<Message>| message.map_or_else(|| "–".to_owned(), |it| show_bytes(it.bytes));
        let wait = self.wait().map(|wait| format!(", wait {:.1} ms", wait as f64 / 1e6));
        format!("{} → {}{}", bytes(self.request), bytes(self.response), wait.unwrap_or_default())
    }
}

/// Returns the exchanges of a connection from the traces of the client and of the server. `is_closed` is
/// whether both ends sent a FIN.
pub fn exchanges(traces: &[Trace; 2], is_closed: bool) -> Vec<Exchange> {
    let mut packets: Vec<(Offset, usize, u64)> = Vec::new();
    for (from, trace) in traces.iter().enumerate() {
        // Offsets count from the trace's own origin.
        let shift = trace.origin - traces[0].origin;
        let new = trace.segments.iter().filter(|segment| segment.sending == Sending::New);
        // The SYN and the FIN take a byte of the sequence space each.
        let fin = new.clone().map(|segment| segment.end).max().filter(|_| is_closed);
        packets.extend(new.filter_map(|segment| {
            let flags = u64::from(segment.start == 0) + u64::from(Some(segment.end) == fin);
            let bytes = (segment.end - segment.start).saturating_sub(flags);
            (bytes > 0).then_some((segment.at + shift, from, bytes))
        }));
    }
    packets.sort_by_key(|(at, ..)| *at);
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut last = None;
    for (at, from, bytes) in packets {
        let current = exchanges.last_mut();
        let message = current.and_then(|current| match from {
            0 => current.request.as_mut(),
            _ => current.response.as_mut(),
        });
        match message.filter(|_| last == Some(from)) {
            Some(message) => (message.to, message.bytes) = (at, message.bytes + bytes),
            None => {
                let message = Some(Message { from: at, to: at, bytes });
                match (from, exchanges.last_mut()) {
                    (1, Some(current)) if current.response.is_none() => current.response = message,
                    (0, _) => exchanges.push(Exchange { request: message, response: None }),
                    _ => exchanges.push(Exchange { request: None, response: message }),
                }
            }
        }
        last = Some(from);
    }
    exchanges
}

impl Waterfall {
    pub(super) fn html(&self) -> String {
        let shown = &self.exchanges[..self.exchanges.len().min(MAX_BARS)];
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else { return String::new() };
        let (begin, end) = (first.from(), last.to().max(first.from() + 1));
        let percent = |at: Offset| 100.0 * (at - begin) as f64 / (end - begin) as f64;
        let open = if self.is_open { " open" } else { "" };
        let mut html = format!(
            "<details class=\"waterfall\"{open}><summary>{}</summary>\n\
             <p class=\"key\"><i class=\"request\"></i> request <i class=\"wait\"></i> wait \
             <i class=\"response\"></i> response</p>\n<div class=\"exchanges\">\n",
            escape(&self.title)
        );
        for exchange in shown {
            html.push_str("<div class=\"exchange\"><span>");
            html.push_str(&escape(&exchange.words()));
            html.push_str("</span><span class=\"track\">");
            let mut bar = |class: &str, from: Offset, to: Offset| {
                let (left, width) = (percent(from), percent(to) - percent(from));
                let _ = write!(html, "<i class=\"{class}\" style=\"left:{left:.2}%;width:{width:.2}%\"></i>");
            };
            if let (Some(request), Some(response)) = (exchange.request, exchange.response) {
                bar("wait", request.to, response.from);
            }
            for (class, message) in [("request", exchange.request), ("response", exchange.response)] {
                if let Some(Message { from, to, .. }) = message {
                    bar(class, from, to);
                }
            }
            html.push_str("</span></div>\n");
        }
        let more = self.exchanges.len() - shown.len();
        let _ = writeln!(
            html,
            "</div>\n<p class=\"key\">{:.3} s to {:.3} s of the connection{}</p></details>",
            begin as f64 / 1e9,
            end as f64 / 1e9,
            if more > 0 { format!("; {more} later exchanges are not shown") } else { String::new() }
        );
        html
    }
}

#[cfg(test)]
mod tests {
    use airtcp_analyze::trace::{Fate, SentSegment};

    use super::*;

    const MS: Offset = 1_000_000;

    fn trace(origin: i64, sent: &[(Offset, u64, u64, Sending)]) -> Trace {
        let segments = sent.iter().map(|(at, start, end, sending)| SentSegment {
            at: *at,
            number: 1,
            start: *start,
            end: *end,
            sending: *sending,
            dupacks: 0,
            in_flight: 0,
            fate: Fate::Unknown,
        });
        Trace { origin, segments: segments.collect(), ..Trace::default() }
    }

    #[test]
    fn alternating_data_becomes_exchanges() {
        let client = trace(
            0,
            &[
                (0, 0, 1, Sending::New),
                (10 * MS, 1, 201, Sending::New),
                (20 * MS, 1, 201, Sending::Timeout),
                (100 * MS, 201, 301, Sending::New),
                (140 * MS, 301, 302, Sending::New),
            ],
        );
        // The server's trace begins 5 ms later.
        let server = trace(
            5 * MS,
            &[
                (45 * MS, 1, 1001, Sending::New),
                (55 * MS, 1001, 2001, Sending::New),
                (115 * MS, 2001, 2011, Sending::New),
                (130 * MS, 2011, 2012, Sending::New),
            ],
        );
        let exchanges = exchanges(&[client, server], true);
        let words: Vec<_> = exchanges.iter().map(Exchange::words).collect();
        assert_eq!(words, ["200 B → 2.00 kB, wait 40.0 ms", "100 B → 10 B, wait 20.0 ms"]);
        let html = Waterfall { title: "a < b".to_owned(), is_open: false, exchanges }.html();
        assert!(html.contains("a &lt; b") && html.contains("0.010 s to 0.120 s"), "{html}");
        // From 10 to 120 ms, the first wait takes 40 of 110 ms.
        assert!(html.contains("class=\"wait\" style=\"left:0.00%;width:36.36%\""), "{html}");
    }

    #[test]
    fn greeting_of_server_has_no_request() {
        let (client, server) = (trace(0, &[]), trace(0, &[(MS, 1, 40, Sending::New)]));
        let [greeting] = exchanges(&[client, server], false)[..] else { panic!("one exchange") };
        assert_eq!((greeting.request, greeting.wait()), (None, None));
        assert_eq!(greeting.words(), "– → 39 B");
    }
}
