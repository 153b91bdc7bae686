//! The file of `send --cookies`: the Fast Open cookies of servers, one JSON object per line.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;

use airfiles::{PathSource, limits};
use airtcp::host::{FastOpenServer, Host};
use airwire::fast_open::Format;
use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::failure::usage;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    address: IpAddr,
    server: IpAddr,
    mss: u16,
    cookie: String,
    /// The option has the experimental format.
    experimental: bool,
}

/// Reads the file. A missing file has no cookies.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<FastOpenServer>> {
    let text = match airfiles::read_text(path, PathSource::User, limits::WRITTEN_BY_HAND) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let line = |(number, line): (usize, &str)| {
        parse(line).ok_or_else(|| {
            let line = format!("{}:{}", path.display(), number + 1);
            usage(format!(
                "{line}: not a Fast Open cookie; name a file that `airtcp send` wrote, or a new one"
            ))
        })
    };
    text.lines().enumerate().map(line).collect()
}

fn parse(line: &str) -> Option<FastOpenServer> {
    let Line { address, server, mss, cookie, experimental } = serde_json::from_str(line).ok()?;
    let format = if experimental { Format::Experimental } else { Format::Standard };
    Some(FastOpenServer { own: address, server, mss, cookie: cookie.parse().ok()?, format })
}

/// Writes the cookies that the host knows.
pub(crate) fn write(path: &Path, host: &Host) -> anyhow::Result<()> {
    let mut text = String::new();
    for FastOpenServer { own, server, mss, cookie, format } in host.fast_open_servers() {
        let experimental = format == Format::Experimental;
        let line = Line { address: own, server, mss, cookie: cookie.to_string(), experimental };
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    airfiles::create_private(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_line_parses() {
        let line = r#"{"address":"10.83.0.2","server":"fd83::1","mss":1460,"cookie":"0123456789abcdef","experimental":true}"#;
        let server = parse(line).unwrap();
        assert_eq!((server.mss, server.format), (1460, Format::Experimental));
        assert_eq!(server.cookie.to_string(), "0123456789abcdef");
        assert!(parse(&line.replace("cdef", "cde")).is_none());
        assert!(parse(&line.replace("\"mss\":1460,", "")).is_none());
    }
}
