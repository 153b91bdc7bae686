//! Tests with real connections over the loopback device. Each wait has a time limit.

use std::sync::mpsc::{self, RecvTimeoutError};

use super::*;

/// Time limit for every wait of a client, so that a test fails instead of hanging.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

/// Limits that no test reaches by waiting.
const GENEROUS_LIMITS: Limits = Limits {
    request: Duration::from_secs(600),
    answer: Duration::from_secs(600),
    rest: Duration::from_secs(600),
    open: 64,
};

/// Starts a server that runs until the test ends, and returns its address.
fn server(page: &[u8], limits: Limits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, page) = (listener.local_addr().unwrap(), Arc::new(page.to_vec()));
    thread::spawn(move || accept(&listener, &page, limits));
    address
}

fn client(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Reads the answer up to the end of the connection. A reset is an error.
fn answer_of(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{error} after: {answer:.300}"));
    answer
}

fn request(address: SocketAddr, request: &str) -> String {
    let mut stream = client(address);
    stream.write_all(request.as_bytes()).unwrap();
    answer_of(&mut stream)
}

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Checks that the answer has this status, the length that its header announces, and this body.
fn check(answer: &str, status: &str, body: &str) {
    let (header, rest) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no header: {answer:.300}"));
    assert!(header.starts_with(&format!("HTTP/1.1 {status}")), "{header}");
    assert!(header.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{header}");
    assert!(header.contains("\r\nConnection: close\r\n"), "{header}");
    assert!(rest == body, "{} bytes instead of {}", rest.len(), body.len());
}

/// Runs `work` in a thread, and fails if it is not done in time.
fn within_time_limit<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waiting) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    match waiting.recv_timeout(4 * TIMEOUT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("the test takes too long"),
        Err(RecvTimeoutError::Disconnected) => panic!("the test has failed: its message is above"),
    }
}

#[test]
fn response_contains_page_and_content_length() {
    within_time_limit(|| {
        let address = server(b"<html>", LIMITS);
        check(&request(address, REQUEST), "200 OK", "<html>");
        let head = request(address, &REQUEST.replace("GET", "HEAD"));
        assert!(head.contains("Content-Length: 6\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        check(&request(address, "what\r\n\r\n"), "400", "not an HTTP request\n");
    });
}

#[test]
fn foreign_host_name_is_refused() {
    within_time_limit(|| {
        let address = server(b"<html>", LIMITS);
        let of = |host: &str| request(address, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        check(&of(&address.to_string()), "200 OK", "<html>");
        check(&of("localhost:9"), "200 OK", "<html>");
        for host in ["example.org", &format!("example.org:{}", address.port()), "192.0.2.1"] {
            let answer = of(host);
            assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains("<html>"), "{host}: {answer}");
        }
    });
}

#[test]
fn long_header_is_refused_with_whole_answer() {
    within_time_limit(|| {
        let page = "x".repeat(1 << 20);
        let address = server(page.as_bytes(), LIMITS);
        let refused = "the header of the request is longer than 16 KiB\n";
        for fields in [format!("X: {}\r\n", "y".repeat(100_000)), "X: y\r\n".repeat(20_000)] {
            let header = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
            check(&request(address, &header), "431", refused);
        }
        let endless = format!("GET /{} HTTP/1.1", "y".repeat(100_000));
        check(&request_and_shut_down(address, &endless), "431", refused);
        // The limit is exact.
        let with = |length: usize| {
            let rest = "GET / HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n";
            rest.replace("X: ", &format!("X: {}", "y".repeat(length - rest.len())))
        };
        check(&request(address, &with(MAX_HEADER)), "200 OK", &page);
        check(&request(address, &with(MAX_HEADER + 1)), "431", refused);
    });
}

/// Like [`request`], for a request without an end.
fn request_and_shut_down(address: SocketAddr, request: &str) -> String {
    let mut stream = client(address);
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    answer_of(&mut stream)
}

#[test]
fn deadline_covers_whole_request() {
    within_time_limit(|| {
        let limits = Limits { request: Duration::from_millis(500), ..GENEROUS_LIMITS };
        let address = server(b"<html>", limits);
        let mut stream = client(address);
        stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        let mut answer = Vec::new();
        let mut buffer = [0; 1000];
        // Every byte arrives long before the deadline, but the request never ends.
        for octet in
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ".iter().chain(std::iter::repeat(&b'y')).take(500)
        {
            let _ = stream.write(&[*octet]);
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => answer.extend(&buffer[..count]),
                Err(error) => assert!(is_temporary(&error), "{error}"),
            }
        }
        check(&String::from_utf8(answer).unwrap(), "408", "the request took too long\n");
    });
}

#[test]
fn slow_clients_do_not_refuse_visitors() {
    within_time_limit(|| {
        let page = "x".repeat(1 << 20);
        let address = server(page.as_bytes(), GENEROUS_LIMITS);
        let mut slow: Vec<_> = (0..2 * GENEROUS_LIMITS.open).map(|_| client(address)).collect();
        for stream in &mut slow {
            // The server may have closed it already.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: loc");
        }
        for _ in 0..3 {
            check(&request(address, REQUEST), "200 OK", &page);
        }
    });
}

#[test]
fn slow_readers_do_not_refuse_visitors() {
    within_time_limit(|| {
        // More than the buffers of a connection hold.
        let page = "x".repeat(32 << 20);
        let limits = Limits { open: 8, ..GENEROUS_LIMITS };
        let address = server(page.as_bytes(), limits);
        let slow: Vec<_> = (0..2 * limits.open)
            .map(|_| {
                let mut stream = client(address);
                stream.write_all(REQUEST.as_bytes()).unwrap();
                stream
            })
            .collect();
        check(&request(address, REQUEST), "200 OK", &page);
        drop(slow);
    });
}

#[test]
fn deadline_covers_whole_answer() {
    within_time_limit(|| {
        let limits = Limits { answer: Duration::from_millis(300), ..GENEROUS_LIMITS };
        let page = "x".repeat(32 << 20);
        let address = server(page.as_bytes(), limits);
        let mut stream = client(address);
        stream.write_all(REQUEST.as_bytes()).unwrap();
        // Read a little from time to time, so that each single write of the server makes progress.
        stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        let mut received = 0;
        let mut buffer = vec![0; 100_000];
        for _ in 0..1000 {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => received += count,
                Err(error) if is_temporary(&error) => {}
                // The server has reset the connection.
                Err(_) => break,
            }
            #[expect(clippy::disallowed_methods, reason = "a slow client waits")]
            thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(received < page.len(), "{received} bytes arrived");
    });
}
