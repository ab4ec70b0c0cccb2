//! Collects what a process writes into a pipe, in bounded memory.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;

/// Which part of too much output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The beginning; more than the limit is an error of the process.
    Head,
    /// The end.
    Tail,
}

/// At most so much is taken at once, which is more than a pipe holds. Whoever writes faster than this reads must not keep the runner from
/// its clock and its signals.
const MOST_AT_ONCE: usize = 2 << 20;

/// One pipe and what has come out of it.
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

    /// What to wait for; nothing once the other end is closed.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(|pipe| pipe.as_fd())
    }

    /// Whether a [`Keep::Head`] capture had to drop something.
    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Takes what is there without waiting; of an endless stream a part.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        self.drain_with(|_| ())
    }

    /// The same, and shows every piece of it.
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

/// Looks for a text in a stream that comes in pieces.
#[derive(Debug)]
pub(crate) struct Search {
    text: Vec<u8>,
    /// The end of what was seen, which may be the beginning of the text.
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
    fn the_head_says_when_it_dropped_something() {
        let whole = capture(Keep::Head, 6, &["abc", "def"]);
        assert!(!whole.overflowed());
        assert_eq!(whole.into_bytes(), b"abcdef");
        let cut = capture(Keep::Head, 5, &["abc", "def"]);
        assert!(cut.overflowed());
        assert_eq!(cut.into_bytes(), b"abcde");
    }

    #[test]
    fn the_tail_keeps_the_end() {
        assert_eq!(capture(Keep::Tail, 4, &["ab", "cd", "e"]).into_bytes(), b"bcde");
        assert_eq!(capture(Keep::Tail, 4, &["abcdefgh"]).into_bytes(), b"efgh");
    }

    #[test]
    fn an_endless_writer_keeps_nobody_from_the_clock() {
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
    fn a_text_is_found_across_pieces() {
        let mut search = Search::new("ready to serve");
        for piece in ["rea", "ready ", "to ser"] {
            search.look_at(piece.as_bytes());
            assert!(!search.found());
        }
        search.look_at(b"ve at 8080\n");
        assert!(search.found());
        search.look_at(b"and more");
        assert!(search.found(), "what was found stays found");
    }

    #[test]
    fn a_closed_pipe_is_not_waited_for() {
        let mut closed = capture(Keep::Tail, 4, &["ab"]);
        assert!(closed.readable().is_some());
        closed.drain().expect("end of file");
        assert!(closed.readable().is_none());
    }
}
