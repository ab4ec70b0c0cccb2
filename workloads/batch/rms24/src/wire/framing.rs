//! A frame is four bytes of length, little-endian, and as many bytes of message.
//!
//! The document's program writes a frame with two calls, length and message, on a socket with Nagle's algorithm switched on. The second
//! write waits until the peer has acknowledged the first, and the peer, which has nothing to send before it has seen the message, delays
//! its acknowledgement by 40 ms. One write, or `TCP_NODELAY`, and the wait is gone.

use std::io::{self, Read, Write};

/// Bytes before the message.
pub const HEADER: usize = 4;

/// How a frame is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The document's: length, then message.
    TwoWrites,
    /// Both at once.
    SingleWrite,
}

assay_harness::choices!(Framing { "two-writes" => TwoWrites, "single-write" => SingleWrite });

/// An empty frame to append a message to.
#[must_use]
pub fn empty() -> Vec<u8> {
    vec![0; HEADER]
}

/// Empties a frame and keeps its memory.
pub fn clear(frame: &mut Vec<u8>) {
    frame.clear();
    frame.resize(HEADER, 0);
}

/// Writes a frame, header and message in one buffer. Returns how many bytes went out.
///
/// # Errors
///
/// When the peer is gone, or the message longer than a length can say.
///
/// # Panics
///
/// When there is no room for the header.
pub fn write(to: &mut impl Write, frame: &mut [u8], framing: Framing) -> io::Result<u64> {
    let length = u32::try_from(frame.len() - HEADER)
        .map_err(|_| io::Error::other("a message does not fit into a frame of 2^32 bytes"))?;
    frame[..HEADER].copy_from_slice(&length.to_le_bytes());
    match framing {
        Framing::TwoWrites => {
            to.write_all(&frame[..HEADER])?;
            to.write_all(&frame[HEADER..])?;
        }
        Framing::SingleWrite => to.write_all(frame)?,
    }
    Ok(frame.len() as u64)
}

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming {
    /// A message, now in the buffer.
    Message,
    /// The peer has closed the connection between two frames.
    End,
    /// A frame of this many bytes, more than allowed. Its message has not been read.
    TooLong(u32),
}

/// Reads the message of a frame of at most `limit` bytes into `message`.
///
/// # Errors
///
/// When the peer is gone in the middle of a frame.
pub fn read(from: &mut impl Read, limit: usize, message: &mut Vec<u8>) -> io::Result<Incoming> {
    let mut header = [0; HEADER];
    let mut have = 0;
    while have < HEADER {
        match from.read(&mut header[have..]) {
            Ok(0) if have == 0 => return Ok(Incoming::End),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes(header);
    if length as usize > limit {
        return Ok(Incoming::TooLong(length));
    }
    message.resize(length as usize, 0);
    from.read_exact(message)?;
    Ok(Incoming::Message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers every call.
    #[derive(Default)]
    struct Calls(Vec<Vec<u8>>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(bytes.to_vec());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_documents_framing_makes_two_calls_and_the_repaired_one_makes_one() {
        for (framing, calls) in [(Framing::TwoWrites, 2), (Framing::SingleWrite, 1)] {
            let mut out = Calls::default();
            let mut frame = empty();
            frame.extend_from_slice(b"abc");
            assert_eq!(write(&mut out, &mut frame, framing).unwrap(), 7);
            assert_eq!(out.0.len(), calls);
            assert_eq!(out.0.concat(), b"\x03\0\0\0abc");
        }
    }

    #[test]
    fn frames_round_trip_and_a_torn_frame_is_distinguished_from_the_end() {
        let bytes = b"\x03\0\0\0abc";
        let mut message = Vec::new();
        let mut whole = &bytes[..];
        assert_eq!(read(&mut whole, 3, &mut message).unwrap(), Incoming::Message);
        assert_eq!(message, b"abc");
        assert_eq!(read(&mut whole, 3, &mut message).unwrap(), Incoming::End);
        assert_eq!(read(&mut &bytes[..], 2, &mut message).unwrap(), Incoming::TooLong(3));
        for torn in [&bytes[..2], &bytes[..5]] {
            assert_eq!(read(&mut &torn[..], 3, &mut message).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        }
    }
}
