//! Captures a process's output from a pipe in bounded memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;

/// Which part of an oversized output is retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The beginning; exceeding the limit is an error of the process.
    Head,
    /// The end.
    Tail,
}

/// Maximum number of bytes per read call, more than a pipe holds. Without it, a process that writes faster than the
/// runner reads would block timeouts and signals.
const MOST_AT_ONCE: usize = 2 << 20;

/// A pipe and its captured output.
#[derive(Debug)]
pub(crate) struct Capture {
    pipe: Option<File>,
    keep: Keep,
    limit: usize,
    bytes: Vec<u8>,
    overflowed: bool,
}

impl Capture {
    pub(crate) fn new(pipe: OwnedFd, keep: Keep, limit: usize) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        Ok(Self { pipe: Some(pipe.into()), keep, limit, bytes: Vec::new(), overflowed: false })
    }

    /// Returns the descriptor to poll; None after the other end was closed.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(|pipe| pipe.as_fd())
    }

    /// Whether a [`Keep::Head`] capture dropped bytes.
    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Reads the available bytes without blocking, up to the limit per call.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        self.drain_with(|_| ())
    }

    /// Like [`Self::drain`], and passes every chunk to `look`.
    pub(crate) fn drain_with(&mut self, mut look: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = [0; 64 << 10];
        let mut taken = 0;
        while let Some(pipe) = self.pipe.as_mut().filter(|_| taken < MOST_AT_ONCE) {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    taken += read;
                    look(&buffer[..read]);
                    self.add(&buffer[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.overflowed() {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, new: &[u8]) {
        match self.keep {
            Keep::Head => {
                let room = self.limit - self.bytes.len();
                self.overflowed |= new.len() > room;
                self.bytes.extend_from_slice(&new[..new.len().min(room)]);
            }
            Keep::Tail => {
                let new = &new[new.len().saturating_sub(self.limit)..];
                let excess = (self.bytes.len() + new.len()).saturating_sub(self.limit);
                self.bytes.drain(..excess);
                self.bytes.extend_from_slice(new);
            }
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Searches for a text in a chunked stream.
#[derive(Debug)]
pub(crate) struct Search {
    text: Vec<u8>,
    /// The tail of the input, which may be a prefix of the text.
    rest: Vec<u8>,
    found: bool,
}

impl Search {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into(), rest: Vec::new(), found: false }
    }

    pub(crate) fn look_at(&mut self, new: &[u8]) {
        if self.found {
            return;
        }
        self.rest.extend_from_slice(new);
        let length = self.text.len().max(1);
        self.found = self.rest.windows(length).any(|window| window == self.text);
        self.rest.drain(..self.rest.len().saturating_sub(length - 1));
    }

    pub(crate) fn found(&self) -> bool {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn capture(keep: Keep, limit: usize, writes: &[&str]) -> Capture {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut capture = Capture::new(reader.into(), keep, limit).expect("a capture");
        for text in writes {
            writer.write_all(text.as_bytes()).expect("written");
            capture.drain().expect("read");
        }
        capture
    }

    #[test]
    fn head_reports_overflow() {
        let whole = capture(Keep::Head, 6, &["abc", "def"]);
        assert!(!whole.overflowed());
        assert_eq!(whole.into_bytes(), b"abcdef");
        let cut = capture(Keep::Head, 5, &["abc", "def"]);
        assert!(cut.overflowed());
        assert_eq!(cut.into_bytes(), b"abcde");
    }

    #[test]
    fn tail_retains_the_end() {
        assert_eq!(capture(Keep::Tail, 4, &["ab", "cd", "e"]).into_bytes(), b"bcde");
        assert_eq!(capture(Keep::Tail, 4, &["abcdefgh"]).into_bytes(), b"efgh");
    }

    #[test]
    fn endless_output_does_not_block_timeouts() {
        for keep in [Keep::Head, Keep::Tail] {
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let endless = File::open("/dev/zero").expect("there");
                let mut capture = Capture::new(endless.into(), keep, 1 << 30).expect("a capture");
                let mut seen = 0;
                capture.drain_with(|new| seen += new.len()).expect("read");
                let _ = tell.send(seen);
            });
            let seen = told.recv_timeout(std::time::Duration::from_secs(20));
            assert!(seen.is_ok_and(|seen| seen < MOST_AT_ONCE + (64 << 10)), "{keep:?}: {seen:?}");
        }
    }

    #[test]
    fn search_finds_text_across_chunks() {
        let mut search = Search::new("ready to serve");
        for piece in ["rea", "ready ", "to ser"] {
            search.look_at(piece.as_bytes());
            assert!(!search.found());
        }
        search.look_at(b"ve at 8080\n");
        assert!(search.found());
        search.look_at(b"and more");
        assert!(search.found(), "a match persists");
    }

    #[test]
    fn closed_pipe_is_not_polled() {
        let mut closed = capture(Keep::Tail, 4, &["ab"]);
        assert!(closed.readable().is_some());
        closed.drain().expect("end of file");
        assert!(closed.readable().is_none());
    }
}
