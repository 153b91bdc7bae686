//! A minimal HTTP/1.1 server (RFC 9112) for one page: GET and HEAD of `/`, with one request per connection.
//!
//! Slow clients do not keep others out. A request as a whole and its answer as a whole have a time limit, and
//! if all slots are taken, a new connection gets the slot of an older one ([`slots`]).

mod request;
mod slots;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use airlink::reactor::Clock;
use airwire::time::{Duration, Instant};
use anyhow::Context;
use request::{Answer, LATE, TOO_LONG, answer_to, has_body};
use slots::{ConnectionSlots, Slot};

use crate::shared::console;

/// Limits of the server.
#[derive(Clone, Copy)]
struct Limits {
    /// Time from the connection to the end of the request's header section.
    request: Duration,
    /// Time for the whole answer.
    answer: Duration,
    /// Time in which the client may send the rest of its request after the answer.
    rest: Duration,
    /// Maximum number of open connections. Browsers open several, but not this many.
    open: usize,
}

const LIMITS: Limits = Limits {
    request: Duration::from_secs(5),
    answer: Duration::from_secs(60),
    rest: Duration::from_secs(2),
    open: 64,
};

/// Maximum size of a request's header section in bytes.
const MAX_HEADER: usize = 16 << 10;

/// Serves the page until the process ends.
pub(super) fn serve(address: SocketAddr, page: Vec<u8>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    writeln!(console::stdout(), "http://{}/", listener.local_addr()?)?;
    console::stdout().flush()?;
    accept(&listener, &Arc::new(page), LIMITS);
    Ok(())
}

fn accept(listener: &TcpListener, page: &Arc<Vec<u8>>, limits: Limits) {
    let slots = Arc::new(ConnectionSlots::new(limits.open));
    for stream in listener.incoming() {
        // Either the client closed the connection while it waited, or no file descriptor is free.
        let Ok(stream) = stream else {
            #[expect(clippy::disallowed_methods, reason = "this is a driver: it waits for descriptors")]
            thread::sleep(std::time::Duration::from_millis(50));
            continue;
        };
        let Ok(slot) = Slot::take(&slots, stream) else { continue };
        let page = Arc::clone(page);
        let serve = move || {
            // An error means that the connection has ended, which is not a failure of the server.
            let _ = answer(&slot, &page, limits);
        };
        // Without memory for a thread, the connection is closed.
        let _ = thread::Builder::new().spawn(serve);
    }
}

fn answer(slot: &Slot, page: &[u8], limits: Limits) -> io::Result<()> {
    let stream = slot.stream();
    let head = read_head(stream, &Deadline::after(limits.request))?;
    slot.request_is_complete();
    let (status, body) = match &head {
        Ok(head) => answer_to(head, stream.local_addr()?.ip(), page),
        Err(refusal) => *refusal,
    };
    let kind =
        if status.starts_with("200") { "text/html; charset=utf-8" } else { "text/plain; charset=utf-8" };
    let header = format!(
        "HTTP/1.1 {status}\r\nAllow: GET, HEAD\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\r\n",
        body.len()
    );
    let deadline = Deadline::after(limits.answer);
    deadline.write_all(stream, header.as_bytes())?;
    if head.as_deref().map_or(true, has_body) {
        deadline.write_all(stream, body)?;
    }
    stream.shutdown(Shutdown::Write)?;
    discard_rest(stream, &Deadline::after(limits.rest))
}

/// Reads a request up to the empty line that ends its header section. Returns the answer if that
/// line does not come within the limits.
fn read_head(stream: &TcpStream, deadline: &Deadline) -> io::Result<Result<String, Answer<'static>>> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let from = head.len();
        match deadline.read(stream, &mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => head.extend(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(Err(LATE)),
            Err(error) => return Err(error),
        }
        match request::end_of_head(&head, from) {
            Some(end) if end <= MAX_HEADER => {
                head.truncate(end);
                return Ok(Ok(String::from_utf8_lossy(&head).into_owned()));
            }
            None if head.len() <= MAX_HEADER => {}
            _ => return Ok(Err(TOO_LONG)),
        }
    }
}

/// Reads until the client closes the connection. If unread data were left, the end of the connection would be
/// a reset, and the client might lose the answer (RFC 9112 §9.6).
fn discard_rest(stream: &TcpStream, deadline: &Deadline) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while deadline.read(stream, &mut buffer)? > 0 {}
    Ok(())
}

/// The time until which a part of an exchange must be complete.
struct Deadline {
    clock: Clock,
    at: Instant,
}

impl Deadline {
    fn after(time: Duration) -> Self {
        let clock = Clock::start();
        Self { clock, at: clock.now() + time }
    }

    /// Returns the remaining time, or an error of the kind `TimedOut`.
    fn remaining(&self) -> io::Result<std::time::Duration> {
        match self.at.saturating_since(self.clock.now()) {
            Duration::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(std::time::Duration::from_nanos(left.as_nanos())),
        }
    }

    fn read(&self, mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            stream.set_read_timeout(Some(self.remaining()?))?;
            match stream.read(buffer) {
                Err(error) if is_temporary(&error) => {}
                read => return read,
            }
        }
    }

    fn write_all(&self, mut stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            stream.set_write_timeout(Some(self.remaining()?))?;
            match stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if is_temporary(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns true if the call may be repeated as long as time is left. The timeout of a socket is reported as
/// `WouldBlock`.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}
