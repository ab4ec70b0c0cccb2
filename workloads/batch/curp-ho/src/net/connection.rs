//! A non-blocking connection with a buffer in each direction.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::replica::Usage;
use crate::wire::{FrameError, HEADER, MAX_FRAME, Message, split};

/// Bytes that may wait for a receiver, beside a state that it is given. One that is further behind is given up.
const MAX_OUTPUT: usize = 64 << 20;
/// Bytes read at once.
const READ: usize = 64 << 10;

/// Whether a connection lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does.
    Open,
    /// The other end is gone, or too far behind.
    Closed,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: Arc<TcpStream>,
    /// Received data. It is moved out while it is handled, so that the connection can be written to, and moved back.
    pub input: Input,
    output: Vec<u8>,
    sent: usize,
    /// Bytes that may wait for the receiver.
    allowed: usize,
    /// Whether the poll is set to report room to write.
    pub wants_room: bool,
}

/// Bytes that have come and are not handled yet.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// The next whole frame's body.
    ///
    /// # Errors
    ///
    /// When the length in front of it is not allowed.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let Some((body, _)) = split(&self.bytes[self.start..self.end])? else { return Ok(None) };
        self.start += HEADER + body.len();
        Ok(Some(&self.bytes[self.start - body.len()..self.start]))
    }

    /// Room for more bytes.
    fn room(&mut self) -> &mut [u8] {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        // The remainder is less than a frame, so that the buffer never exceeds one frame and one read.
        debug_assert!(self.end < HEADER + MAX_FRAME);
        if self.bytes.len() < self.end + READ {
            self.bytes.resize(self.end + READ, 0);
        }
        &mut self.bytes[self.end..]
    }
}

impl Connection {
    /// Takes over a stream. Small messages are sent at once (`TCP_NODELAY`).
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: Arc::new(stream),
            input: Input::default(),
            output: Vec::new(),
            sent: 0,
            allowed: MAX_OUTPUT,
            wants_room: false,
        })
    }

    /// The stream itself, for other writers to it.
    #[must_use]
    pub fn stream(&self) -> Arc<TcpStream> {
        Arc::clone(&self.stream)
    }

    /// TCP segments with data that the system has sent for it; 0 where it does not say.
    #[must_use]
    pub fn segments(&self) -> u64 {
        // Where tcpi_data_segs_out lies in Linux's struct tcp_info (include/uapi/linux/tcp.h), which goes on where libc's ends.
        const DATA_SEGS_OUT: std::ops::Range<usize> = 156..160;
        let mut info = [0_u8; 256];
        let mut length = info.len() as libc::socklen_t;
        // SAFETY: the system writes at most `length` bytes into `info`, and the descriptor is that of the stream.
        let got = unsafe {
            let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
            libc::getsockopt(self.stream.as_raw_fd(), level, name, info.as_mut_ptr().cast(), &raw mut length)
        };
        let segments = info[DATA_SEGS_OUT].try_into().map_or(0, u32::from_ne_bytes);
        if got == 0 && length as usize >= DATA_SEGS_OUT.end { u64::from(segments) } else { 0 }
    }

    /// Reads once.
    pub fn read(&mut self, usage: &mut Usage) -> State {
        usage.reads += 1;
        match (&*self.stream).read(self.input.room()) {
            Ok(0) => State::Closed,
            Ok(count) => {
                self.input.end += count;
                State::Open
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => State::Open,
            Err(_) => State::Closed,
        }
    }

    /// Closes the connection after the other end has read all data. It shuts down the write side and waits for the
    /// other end's shutdown. Closing with unread answers would send a reset, after which the other end may lose unread
    /// data.
    ///
    /// # Errors
    ///
    /// If the other end is unreachable or does not close in time.
    pub fn finish(mut self, patience: Duration) -> io::Result<()> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_read_timeout(Some(patience))?;
        self.stream.set_write_timeout(Some(patience))?;
        (&*self.stream).write_all(&self.output[self.sent..])?;
        self.stream.shutdown(Shutdown::Write)?;
        while (&*self.stream).read(self.input.room())? > 0 {}
        Ok(())
    }

    /// Appends a message to the output.
    pub fn push(&mut self, message: &Message<'_>, usage: &mut Usage) {
        usage.frames_sent += 1;
        if let Message::State { bytes, .. } = message {
            self.allowed += bytes.len();
        }
        message.append(&mut self.output);
    }

    /// Appends complete frames to the output.
    pub fn push_frames(&mut self, frames: &[u8], usage: &mut Usage) {
        usage.frames_sent += 1;
        self.output.extend_from_slice(frames);
    }

    /// Whether something is left to be sent.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Sends as much as the other end takes.
    pub fn write(&mut self, usage: &mut Usage) -> State {
        while self.has_output() {
            usage.writes += 1;
            match (&*self.stream).write(&self.output[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    usage.bytes_sent += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let behind = self.output.len() - self.sent > self.allowed;
                    return if behind { State::Closed } else { State::Open };
                }
                Err(_) => return State::Closed,
            }
        }
        self.output.clear();
        (self.sent, self.allowed) = (0, MAX_OUTPUT);
        State::Open
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn each_message_that_is_written_by_itself_is_a_segment() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = Connection::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
        let mut receiver = listener.accept().unwrap().0;
        let mut usage = Usage::default();
        assert_eq!(sender.segments(), 0);
        let mut room = [0; 64];
        for seq in 1..=3 {
            sender.push(&Message::Sync { seq }, &mut usage);
            sender.write(&mut usage);
            assert!(receiver.read(&mut room).unwrap() > 0);
        }
        assert_eq!((sender.segments(), usage.writes), (3, 3));
        // Those that wait for each other in the buffer are one call, and one segment.
        for seq in 4..=9 {
            sender.push(&Message::Sync { seq }, &mut usage);
        }
        sender.write(&mut usage);
        assert_eq!((sender.segments(), usage.writes), (4, 4));
    }

    #[test]
    fn frames_are_reassembled_from_any_chunks() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut receiver = Connection::new(listener.accept().unwrap().0).unwrap();
        let (mut poll, mut usage) = (crate::net::Poll::new().unwrap(), Usage::default());
        poll.add(&receiver, 0).unwrap();
        let mut bytes = Vec::new();
        Message::Sync { seq: 5 }.append(&mut bytes);
        Message::Status { json: &[b'x'; 200_000] }.append(&mut bytes);
        let mut seen = Vec::new();
        for part in [&bytes[..3], &bytes[3..20], &bytes[20..]] {
            sender.write_all(part).unwrap();
            let mut expected = part.len();
            while expected > 0 {
                poll.wait(10_000).unwrap();
                let before = receiver.input.end - receiver.input.start;
                assert_eq!(receiver.read(&mut usage), State::Open);
                expected -= receiver.input.end - receiver.input.start - before;
                let mut input = std::mem::take(&mut receiver.input);
                while let Some(body) = input.next_frame().unwrap() {
                    seen.push(body.len());
                }
                receiver.input = input;
            }
        }
        assert_eq!(seen, [5, 200_001]);
        drop(sender);
        poll.wait(10_000).unwrap();
        assert_eq!(receiver.read(&mut usage), State::Closed);
    }

    #[test]
    fn a_connection_is_finished_when_the_other_end_has_read_everything() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut connection = Connection::new(listener.accept().unwrap().0).unwrap();
        // An unread answer must not cause a reset.
        other.write_all(&[7; 1000]).unwrap();
        connection.push_frames(&[1; 300_000], &mut Usage::default());
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            other.read_to_end(&mut all).map(|_| all.len())
        });
        connection.finish(Duration::from_secs(20)).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), 300_000);
    }

    #[test]
    fn state_may_exceed_the_output_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _idle = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut connection = Connection::new(listener.accept().unwrap().0).unwrap();
        let (mut usage, part) = (Usage::default(), vec![0; 512 << 10]);
        for _ in 0..2 * MAX_OUTPUT / part.len() {
            connection.push(&Message::State { ballot: 0, last: false, bytes: &part }, &mut usage);
        }
        assert_eq!((connection.write(&mut usage), connection.has_output()), (State::Open, true));
    }

    #[test]
    fn receiver_that_does_not_read_is_disconnected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _idle = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut connection = Connection::new(listener.accept().unwrap().0).unwrap();
        let mut usage = Usage::default();
        let frame = vec![0; 16 << 20];
        connection.push_frames(&frame, &mut usage);
        assert_eq!((connection.write(&mut usage), connection.has_output()), (State::Open, true));
        (0..5).for_each(|_| connection.push_frames(&frame, &mut usage));
        assert_eq!(connection.write(&mut usage), State::Closed);
    }
}
