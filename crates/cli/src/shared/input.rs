//! The data to send. A thread reads or generates it, and digests it, ahead of the connection.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread;

use airtcp_lab::pattern::Pattern;
use airtcp_tun::Waker;

use super::digest::Hasher;
use super::failure::cannot_read;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    File(PathBuf),
    Stdin,
    /// This number of bytes of [`Pattern`].
    Pattern(u64),
    /// [`Pattern`] without an end.
    Endless,
}

impl Input {
    pub(crate) fn open(&self) -> anyhow::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(path) => {
                let opened = File::open(path).map_err(|error| cannot_read(path, error))?;
                Box::new(opened)
            }
            // `io::stdin()` is not used because its buffer is small.
            Self::Stdin => Box::new(File::from(io::stdin().as_fd().try_clone_to_owned()?)),
            Self::Pattern(bytes) => Box::new(Pattern::default().take(*bytes)),
            Self::Endless => Box::new(Pattern::default()),
        })
    }
}

/// The next data of a [`Source`].
pub(crate) enum Next {
    Chunk(Vec<u8>),
    /// No data yet. The source wakes the driver when there is some.
    Later,
    End {
        digest: Option<String>,
    },
}

/// Maximum length of a chunk.
pub(crate) const CHUNK: usize = 256 << 10;
const CHUNKS: usize = 8;

pub(crate) struct Source {
    chunks: Receiver<Vec<u8>>,
    spent: SyncSender<Vec<u8>>,
    /// Chunks that the connection may still refer to, the oldest first.
    lent: VecDeque<Arc<Vec<u8>>>,
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
            // Fails if the connection has ended in the meantime.
            let _ = end_sender.send(result.map(|()| hasher.finish()));
            drop(chunk_sender);
            waker.wake();
        })?;
        Ok(Self { chunks, spent, lent: VecDeque::new(), end })
    }

    pub(crate) fn next(&self) -> io::Result<Next> {
        match self.chunks.try_recv() {
            Ok(chunk) => Ok(Next::Chunk(chunk)),
            Err(TryRecvError::Empty) => Ok(Next::Later),
            Err(TryRecvError::Disconnected) => match self.end.try_recv() {
                Ok(result) => Ok(Next::End { digest: result? }),
                Err(_) => Err(io::Error::other("the input thread ended unexpectedly")),
            },
        }
    }

    /// Returns a chunk, so that its buffer is reused when nothing refers to it.
    pub(crate) fn recycle(&mut self, chunk: Arc<Vec<u8>>) {
        self.lent.push_back(chunk);
        while let Some(chunk) = self.lent.pop_front() {
            match Arc::try_unwrap(chunk) {
                // If there are enough buffers, this one is freed.
                Ok(chunk) => drop(self.spent.try_send(chunk)),
                Err(chunk) => {
                    self.lent.push_front(chunk);
                    break;
                }
            }
        }
    }
}
