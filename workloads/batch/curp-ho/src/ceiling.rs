//! What the loopback can do: the cost of one small message, and of one round trip.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use assay_harness::{Quantity, Stopwatch, Unit};

/// Bytes of a probe's message: a command with its value.
const MESSAGE: usize = 128;
/// Passes; the best counts.
const PASSES: usize = 5;
/// Messages of a pass.
const COUNT: usize = 512;
/// Messages that a busy receiver finds at once. One call reads them all, so that next to nothing but the writes is left.
const TOGETHER: usize = 64;

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

fn best(mut pass: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..PASSES {
        let watch = Stopwatch::start();
        pass()?;
        best = best.min(watch.seconds() / COUNT as f64);
    }
    Ok(best)
}

/// Messages per second that all CPUs together can write, one call each. A thread writes some, and reads them at the other end with
/// one call, so that nothing waits and nothing is woken: no program that writes its messages one by one is faster.
///
/// # Errors
///
/// When the system refuses.
pub fn message_rate(cpus: usize) -> io::Result<Quantity> {
    let (mut one, mut other) = pair()?;
    let seconds = best(|| write_many(&mut one, &mut other))?;
    Ok(Quantity::new(cpus as f64 / seconds, Unit::new("writes/s")))
}

/// [`COUNT`] messages, each with a call of its own, read at the other end in as few calls as there may be.
fn write_many(one: &mut impl Write, other: &mut impl Read) -> io::Result<()> {
    let mut messages = [1; MESSAGE * TOGETHER];
    (0..COUNT / TOGETHER).try_for_each(|_| {
        messages.chunks(MESSAGE).try_for_each(|message| one.write_all(message))?;
        other.read_exact(&mut messages)
    })
}

/// Round trips per second between two threads that have nothing else to do.
///
/// # Errors
///
/// When the system refuses.
pub fn round_trip_rate() -> io::Result<Quantity> {
    let (mut one, mut other) = pair()?;
    let seconds = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut message = [0; MESSAGE];
            // Ends when the other end is dropped.
            while other.read_exact(&mut message).is_ok() && other.write_all(&message).is_ok() {}
        });
        let mut message = [1; MESSAGE];
        let seconds = best(|| {
            (0..COUNT).try_for_each(|_| {
                one.write_all(&message)?;
                one.read_exact(&mut message)
            })
        });
        drop(one);
        seconds
    })?;
    Ok(Quantity::new(1.0 / seconds, Unit::new("trips/s")))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A connection that counts its calls.
    #[derive(Default)]
    struct Counted {
        bytes: usize,
        writes: usize,
        reads: usize,
    }

    /// One of its ends.
    struct End<'a>(&'a RefCell<Counted>);

    impl Write for End<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut counted = self.0.borrow_mut();
            (counted.writes, counted.bytes) = (counted.writes + 1, counted.bytes + bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
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
    fn a_write_is_a_call_and_reading_costs_next_to_none() {
        let connection = RefCell::new(Counted::default());
        write_many(&mut End(&connection), &mut End(&connection)).unwrap();
        let Counted { bytes, writes, reads } = connection.into_inner();
        assert_eq!((bytes, writes), (0, COUNT));
        assert!(reads * 50 <= writes, "{reads} calls of read");
    }

    #[test]
    fn both_probes_find_a_rate_and_a_second_cpu_counts() {
        let rates = [message_rate(1), message_rate(1000), round_trip_rate()].map(|rate| rate.unwrap().value);
        assert!(rates.iter().all(|rate| *rate > 100.0 && rate.is_finite()), "{rates:?}");
        assert!(rates[1] > rates[0], "{rates:?}");
    }
}
