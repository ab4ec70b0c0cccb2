//! Limit of the loopback device: the rate of a command's socket calls.

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use assay_harness::{Quantity, Stopwatch, Unit};
use rustix::net::SendFlags;

use crate::net::Poll;

/// Commands per probe, some tens of milliseconds; fewer would be dominated by neighbours' activity.
const COUNT: usize = 32_768;
/// Commands before them that do not count.
const WARMUP: usize = 4096;

fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let other = listener.accept()?.0;
    for stream in [&one, &other] {
        stream.set_nodelay(true)?;
        // A probe that got stuck would be worse than none.
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
    }
    Ok((one, other))
}

/// The socket calls of a command, on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calls {
    /// Calls of `write`.
    pub writes: f64,
    /// TCP segments in which the bytes are sent. Where the system does not say, or says that there are more than calls, one for each.
    pub segments: f64,
    /// Calls of `read`.
    pub reads: f64,
    /// Calls of `epoll_wait`.
    pub waits: f64,
    /// Bytes that are written.
    pub bytes: f64,
}

/// Commands of a round of [`call_rate`].
const COMMANDS: usize = 64;
/// Bytes of one of its reads: as many as a connection's.
const READ: usize = 64 << 10;

/// Commands per second that threads on all CPUs could handle with the same socket calls, bytes and segments, but
/// without waiting, wake-ups and computation. The ends of a connection alternate as in the protocol, because TCP
/// acknowledges each message separately to an end that only reads, which took longer than the whole command.
///
/// # Errors
///
/// If a system call fails.
pub fn call_rate(cpus: usize, calls: Calls) -> io::Result<Quantity> {
    let all = (0..cpus).map(|_| pair()).collect::<io::Result<Vec<_>>>()?;
    let seconds = std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .into_iter()
            .map(|(one, other)| {
                scope.spawn(move || {
                    let (mut poll, mut ends) = (Poll::new()?, [one, other]);
                    for (token, end) in (0..).zip(&ends) {
                        end.set_nonblocking(true)?;
                        poll.add(end, token)?;
                    }
                    let mut room = vec![0; READ];
                    let mut round = || one_round(&mut ends, calls, &mut room, || poll.wait(0).map(drop));
                    (0..WARMUP / COMMANDS).try_for_each(|_| round())?;
                    let watch = Stopwatch::start();
                    (0..COUNT / COMMANDS).try_for_each(|_| round())?;
                    Ok(watch.seconds())
                })
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, io::Result<f64>>| thread.join().expect("no probe panics");
        threads.into_iter().map(join).collect::<io::Result<Vec<f64>>>()
    })?;
    // Rate of each thread; their sum is the rate of all CPUs.
    let rate = seconds.iter().map(|seconds| COUNT as f64 / seconds).sum();
    Ok(Quantity::new(rate, Unit::new("ops/s")))
}

/// Writes to a connection. Data written with `more` shares a segment with the next write.
trait Sender {
    fn send(&mut self, bytes: &[u8], more: bool) -> io::Result<()>;
}

impl Sender for TcpStream {
    fn send(&mut self, mut bytes: &[u8], more: bool) -> io::Result<()> {
        let flags = if more { SendFlags::MORE } else { SendFlags::empty() };
        while !bytes.is_empty() {
            bytes = &bytes[rustix::net::send(&*self, bytes, flags)?..];
        }
        Ok(())
    }
}

/// The calls of [`COMMANDS`] commands, evenly spread; all written data is read in the end. A reader writes after it has
/// read everything.
fn one_round<S: Read + Sender>(
    ends: &mut [S; 2],
    calls: Calls,
    room: &mut [u8],
    mut wait: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let of = |each: f64| (each * COMMANDS as f64).round().max(1.0) as usize;
    let (writes, reads, waits) = (of(calls.writes), of(calls.reads), of(calls.waits));
    let segments = if calls.segments > 0.0 { of(calls.segments).min(writes) } else { writes };
    let message = vec![1; of(calls.bytes).div_ceil(writes)];
    let mut read = |end: &mut S| match end.read(room) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        read => read,
    };
    let (mut left, mut writer, mut owed) = (0, 0, 0);
    for write in 0..writes {
        // Number of other calls that accompany this one.
        let share = |calls: usize| calls * (write + 1) / writes - calls * write / writes;
        let sent = share(segments) > 0;
        ends[writer].send(&message, !sent)?;
        (left, owed) = (left + message.len(), owed + share(reads));
        (0..share(waits)).try_for_each(|_| wait())?;
        if sent {
            for _ in 0..std::mem::take(&mut owed) {
                left -= read(&mut ends[1 - writer])?;
            }
            if left == 0 {
                writer = 1 - writer;
            }
        }
    }
    while left > 0 {
        left -= read(&mut ends[1 - writer])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A connection that counts its calls.
    #[derive(Default)]
    struct Counted {
        bytes: usize,
        /// Those of them that wait for more.
        held: usize,
        writes: usize,
        segments: usize,
        reads: usize,
    }

    /// One of its ends.
    struct End<'a>(&'a RefCell<Counted>);

    impl Sender for End<'_> {
        fn send(&mut self, bytes: &[u8], more: bool) -> io::Result<()> {
            let mut counted = self.0.borrow_mut();
            (counted.writes, counted.held) = (counted.writes + 1, counted.held + bytes.len());
            if !more {
                (counted.segments, counted.bytes) =
                    (counted.segments + 1, counted.bytes + std::mem::take(&mut counted.held));
            }
            Ok(())
        }
    }

    impl Read for End<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let mut counted = self.0.borrow_mut();
            let read = room.len().min(counted.bytes);
            (counted.reads, counted.bytes) = (counted.reads + 1, counted.bytes - read);
            Ok(read)
        }
    }

    #[test]
    fn a_round_makes_the_calls_it_is_asked_for_and_leaves_nothing_unread() {
        for (writes, segments, reads, waits, bytes) in [
            (5.0, 5.0, 3.0, 1.5, 700.0),
            (5.0, 0.5, 0.5, 1.5, 700.0),
            (0.25, 0.25, 0.25, 0.1, 400.0),
            (2.0, 1.0, 4.0, 0.0, 90.0),
            (2.0, 3.0, 1.0, 1.0, 90.0),
        ] {
            let connection = RefCell::new(Counted::default());
            let mut waited = 0;
            let calls = Calls { writes, segments, reads, waits, bytes };
            let mut room = [0; READ];
            one_round(&mut [End(&connection), End(&connection)], calls, &mut room, || {
                waited += 1;
                Ok(())
            })
            .unwrap();
            let counted = connection.into_inner();
            let of = |each: f64| (each * COMMANDS as f64).round() as usize;
            assert_eq!((counted.bytes, counted.held, counted.writes), (0, 0, of(writes)), "{calls:?}");
            assert_eq!(counted.segments, of(segments.min(writes)), "{calls:?}");
            assert!((of(reads)..=of(reads) + 1).contains(&counted.reads), "{calls:?}: {} reads", counted.reads);
            assert_eq!(waited, of(waits).max(1), "{calls:?}");
        }
    }

    #[test]
    fn more_calls_take_longer() {
        let rate = |writes| {
            let calls = Calls { writes, segments: writes, reads: 1.0, waits: 1.0, bytes: 500.0 };
            call_rate(1, calls).unwrap().value
        };
        assert!(rate(1.0) > rate(30.0));
    }

    #[test]
    fn the_probe_finds_a_rate() {
        let calls = Calls { writes: 5.0, segments: 5.0, reads: 3.0, waits: 2.0, bytes: 900.0 };
        let rate = call_rate(2, calls).unwrap().value;
        assert!(rate > 100.0 && rate.is_finite(), "{rate}");
    }
}
