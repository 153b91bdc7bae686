//! The destination of received data. A thread digests the data and writes it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError, TrySendError};
use std::thread;

use airtcp_tun::Waker;
use anyhow::Context;

use super::digest::Hasher;
use super::failure::usage;
use super::reporter::Channel;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Nowhere,
    Stdout,
    File(PathBuf),
}

impl Output {
    /// Parses the value of `--output`: `-` is stdout.
    pub(crate) fn named(path: Option<&Path>) -> Self {
        match path {
            None => Self::Nowhere,
            Some(path) if path.as_os_str() == "-" => Self::Stdout,
            Some(path) => Self::File(path.to_owned()),
        }
    }

    /// Returns the stream for the report: stderr if the data is written to stdout.
    pub(crate) fn report_channel(&self, json: bool) -> anyhow::Result<Channel> {
        match self {
            Self::Stdout if json => Err(usage("--json and --output - both write to stdout: choose one")),
            Self::Stdout => Ok(Channel::Stderr),
            Self::Nowhere | Self::File(_) => Ok(Channel::Stdout),
        }
    }

    pub(crate) fn cannot_write(&self) -> String {
        match self {
            Self::Nowhere | Self::Stdout => "cannot write to stdout".to_owned(),
            Self::File(path) => format!("cannot write {}", path.display()),
        }
    }

    pub(crate) fn create(&self) -> anyhow::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Self::Nowhere => Box::new(io::sink()),
            // `io::stdout()` is not used because it writes line by line.
            Self::Stdout => Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            Self::File(path) => Box::new(airfiles::create(path).with_context(|| self.cannot_write())?),
        })
    }
}

const CHUNKS: usize = 16;
const CHUNK: usize = 128 << 10;

pub(crate) struct Store {
    /// `None` once the stream has ended.
    chunks: Option<SyncSender<Vec<u8>>>,
    spent: Receiver<Vec<u8>>,
    end: Receiver<io::Result<Option<String>>>,
    /// A chunk that did not fit into the thread's queue.
    pending: Option<Vec<u8>>,
}

impl Store {
    pub(crate) fn start(mut writer: Box<dyn Write + Send>, digest: bool, waker: Waker) -> io::Result<Self> {
        let (chunks, chunk_receiver) = mpsc::sync_channel::<Vec<u8>>(CHUNKS);
        let (spent_sender, spent) = mpsc::sync_channel(CHUNKS);
        let (end_sender, end) = mpsc::sync_channel(1);
        thread::Builder::new().name("store".to_owned()).spawn(move || {
            let mut hasher = Hasher::new(digest);
            let mut result = Ok(());
            for chunk in &chunk_receiver {
                hasher.update(&chunk);
                result = writer.write_all(&chunk);
                if result.is_err() {
                    break;
                }
                // If there are enough buffers, this one is freed.
                let _ = spent_sender.try_send(chunk);
                waker.wake();
            }
            let result = result.and_then(|()| writer.flush()).map(|()| hasher.finish());
            // Fails if the connection has failed in the meantime.
            let _ = end_sender.send(result);
            drop(chunk_receiver);
            waker.wake();
        })?;
        Ok(Self { chunks: Some(chunks), spent, end, pending: None })
    }

    /// Returns a buffer of [`CHUNK`] bytes for the next read.
    pub(crate) fn buffer(&self) -> Vec<u8> {
        let mut chunk = self.spent.try_recv().unwrap_or_default();
        chunk.resize(CHUNK, 0);
        chunk
    }

    /// Returns true if the thread accepts more data. If not, it wakes the driver later. If the thread has
    /// failed, data is discarded.
    pub(crate) fn has_room(&mut self) -> bool {
        if let Some(chunk) = self.pending.take() {
            self.put(chunk);
        }
        self.pending.is_none()
    }

    pub(crate) fn put(&mut self, chunk: Vec<u8>) {
        let Some(chunks) = &self.chunks else { return };
        match chunks.try_send(chunk) {
            // If the thread has failed, `finished` reports it.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(chunk)) => self.pending = Some(chunk),
        }
    }

    /// Ends the stream, unless a chunk is still waiting. Must be called again in that case.
    pub(crate) fn end(&mut self) {
        if self.has_room() {
            self.chunks = None;
        }
    }

    /// Returns the digest once everything was written, or an error as soon as writing has failed.
    pub(crate) fn finished(&self) -> io::Result<Option<Option<String>>> {
        match self.end.try_recv() {
            Ok(result) => result.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the output thread ended unexpectedly")),
        }
    }
}
