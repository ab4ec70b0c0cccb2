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
    let mut messages = [1; MESSAGE * TOGETHER];
    let seconds = best(|| {
        (0..COUNT / TOGETHER).try_for_each(|_| {
            messages.chunks(MESSAGE).try_for_each(|message| one.write_all(message))?;
            other.read_exact(&mut messages)
        })
    })?;
    Ok(Quantity::new(cpus as f64 / seconds, Unit::new("writes/s")))
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
    use super::*;

    #[test]
    fn both_probes_find_a_rate_and_a_second_cpu_counts() {
        let rates = [message_rate(1), message_rate(1000), round_trip_rate()].map(|rate| rate.unwrap().value);
        assert!(rates.iter().all(|rate| *rate > 100.0 && rate.is_finite()), "{rates:?}");
        assert!(rates[1] > rates[0], "{rates:?}");
    }
}
