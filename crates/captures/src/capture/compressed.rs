//! Decompresses captures while they are read: gzip (RFC 1952) and zstd (RFC 8878).
//!
//! flate2 with zlib-rs and ruzstd are well maintained and pure Rust, so a C compiler is not needed. The crate
//! zstd is faster, but contains C code.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Maximum ratio of decompressed to compressed size. A capture of zeros reaches about 300.
const MAX_RATIO: u64 = 500;
/// Decompressed bytes that are always allowed, because short files may exceed the ratio.
const ALLOWANCE: u64 = 256 << 20;
/// Maximum window size of a zstd frame, in bytes. It is the limit of `zstd` without `--long`.
const MAX_WINDOW: u64 = 128 << 20;

/// The compression format, detected from the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    pub(super) fn of(begin: &[u8]) -> Option<Self> {
        match begin {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A data frame, or a skippable frame, with which parallel compressors begin.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Returns a reader of the decompressed contents. Its memory is bounded by the window size, and it fails
    /// if the output exceeds the allowed growth.
    pub(super) fn decompress(self, input: Box<dyn Read>) -> Box<dyn Read> {
        let compressed = Rc::new(Cell::new(0));
        let input =
            BufReader::with_capacity(1 << 16, CountingReader { input, compressed: Rc::clone(&compressed) });
        let tool = match self {
            Self::Gzip => "gzip -d",
            Self::Zstd => "zstd -d",
        };
        match self {
            Self::Gzip => {
                Box::new(RatioLimit { output: MultiGzDecoder::new(input), compressed, decompressed: 0, tool })
            }
            Self::Zstd => {
                Box::new(RatioLimit { output: Zstd::new(input), compressed, decompressed: 0, tool })
            }
        }
    }
}

struct CountingReader<R> {
    input: R,
    compressed: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.compressed.set(self.compressed.get() + bytes as u64);
        Ok(bytes)
    }
}

struct RatioLimit<R> {
    output: R,
    /// Compressed bytes read so far.
    compressed: Rc<Cell<u64>>,
    /// Decompressed bytes returned so far.
    decompressed: u64,
    tool: &'static str,
}

impl<R: Read> Read for RatioLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Self { output, compressed, decompressed, tool } = self;
        let bytes = output.read(buffer).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("{error}; try `{tool}`, which may report more or read the rest"),
            )
        })?;
        *decompressed += bytes as u64;
        if *decompressed > ALLOWANCE + compressed.get().saturating_mul(MAX_RATIO) {
            return Err(io::Error::other(format!(
                "it decompresses to more than {MAX_RATIO} times its size; if you trust the file, decompress it first \
                 (`{tool}`)"
            )));
        }
        Ok(bytes)
    }
}

/// A reader of all frames of a zstd file.
struct Zstd<R> {
    input: R,
    frame: FrameDecoder,
    /// An error to return after the data that the decoder still holds.
    error: Option<io::Error>,
}

/// An empty last block, and four bytes instead of a checksum.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MAX_WINDOW);
        Self { input, frame, error: None }
    }

    /// Starts the next frame. Returns false at the end of the file.
    fn begin_frame(&mut self) -> io::Result<bool> {
        if self.input.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.frame.reset(&mut self.input) {
            Ok(()) => Ok(true),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                Ok(true)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn check_sum(&self) -> io::Result<()> {
        match self.frame.get_checksum_from_data() {
            Some(sum) if self.frame.get_calculated_checksum() != Some(sum) => {
                Err(io::Error::other("checksum error in a zstd frame"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.can_collect() == 0 {
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if self.frame.is_finished() {
                self.check_sum()?;
                if !self.begin_frame()? {
                    return Ok(0);
                }
            } else {
                let step = || BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.frame.decode_blocks(&mut self.input, step()) {
                    let ends_early = ends_early(&error);
                    self.error = Some(io::Error::other(error));
                    // The decoder holds its window back until the frame ends, because later blocks may refer
                    // to the window. An artificial last block releases it.
                    if ends_early && !self.frame.is_finished() {
                        self.frame.decode_blocks(&LAST_BLOCK[..], step()).map_err(io::Error::other)?;
                    }
                }
            }
        }
        self.frame.read(buffer)
    }
}

/// Returns whether the error is that the file ends inside a block. Nothing of that block has been decoded.
fn ends_early(error: &FrameDecoderError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let system = error.downcast_ref::<io::Error>();
        if system.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
            return true;
        }
        cause = error.source();
    }
    false
}
