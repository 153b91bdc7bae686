//! Where the bytes to send come from: a thread reads (or makes) and digests them ahead of the connection.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;

use super::digest::Hasher;
use super::failure::usage;
use airtcp_tun::Waker;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    File(PathBuf),
    Stdin,
    /// So many bytes of [`Pattern`].
    Pattern(u64),
}

impl Input {
    pub(crate) fn open(&self) -> anyhow::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => {
                let opened = File::open(path)
                    .map_err(|error| usage(format!("cannot read {}: {error}", path.display())))?;
                Box::new(opened)
            }
            // Not `io::stdin()`, whose buffer is small.
            Self::Stdin => Box::new(File::from(io::stdin().as_fd().try_clone_to_owned()?)),
            Self::Pattern(bytes) => Box::new(Pattern { at: 0 }.take(*bytes)),
        })
    }
}

/// What the source has at this moment.
pub(crate) enum Next {
    Chunk(Vec<u8>),
    /// Nothing yet; the source will wake the driver.
    Later,
    End {
        digest: Option<String>,
    },
}

const CHUNK: usize = 256 << 10;
const CHUNKS: usize = 8;

pub(crate) struct Source {
    chunks: Receiver<Vec<u8>>,
    spent: SyncSender<Vec<u8>>,
    end: Receiver<io::Result<Option<String>>>,
}

impl Source {
    pub(crate) fn start(mut reader: Box<dyn Read + Send>, digest: bool, waker: Waker) -> io::Result<Self> {
        let (chunk_sender, chunks) = mpsc::sync_channel(CHUNKS);
        let (spent, spent_receiver) = mpsc::sync_channel::<Vec<u8>>(CHUNKS);
        let (end_sender, end) = mpsc::sync_channel(1);
        thread::Builder::new().name("source".to_owned()).spawn(move || {
            let mut hasher = Hasher::new(digest);
            let result = loop {
                let mut chunk = spent_receiver.try_recv().unwrap_or_default();
                chunk.resize(CHUNK, 0);
                match reader.read(&mut chunk) {
                    Ok(0) => break Ok(()),
                    Ok(len) => chunk.truncate(len),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => break Err(error),
                }
                hasher.update(&chunk);
                if chunk_sender.send(chunk).is_err() {
                    // The connection ended before the input did.
                    return;
                }
                waker.wake();
            };
            // Nobody listens any more if the connection has ended meanwhile.
            let _ = end_sender.send(result.map(|()| hasher.finish()));
            drop(chunk_sender);
            waker.wake();
        })?;
        Ok(Self { chunks, spent, end })
    }

    pub(crate) fn next(&self) -> io::Result<Next> {
        match self.chunks.try_recv() {
            Ok(chunk) => Ok(Next::Chunk(chunk)),
            Err(TryRecvError::Empty) => Ok(Next::Later),
            Err(TryRecvError::Disconnected) => match self.end.try_recv() {
                Ok(result) => Ok(Next::End { digest: result? }),
                Err(_) => Err(io::Error::other("the reader of the input has died")),
            },
        }
    }

    /// Takes a chunk back, to be filled again.
    pub(crate) fn recycle(&self, chunk: Vec<u8>) {
        // If there are enough buffers, this one is freed.
        let _ = self.spent.try_send(chunk);
    }
}

/// Bytes that are a function of their place, so that a misplaced one shows in any digest or dump: SplitMix64 of
/// the place divided by 8, little-endian.
struct Pattern {
    at: u64,
}

impl Read for Pattern {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let head = out.len().min((8 - self.at % 8) as usize % 8);
        let (head, rest) = out.split_at_mut(head);
        let (words, tail) = rest.as_chunks_mut::<8>();
        self.fill(head);
        for word in words {
            *word = splitmix64(self.at / 8).to_le_bytes();
            self.at += 8;
        }
        self.fill(tail);
        Ok(out.len())
    }
}

impl Pattern {
    /// Fewer bytes than a word.
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = splitmix64(self.at / 8).to_le_bytes()[(self.at % 8) as usize];
            self.at += 1;
        }
    }
}

fn splitmix64(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_depends_on_the_place_alone() {
        let mut whole = vec![0; 1000];
        Pattern { at: 0 }.read_exact(&mut whole).unwrap();
        let mut pieces = Vec::new();
        let mut pattern = Pattern { at: 0 };
        for len in [1, 2, 3, 5, 8, 13, 700, 268] {
            let mut piece = vec![0; len];
            pattern.read_exact(&mut piece).unwrap();
            pieces.extend(piece);
        }
        assert_eq!(pieces, whole);
        // SplitMix64's first output for the seed 0.
        assert_eq!(whole[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    }
}
