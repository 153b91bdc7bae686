//! The calls of a script: parses their arguments, passes them to the socket layer and compares the results.

use airwire::time::{Duration, Instant};

use super::times::CallEnd;
use super::{Blocked, MAX_WAIT, Runner};
use crate::args::{
    O_NONBLOCK, O_RDWR, address, blocking, fast_open_keys, fd, flags, how, int_option, linger, memory,
    number, option, poll_set, size, stream_socket, symbol, value, vector_len, wait,
};
use crate::ast::{Call, Expect, Form, Value};
use crate::errno::Errno;
use crate::script_flow::payload;
use crate::sockopt::{FastOpenOption, SockOpt};
use crate::syscall::{
    Blocking, Events, Fd, Finished, OptionValue, Push, ReadMode, Record, Reply, Request, ShutdownHow,
    Submitted, Ticket,
};
use crate::verdict::{Problem, Step};

/// Maximum length of one write, whose data is generated in memory.
const LARGEST_WRITE: u32 = 1 << 28;

/// A call in progress and its expected result.
pub(super) struct ActiveCall {
    name: String,
    fd: Fd,
    expect: Expected,
    /// Expected `revents` of each entry of poll(2). `None` if any value is accepted.
    revents: Vec<Option<Events>>,
    /// After MSG_PEEK, the next read returns the same data.
    mode: ReadMode,
    /// Whether calls on the descriptor that accept(2) opens block.
    blocking: Blocking,
}

enum Expected {
    Number(i64),
    Anything,
    Errno(Errno),
    /// `-1` without the name of an error.
    AnyErrno,
    /// Success with any value.
    Success,
}

impl Runner {
    /// Runs a call. `end` is the time at which it must return, if the line gives one.
    pub(super) fn run_call(&mut self, call: &Call, end: Option<CallEnd>, step: Step) -> Result<(), Problem> {
        let name = call.name.as_str();
        if call.form == Form::Short {
            return self.short(call, end, step);
        }
        let expect = expected(&call.expect)?;
        match name {
            "socket" => {
                let blocking = stream_socket(call)?;
                let fd = new_fd(&expect);
                self.check_new(fd)?;
                let sockets = self.sockets()?;
                let opened = sockets.socket(fd).and_then(|()| sockets.set_blocking(fd, blocking));
                let result = opened.map(|()| i64::from(fd.0));
                self.files.insert(fd, Default::default());
                // The following packet lines refer to a connection of this socket until a line
                // selects another one.
                self.current = None;
                self.first_new_flow = self.flows.len();
                verify(name, &expect, result)?;
            }
            "bind" => {
                let addr = address(call.args.get(1), self.setup.local)?;
                let fd = fd(call)?;
                let result = self.sockets()?.bind(fd, addr);
                verify(name, &expect, result.map(|()| 0))?;
            }
            "listen" => {
                let (fd, backlog) = (fd(call)?, number(call, 1)?);
                let result = self.sockets()?.listen(fd, usize::try_from(backlog).unwrap_or(0));
                verify(name, &expect, result.map(|()| 0))?;
            }
            "shutdown" => {
                let (fd, how) = (fd(call)?, how(call)?);
                let result = self.sockets()?.shutdown(fd, how);
                verify(name, &expect, result.map(|()| 0))?;
            }
            "fcntl" => self.fcntl(call, &expect)?,
            "ioctl" => self.ioctl(call, &expect)?,
            "setsockopt" => self.setsockopt(call, &expect)?,
            "getsockopt" => self.getsockopt(call, &expect)?,
            _ => {
                let (request, active) = self.request(call, expect)?;
                return self.submit(request, active, end, step);
            }
        }
        self.at_once(end, &format!("`{name}`"))
    }

    /// Checks a call that returned immediately: its line must not give an end time in the future.
    fn at_once(&self, end: Option<CallEnd>, what: &str) -> Result<(), Problem> {
        match end {
            Some(end) if self.now() + end.tolerance < end.at => Err(Problem::new(format!(
                "{what} returned immediately, expected it to wait for {}",
                end.at - self.now()
            ))),
            _ => Ok(()),
        }
    }

    /// Runs a short form such as `write 4000` on the latest connection. It must transfer the whole
    /// length.
    fn short(&mut self, call: &Call, end: Option<CallEnd>, step: Step) -> Result<(), Problem> {
        let Some(fd) = self.latest else {
            return Err(Problem::new(format!(
                "`{}` needs a connection that was accepted or connected",
                call.name
            )));
        };
        let len = match call.args.first() {
            Some(Value::Int(len)) => *len,
            _ => 0,
        };
        let active = |expect| ActiveCall {
            name: call.name.clone(),
            fd,
            expect,
            revents: Vec::new(),
            mode: ReadMode::Consume,
            blocking: Blocking::Wait,
        };
        match call.name.as_str() {
            "write" => {
                let request = self.write_request(fd, len, &[])?;
                self.submit(request, active(Expected::Number(len)), end, step)
            }
            "read" => {
                let request =
                    Request::Receive { fd, len: size(len)?, mode: ReadMode::Consume, wait: Blocking::Wait };
                self.submit(request, active(Expected::Number(len)), end, step)
            }
            "close" => self.submit(Request::Close { fd }, active(Expected::Success), end, step),
            _ => {
                let result = self.sockets()?.shutdown(fd, ShutdownHow::Write);
                verify("shutdown", &Expected::Success, result.map(|()| 0))?;
                self.at_once(end, "`shutdown`")
            }
        }
    }

    fn submit(
        &mut self,
        request: Request,
        call: ActiveCall,
        end: Option<CallEnd>,
        step: Step,
    ) -> Result<(), Problem> {
        match (self.sockets()?.submit(request), end) {
            (Submitted::Done(result), _) => {
                let call_text = match &result {
                    Ok(Reply::Closed) => format!("`{}`", call.name),
                    result => format!("`{}` ({})", call.name, describe(result)),
                };
                self.at_once(end, &call_text)?;
                self.conclude(call, result)
            }
            (Submitted::Blocked(ticket), Some(end)) => {
                self.blocked = Some(Blocked { ticket, call, end, step });
                // The following lines may need packets that the blocked call has already sent.
                self.collect()
            }
            (Submitted::Blocked(ticket), None) => self.wait_for_return(ticket, call),
        }
    }

    /// Waits for a call without an end time. The script waits too, so only a timer of the host can
    /// end the call.
    fn wait_for_return(&mut self, ticket: Ticket, call: ActiveCall) -> Result<(), Problem> {
        let problem = Problem::new(format!(
            "`{}` has to wait, but its line has no end time such as +0...0.2",
            call.name
        ));
        let limit = self.now() + MAX_WAIT;
        loop {
            if let Some(finished) = self.sockets()?.take_finished(ticket) {
                return self.conclude(call, finished.result).map_err(|error| problem.with(error.message));
            }
            if !self.sockets()?.step(limit).map_err(super::stuck)? {
                return Err(problem);
            }
        }
    }

    /// Checks a blocked call that has returned.
    pub(super) fn returned(&mut self, blocked: Blocked, finished: Finished) -> Result<(), Problem> {
        let CallEnd { at, tolerance } = blocked.end;
        let off = finished.at.saturating_since(at).max(at.saturating_since(finished.at));
        let line = blocked.step.position.line;
        if off > tolerance {
            let direction = if finished.at < at { "early" } else { "late" };
            return Err(Problem::new(format!(
                "the call of line {line} returned {off} too {direction} ({})",
                describe(&finished.result)
            )));
        }
        self.conclude(blocked.call, finished.result).map_err(|problem| Problem {
            message: format!("the call of line {line}: {}", problem.message),
            ..problem
        })
    }

    /// Compares the result and the data read with the expectation.
    fn conclude(&mut self, call: ActiveCall, result: Result<Reply, Errno>) -> Result<(), Problem> {
        let fd = call.fd;
        let number = match result {
            Err(errno) => Err(errno),
            Ok(Reply::Accepted(peer)) => {
                let accepted = new_fd(&call.expect);
                if call.blocking == Blocking::Return && accepted != NO_FD {
                    self.sockets()?
                        .set_blocking(accepted, Blocking::Return)
                        .map_err(|errno| Problem::new(errno.to_string()))?;
                }
                self.files.insert(accepted, Default::default());
                self.name_flow(accepted, peer);
                self.latest = Some(accepted);
                Ok(i64::from(accepted.0))
            }
            Ok(Reply::Connected | Reply::Closed) => Ok(0),
            Ok(Reply::Sent(sent)) => {
                self.files.entry(fd).or_default().written += sent as u32;
                Ok(sent as i64)
            }
            Ok(Reply::Received(data)) => {
                let streams = self.files.entry(fd).or_default();
                if data != payload(1 + streams.read, data.len() as u32) {
                    return Err(Problem::new("the data read differs from the data that the script sent"));
                }
                if call.mode == ReadMode::Consume {
                    streams.read += data.len() as u32;
                }
                Ok(data.len() as i64)
            }
            Ok(Reply::Polled(events)) => {
                for (nth, (expected, actual)) in call.revents.iter().zip(&events).enumerate() {
                    if let Some(expected) = expected
                        && expected != actual
                    {
                        return Err(Problem::new(format!(
                            "revents of entry {nth} are {actual}, expected {expected}"
                        )));
                    }
                }
                Ok(events.iter().filter(|events| **events != Events::default()).count() as i64)
            }
        };
        verify(&call.name, &call.expect, number)
    }

    fn request(&mut self, call: &Call, expect: Expected) -> Result<(Request, ActiveCall), Problem> {
        let name = call.name.as_str();
        let mut revents = Vec::new();
        let mut mode = ReadMode::Consume;
        let mut accepted = Blocking::Wait;
        let mut subject = Fd(-1);
        let request = match name {
            "accept" | "accept4" => {
                subject = fd(call)?;
                memory(call, 1)?;
                memory(call, 2)?;
                let known: &[&str] = if name == "accept4" { &["SOCK_NONBLOCK", "SOCK_CLOEXEC"] } else { &[] };
                accepted = blocking(&flags(call, 3, known)?);
                self.check_new(new_fd(&expect))?;
                Request::Accept { fd: subject, as_fd: new_fd(&expect) }
            }
            "connect" => {
                subject = fd(call)?;
                self.latest = Some(subject);
                Request::Connect { fd: subject, to: address(call.args.get(1), self.setup.remote)? }
            }
            "read" | "recv" => {
                subject = fd(call)?;
                memory(call, 1)?;
                let flags =
                    if name == "recv" { flags(call, 3, &["MSG_PEEK", "MSG_DONTWAIT"])? } else { Vec::new() };
                if flags.contains(&"MSG_PEEK") {
                    mode = ReadMode::Peek;
                }
                Request::Receive { fd: subject, len: size(number(call, 2)?)?, mode, wait: wait(&flags) }
            }
            "write" | "send" => {
                subject = fd(call)?;
                memory(call, 1)?;
                let known = ["MSG_DONTWAIT", "MSG_MORE", "MSG_NOSIGNAL", "MSG_EOR"];
                let flags = if name == "send" { flags(call, 3, &known)? } else { Vec::new() };
                self.write_request(subject, number(call, 2)?, &flags)?
            }
            "sendto" => {
                subject = fd(call)?;
                self.sendto_request(call, subject)?
            }
            "writev" => {
                subject = fd(call)?;
                self.write_request(subject, vector_len(call.args.get(1))?, &[])?
            }
            "close" => {
                subject = fd(call)?;
                Request::Close { fd: subject }
            }
            "poll" => {
                let entries = poll_set(call)?;
                if usize::try_from(number(call, 1)?) != Ok(entries.len()) {
                    return Err(Problem::new(format!("this poll has {} entries", entries.len())));
                }
                let set = entries.iter().map(|entry| (entry.fd, entry.interest)).collect();
                revents = entries.into_iter().map(|entry| entry.revents).collect();
                Request::Poll { set, until: self.poll_until(number(call, 2)?)? }
            }
            _ => {
                return Err(Problem::new(format!(
                    "unknown call `{name}`; known are socket bind listen accept connect read recv write send sendto writev poll shutdown close fcntl ioctl getsockopt setsockopt"
                )));
            }
        };
        Ok((
            request,
            ActiveCall { name: name.to_owned(), fd: subject, expect, revents, mode, blocking: accepted },
        ))
    }

    fn sendto_request(&mut self, call: &Call, fd: Fd) -> Result<Request, Problem> {
        memory(call, 1)?;
        let known = ["MSG_FASTOPEN", "MSG_DONTWAIT", "MSG_MORE", "MSG_NOSIGNAL", "MSG_EOR"];
        let flags = flags(call, 3, &known)?;
        match self.write_request(fd, number(call, 2)?, &flags)? {
            Request::Send { fd, data, wait, push, record } if flags.contains(&"MSG_FASTOPEN") => {
                self.latest = Some(fd);
                let to = address(call.args.get(4), self.setup.remote)?;
                Ok(Request::OpenAndSend { fd, to, data, wait, push, record })
            }
            // The address of a connected socket has no effect.
            request => Ok(request),
        }
    }

    /// Returns the time at which a poll with this timeout in milliseconds ends. A negative timeout never
    /// expires.
    fn poll_until(&mut self, timeout: i64) -> Result<Option<Instant>, Problem> {
        let timeout = i32::try_from(timeout)
            .map_err(|_| Problem::new("the timeout of poll is an int, in milliseconds"))?;
        let now = self.sockets()?.now();
        Ok(u64::try_from(timeout).ok().map(|ms| now + Duration::from_millis(ms)))
    }

    /// Checks that the descriptor which a call is expected to open is not open yet.
    fn check_new(&mut self, fd: Fd) -> Result<(), Problem> {
        match fd != NO_FD && self.sockets()?.is_open(fd) {
            true => Err(Problem::new(format!("descriptor {} is already open; use another one", fd.0))),
            false => Ok(()),
        }
    }

    fn write_request(&self, fd: Fd, len: i64, flags: &[&str]) -> Result<Request, Problem> {
        let push = if flags.contains(&"MSG_MORE") { Push::Later } else { Push::Now };
        let record = if flags.contains(&"MSG_EOR") { Record::Ends } else { Record::Continues };
        let written = self.files.get(&fd).map_or(0, |streams| streams.written);
        let len = u32::try_from(len)
            .ok()
            .filter(|len| *len <= LARGEST_WRITE)
            .ok_or_else(|| Problem::new(format!("{len} is not a length from 0 to {LARGEST_WRITE}")))?;
        Ok(Request::Send { fd, data: payload(1 + written, len), wait: wait(flags), push, record })
    }

    fn fcntl(&mut self, call: &Call, expect: &Expected) -> Result<(), Problem> {
        let fd = fd(call)?;
        let sockets = self.sockets()?;
        let result = match symbol(call, 1)? {
            "F_GETFL" => sockets.blocking(fd).map(|blocking| match blocking {
                Blocking::Wait => O_RDWR,
                Blocking::Return => O_RDWR | O_NONBLOCK,
            }),
            "F_SETFL" => {
                let blocking =
                    if number(call, 2)? & O_NONBLOCK == 0 { Blocking::Wait } else { Blocking::Return };
                sockets.set_blocking(fd, blocking).map(|()| 0)
            }
            other => return Err(Problem::new(format!("fcntl accepts F_GETFL and F_SETFL, not {other}"))),
        };
        verify("fcntl", expect, result)
    }

    fn ioctl(&mut self, call: &Call, expect: &Expected) -> Result<(), Problem> {
        let fd = fd(call)?;
        let request = symbol(call, 1)?;
        if !["SIOCINQ", "FIONREAD"].contains(&request) {
            return Err(Problem::new(format!("ioctl accepts SIOCINQ, not {request}")));
        }
        let result = self.sockets()?.unread(fd);
        if let (Ok(unread), Some(expected)) = (&result, expected_number(call, 2)?)
            && expected != *unread as i64
        {
            return Err(Problem::new(format!("{request} returned {unread}, expected {expected}")));
        }
        verify("ioctl", expect, result.map(|_| 0))
    }

    fn setsockopt(&mut self, call: &Call, expect: &Expected) -> Result<(), Problem> {
        let fd = fd(call)?;
        let option = option(call)?;
        let value = match call.args.get(3) {
            _ if option == SockOpt::Ignored => {
                self.setup.notes.push(format!("`{}` has no effect", symbol(call, 2)?));
                OptionValue::Int(0)
            }
            Some(Value::Struct(members)) if option == SockOpt::Linger => linger(members)?,
            Some(Value::List(values)) if values.len() == 1 => int_option(&values[0])?,
            Some(Value::Text(text)) if option == SockOpt::FastOpen(FastOpenOption::Key) => {
                fast_open_keys(text)
            }
            Some(other) => int_option(other)?,
            None => return Err(Problem::new("setsockopt needs a value")),
        };
        let result = self.sockets()?.set_option(fd, option, value);
        verify("setsockopt", expect, result.map(|()| 0))
    }

    fn getsockopt(&mut self, call: &Call, expect: &Expected) -> Result<(), Problem> {
        let fd = fd(call)?;
        let option = option(call)?;
        if let SockOpt::Accepted | SockOpt::Ignored = option {
            return Err(Problem::new(format!("airtcp does not keep the value of `{}`", symbol(call, 2)?)));
        }
        let result = self.sockets()?.option(fd, option);
        let expected = match call.args.get(3) {
            Some(Value::Struct(members)) if option == SockOpt::Linger => Some(linger(members)?),
            _ => match expected_number(call, 3)? {
                Some(number) => Some(int_option(&Value::Int(number))?),
                None => None,
            },
        };
        if let (Some(expected), Ok(actual)) = (expected, result)
            && expected != actual
        {
            return Err(Problem::new(format!("the option is {actual}, expected {expected}")));
        }
        verify("getsockopt", expect, result.map(|_| 0))
    }
}

/// Returns the expected number of an argument `[N]`. `None`: any number is accepted.
fn expected_number(call: &Call, nth: usize) -> Result<Option<i64>, Problem> {
    match call.args.get(nth) {
        None | Some(Value::Ellipsis) => Ok(None),
        Some(Value::List(values)) if matches!(values.as_slice(), [] | [Value::Ellipsis]) => Ok(None),
        Some(Value::List(values)) if values.len() == 1 => value(&values[0]).map(Some),
        Some(other) => Err(Problem::new(format!(
            "expected `[N]` or `...` as argument {} of `{}`, found {other:?}",
            nth + 1,
            call.name
        ))),
    }
}

fn verify(name: &str, expect: &Expected, result: Result<i64, Errno>) -> Result<(), Problem> {
    let matches = match (expect, &result) {
        (Expected::Anything, _) => true,
        (Expected::Success, result) => result.is_ok(),
        (Expected::Number(expected), Ok(actual)) => expected == actual,
        (Expected::Errno(expected), Err(actual)) => expected == actual,
        (Expected::AnyErrno, result) => result.is_err(),
        _ => false,
    };
    if matches {
        return Ok(());
    }
    let expected = match expect {
        Expected::Number(number) => number.to_string(),
        Expected::Errno(errno) => format!("-1 {errno}"),
        Expected::AnyErrno => "-1".to_owned(),
        Expected::Anything | Expected::Success => "success".to_owned(),
    };
    let actual = match result {
        Ok(number) => number.to_string(),
        Err(errno) => format!("-1 {errno}"),
    };
    Err(Problem::new(format!("`{name}` returned {actual}, expected {expected}")))
}

fn expected(expect: &Expect) -> Result<Expected, Problem> {
    Ok(match expect {
        Expect::Success => Expected::Success,
        Expect::Value(Value::Ellipsis) => Expected::Anything,
        Expect::Value(Value::Int(-1)) => Expected::AnyErrno,
        Expect::Value(number) => Expected::Number(value(number)?),
        Expect::Error(name) => Expected::Errno(
            Errno::by_name(name)
                .ok_or_else(|| Problem::new(format!("airtcp never returns an error `{name}`")))?,
        ),
    })
}

/// Stands for a descriptor that the script does not name. No script can use this number.
const NO_FD: Fd = Fd(i32::MAX);

/// Returns the descriptor that the script expects from a call.
fn new_fd(expect: &Expected) -> Fd {
    match expect {
        Expected::Number(number) => Fd(i32::try_from(*number).unwrap_or(i32::MAX)),
        // The call is expected to fail, or any result is accepted.
        _ => NO_FD,
    }
}

fn describe(result: &Result<Reply, Errno>) -> String {
    match result {
        Ok(Reply::Accepted(peer)) => format!("accepted {peer}"),
        Ok(Reply::Connected) => "connected".to_owned(),
        Ok(Reply::Closed) => "closed".to_owned(),
        Ok(Reply::Received(data)) => format!("read {} bytes", data.len()),
        Ok(Reply::Sent(sent)) => format!("wrote {sent} bytes"),
        Ok(Reply::Polled(events)) => {
            format!("polled {}", events.iter().map(Events::to_string).collect::<Vec<_>>().join(", "))
        }
        Err(errno) => format!("-1 {errno}"),
    }
}
