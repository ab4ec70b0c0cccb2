//! What the machine could do at best, for the parts that the harness has no probe for.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use assay_harness::{Quantity, Stopwatch, Unit};

use crate::database::{Database, Entries};
use crate::geometry::{Geometry, Place};
use crate::query::Question;
use crate::server::add;
use crate::wire::Answering;

/// The most memory that a probe of random reads fills. A larger database is slower to read, so the limit stays one.
const PROBE_BYTES: u64 = 64 << 20;
/// Passes; the best counts.
const PASSES: usize = 5;
/// Round trips of a pass.
const ROUND_TRIPS: u32 = 200;
/// Bytes of a probe's message.
const MESSAGE: usize = 64;

/// Memory that [`random_reads`] takes.
#[must_use]
pub fn probe_bytes(geometry: Geometry) -> u64 {
    Database::bytes(geometry).min(PROBE_BYTES)
}

/// Entries per second that one thread adds up when it knows all places beforehand, each in another block, in a database of at
/// most 64 MiB.
#[must_use]
pub fn random_reads(geometry: Geometry) -> Quantity {
    let entries = probe_bytes(geometry) / geometry.entry_size() as u64;
    let small = Geometry::new(entries.clamp(1, u64::from(geometry.entries())), geometry.entry_size(), 1);
    let database = Database::new(Entries::new(1, small));
    let spread = |block: u32| Place { block, offset: block.wrapping_mul(0x9e37_79b1) % small.block_size() };
    let question = Question::Pairs((0..small.blocks()).map(spread).collect());
    let best = best(|| {
        black_box(add(&database, &question, Answering::Prefetch)).expect("the places are there");
    });
    Quantity::new(f64::from(small.blocks()) / best, Unit::new("entries/s"))
}

/// Round trips per second of short messages between two threads over the loopback device, without Nagle's algorithm.
///
/// # Errors
///
/// When there is no loopback device.
pub fn loopback_round_trips() -> io::Result<Quantity> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echo = thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        prepare(&stream)?;
        let mut message = [0; MESSAGE];
        while stream.read_exact(&mut message).is_ok() {
            stream.write_all(&message)?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(address)?;
    prepare(&stream)?;
    let mut failed = None;
    let best = best(|| {
        let mut message = [1; MESSAGE];
        for _ in 0..ROUND_TRIPS {
            if let Err(error) = stream.write_all(&message).and_then(|()| stream.read_exact(&mut message)) {
                failed = Some(error);
                return;
            }
        }
    });
    drop(stream);
    echo.join().map_err(|_| io::Error::other("the echo panicked"))??;
    match failed {
        Some(error) => Err(error),
        None => Ok(Quantity::new(f64::from(ROUND_TRIPS) / best, Unit::new("exchanges/s"))),
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))
}

fn best(mut pass: impl FnMut()) -> f64 {
    let seconds = (0..PASSES).map(|_| {
        let watch = Stopwatch::start();
        pass();
        watch.seconds()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_probes_find_some_speed() {
        let reads = random_reads(Geometry::new(5000, 40, 80));
        assert!(reads.value > 1e5 && reads.value.is_finite(), "{reads:?}");
        let trips = loopback_round_trips().unwrap();
        assert!(trips.value > 10.0 && trips.value.is_finite(), "{trips:?}");
    }
}
