//! A minimal HTTP/1.1 server (RFC 9112) for one page: GET and HEAD of `/`, with one request per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use crate::shared::say;

/// Timeout for reading a request and for writing a response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of open connections. Browsers open several, but not this many.
const MOST: usize = 64;
/// Maximum size of a request's header section in bytes.
const LONGEST: u64 = 16 << 10;

/// Serves the page until the process ends.
pub(super) fn serve(address: SocketAddr, page: Vec<u8>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    writeln!(say::out(), "http://{}/", listener.local_addr()?)?;
    say::out().flush()?;
    let (page, open) = (Arc::new(page), Arc::new(AtomicUsize::new(0)));
    for stream in listener.incoming() {
        // Either the client closed the connection before it was accepted, or no file descriptor is free.
        let Ok(stream) = stream else {
            #[expect(clippy::disallowed_methods, reason = "this is a driver: it waits for descriptors")]
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (page, open) = (Arc::clone(&page), Arc::clone(&open));
        thread::spawn(move || {
            // An error means that the browser closed the connection, which is not a failure of the server.
            let _ = answer(stream, &page);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
    Ok(())
}

fn answer(mut stream: TcpStream, page: &[u8]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = head(&stream)?;
    let (status, body) = answer_to(&request, page);
    let kind =
        if status.starts_with("200") { "text/html; charset=utf-8" } else { "text/plain; charset=utf-8" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\r\n",
        body.len()
    )?;
    if !request.starts_with("HEAD ") {
        stream.write_all(body)?;
    }
    stream.flush()
}

/// Returns the request line, and reads and ignores the header fields.
fn head(stream: &TcpStream) -> io::Result<String> {
    let mut lines = BufReader::new(stream.take(LONGEST));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    let mut line = String::new();
    while lines.read_line(&mut line)? > 0 && line.trim_end() != "" {
        line.clear();
    }
    Ok(first)
}

fn answer_to<'a>(request: &str, page: &'a [u8]) -> (&'static str, &'a [u8]) {
    let mut words = request.split_ascii_whitespace();
    let target = |target: &str| target.split(['?', '#']).next() == Some("/");
    match (words.next(), words.next()) {
        (Some("GET" | "HEAD"), Some(path)) if target(path) => ("200 OK", page),
        (Some("GET" | "HEAD"), Some(_)) => ("404 Not Found", b"not found: the only page is /\n"),
        (Some(_), Some(_)) => ("405 Method Not Allowed", b"use GET or HEAD\n"),
        _ => ("400 Bad Request", b"not an HTTP request\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_serves_only_page_at_root() {
        let status = |request: &str| answer_to(request, b"<html>").0;
        assert_eq!(status("GET / HTTP/1.1\r\n"), "200 OK");
        assert_eq!(status("GET /?from=mail HTTP/1.1\r\n"), "200 OK");
        assert_eq!(status("GET /../etc/passwd HTTP/1.1\r\n"), "404 Not Found");
        assert_eq!(status("POST / HTTP/1.1\r\n"), "405 Method Not Allowed");
        assert_eq!(status("\r\n"), "400 Bad Request");
        assert_eq!(answer_to("HEAD / HTTP/1.1", b"<html>").1, b"<html>");
    }

    #[test]
    fn response_contains_page_and_content_length() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut browser = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        browser.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        answer(listener.accept().unwrap().0, b"<html>").unwrap();
        let mut answered = String::new();
        browser.read_to_string(&mut answered).unwrap();
        assert!(answered.starts_with("HTTP/1.1 200 OK\r\n"), "{answered}");
        assert!(
            answered.contains("Content-Length: 6\r\n") && answered.ends_with("\r\n\r\n<html>"),
            "{answered}"
        );
    }
}
