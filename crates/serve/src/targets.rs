//! The servers that connections are forwarded to.

use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};

use airtcp_command::failure;

pub(crate) struct Targets {
    /// Addresses of each `--forward` argument. A name can have several.
    servers: Vec<Vec<SocketAddr>>,
    /// Index of the server for the next connection.
    next: usize,
}

impl Targets {
    pub(crate) fn resolve(forward: &[String]) -> anyhow::Result<Self> {
        let servers = forward.iter().map(|text| resolve(text)).collect::<anyhow::Result<_>>()?;
        Ok(Self { servers, next: 0 })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        self.servers.iter().flatten().copied()
    }

    /// Returns the addresses to try for the next connection, in this order.
    pub(crate) fn candidates(&mut self) -> VecDeque<SocketAddr> {
        let (later, first) = self.servers.split_at(self.next);
        let candidates = first.iter().chain(later).flatten().copied().collect();
        self.next = (self.next + 1) % self.servers.len();
        candidates
    }
}

fn resolve(text: &str) -> anyhow::Result<Vec<SocketAddr>> {
    let example = "use for example 127.0.0.1:80, [::1]:80 or localhost:80";
    let found = text
        .to_socket_addrs()
        .map_err(|error| failure::usage(format!("cannot resolve --forward `{text}` ({error}): {example}")))?;
    let mut addrs: Vec<SocketAddr> = Vec::new();
    for addr in found {
        if !addrs.contains(&addr) {
            addrs.push(addr);
        }
    }
    if addrs.is_empty() {
        return Err(failure::usage(format!("--forward `{text}` has no address: {example}")));
    }
    Ok(addrs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(forward: &[&str]) -> Targets {
        let forward: Vec<String> = forward.iter().map(ToString::to_string).collect();
        Targets::resolve(&forward).unwrap()
    }

    #[test]
    fn forward_targets_rotate_and_back_each_other_up() {
        let mut targets = targets(&["127.0.0.1:1", "127.0.0.1:2", "[::1]:3"]);
        let ports =
            |targets: &mut Targets| targets.candidates().iter().map(SocketAddr::port).collect::<Vec<_>>();
        assert_eq!(ports(&mut targets), [1, 2, 3]);
        assert_eq!(ports(&mut targets), [2, 3, 1]);
        assert_eq!(ports(&mut targets), [3, 1, 2]);
        assert_eq!(ports(&mut targets), [1, 2, 3]);
    }

    #[test]
    fn invalid_forward_target_is_rejected() {
        for wrong in ["127.0.0.1", "127.0.0.1:http", ":80:"] {
            let error = Targets::resolve(&[wrong.to_owned()]).err().unwrap();
            assert!(error.to_string().contains("use for example"), "{wrong}: {error}");
        }
    }
}
