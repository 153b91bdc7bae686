//! Requests (RFC 9112), and their answers.

use std::net::IpAddr;

/// Status and body.
pub(super) type Answer<'a> = (&'static str, &'a [u8]);

const MALFORMED: Answer<'static> = ("400 Bad Request", b"not an HTTP request\n");
pub(super) const LATE: Answer<'static> = ("408 Request Timeout", b"the request took too long\n");
/// The client reached this server by a name that is not its own. With DNS rebinding, the name of another site
/// leads here, and scripts of that site could read the page.
const MISDIRECTED: Answer<'static> =
    ("421 Misdirected Request", b"use the address that the server printed, or localhost\n");
pub(super) const TOO_LONG: Answer<'static> =
    ("431 Request Header Fields Too Large", b"the header of the request is longer than 16 KiB\n");

/// Returns the end of the header section: the position after its empty line. `from` is the length of the part
/// that was searched before.
pub(super) fn end_of_head(head: &[u8], from: usize) -> Option<usize> {
    let is_empty_line = |at: &usize| {
        let before = &head[..*at];
        head[*at] == b'\n' && (before.ends_with(b"\n") || before.ends_with(b"\n\r"))
    };
    (from..head.len()).find(is_empty_line).map(|at| at + 1)
}

/// Returns true if the body of the answer is sent. The answer to HEAD consists of its header section only.
pub(super) fn has_body(head: &str) -> bool {
    !request_line(head).starts_with("HEAD ")
}

/// RFC 9112 §2.2: empty lines before the request line are ignored.
fn request_line(head: &str) -> &str {
    head.lines().find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns the answer to a request to this server. `local` is the address that the client has connected to.
pub(super) fn answer_to<'a>(head: &str, local: IpAddr, page: &'a [u8]) -> Answer<'a> {
    let mut words = request_line(head).split_ascii_whitespace();
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return MALFORMED;
    };
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let hosts = fields.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let hosts: Vec<&str> = hosts.map(|(_, host)| host.trim()).collect();
    let (authority, path) = authority_and_path(target);
    // RFC 9112 §3.2: exactly one field, which may be missing in HTTP/1.0. Browsers always send it.
    let host = match hosts.as_slice() {
        [host] => Some(authority.unwrap_or(host)),
        [] if version == "HTTP/1.0" => authority,
        _ => return MALFORMED,
    };
    match method {
        _ if !version.starts_with("HTTP/1.") => MALFORMED,
        _ if !host.is_none_or(|host| is_own(host, local)) => MISDIRECTED,
        "GET" | "HEAD" if path.split(['?', '#']).next() == Some("/") => ("200 OK", page),
        "GET" | "HEAD" => ("404 Not Found", b"not found: the only page is /\n"),
        _ => ("405 Method Not Allowed", b"use GET or HEAD\n"),
    }
}

/// Splits a target in absolute form, whose authority replaces the field `Host` (RFC 9112 §3.2.2).
fn authority_and_path(target: &str) -> (Option<&str>, &str) {
    let Some(rest) = target.strip_prefix("http://") else { return (None, target) };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    (Some(authority), if path.starts_with('/') { path } else { "/" })
}

/// Returns true if the host is `localhost` or the address that the client has connected to, with any port:
/// the client may have used a forwarded one.
fn is_own(host: &str, local: IpAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some(parts) if !host.ends_with(']') => parts,
        _ => (host, ""),
    };
    if !port.bytes().all(|digit| digit.is_ascii_digit()) {
        return false;
    }
    let name = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_canonical() == local.to_canonical(),
        Err(_) => {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            // RFC 6761 §6.3: these names always mean the client's own host.
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    fn status(head: &str) -> &'static str {
        answer_to(head, LOCAL, b"<html>").0
    }

    #[test]
    fn server_serves_only_page_at_root() {
        let status = |line: &str| status(&format!("{line}\r\nHost: localhost\r\n\r\n"));
        assert_eq!(status("GET / HTTP/1.1"), "200 OK");
        assert_eq!(status("HEAD / HTTP/1.1"), "200 OK");
        assert_eq!(status("\r\nGET /?from=mail HTTP/1.1"), "200 OK");
        assert_eq!(status("GET http://localhost HTTP/1.1"), "200 OK");
        assert_eq!(status("GET /../etc/passwd HTTP/1.1"), "404 Not Found");
        assert_eq!(status("GET http://localhost/x HTTP/1.1"), "404 Not Found");
        assert_eq!(status("POST / HTTP/1.1"), "405 Method Not Allowed");
        for line in ["", "GET /", "GET / HTTP/2", "GET / HTTP/1.1 x", "\u{16}\u{3}"] {
            assert_eq!(status(line), "400 Bad Request", "{line}");
        }
        assert!(has_body("GET / HTTP/1.1\r\n") && !has_body("\r\nHEAD / HTTP/1.1\r\n"));
    }

    #[test]
    fn only_own_host_names_are_served() {
        let status_at = |host: &str, local: &str| {
            let head = format!("GET / HTTP/1.1\r\nhOST:{host}\r\n\r\n");
            answer_to(&head, local.parse().unwrap(), b"<html>").0
        };
        for (host, local) in [
            (" localhost", "127.0.0.1"),
            ("LocalHost.:8000 ", "127.0.0.1"),
            ("page.localhost", "127.0.0.1"),
            ("127.0.0.1:8000", "127.0.0.1"),
            ("192.0.2.7:", "192.0.2.7"),
            // A listener on [::] accepts IPv4 connections too.
            ("192.0.2.7", "::ffff:192.0.2.7"),
            ("[::1]", "::1"),
            ("[0:0::1]:8000", "::1"),
        ] {
            assert_eq!(status_at(host, local), "200 OK", "{host}");
        }
        for host in [
            "example.org",
            "example.org:8000",
            "localhost.example.org",
            "localhost@example.org",
            "notlocalhost",
            "127.0.0.1.example.org",
            "127.0.0.2",
            "[::1]",
            "localhost:8000:9000",
            "localhost:http",
            "",
        ] {
            assert_eq!(status_at(host, "127.0.0.1"), "421 Misdirected Request", "{host}");
        }
    }

    #[test]
    fn request_has_exactly_one_host() {
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "400 Bad Request");
        assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"), "400 Bad Request");
        assert_eq!(status("GET / HTTP/1.0\r\n\r\n"), "200 OK");
        assert_eq!(status("GET / HTTP/1.0\r\nHost: example.org\r\n\r\n"), "421 Misdirected Request");
        assert_eq!(
            status("GET http://example.org/ HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            "421 Misdirected Request"
        );
        assert_eq!(status("GET http://localhost/ HTTP/1.1\r\nHost: example.org\r\n\r\n"), "200 OK");
    }

    #[test]
    fn empty_line_ends_head_wherever_it_is_cut() {
        for head in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\nHost: x\n\n"] {
            let bytes = format!("{head}rest").into_bytes();
            for cut in 0..bytes.len() {
                let first = end_of_head(&bytes[..cut], 0);
                let found = first.or_else(|| end_of_head(&bytes, cut));
                assert_eq!(found, Some(head.len()), "cut at {cut}");
            }
        }
        assert_eq!(end_of_head(b"\r\nGET / HTTP/1.1\r\n", 0), None, "an empty line before the request");
    }
}
