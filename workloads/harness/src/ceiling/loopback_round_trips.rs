//! Round-trip rate over the loopback device, the limit of a client with one request in flight.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use super::Limit;
use crate::{Quantity, Stopwatch, Unit};

/// Counted round trips per placement; the same number precedes them as a warm-up.
const ROUND_TRIPS: u32 = 500;
/// Message size in bytes.
const MESSAGE: usize = 64;
/// Timeout of both ends, so that a stuck probe fails instead of blocking the trial.
const PATIENCE: Duration = Duration::from_secs(5);

/// Round trips per second of short messages between two threads over the loopback device, without Nagle's algorithm.
/// The result is the faster of two placements: both threads on one CPU, and the kernel's choice. Waking an idle CPU may
/// dominate, so that the faster placement depends on the machine.
///
/// # Errors
///
/// If there is no loopback device.
pub fn loopback_round_trips() -> io::Result<Limit> {
    let one = sched_getcpu();
    let seconds = round_trips(None)?.min(round_trips(Some(one))?);
    let rate = Quantity::new(f64::from(ROUND_TRIPS) / seconds, Unit::new("trips/s"));
    Ok(Limit { threads: Some(2), ..rate.into() })
}

/// Seconds that two new threads take, pinned to `cpu` if given.
fn round_trips(cpu: Option<usize>) -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (mut asks, mut echoes) = (TcpStream::connect(listener.local_addr()?)?, listener.accept()?.0);
    let prepare = |stream: &TcpStream| {
        if let Some(cpu) = cpu {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set)?;
        }
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))
    };
    thread::scope(|scope| {
        let echo = scope.spawn(move || {
            prepare(&echoes)?;
            let mut message = [0; MESSAGE];
            // Ends when the other end is dropped.
            while echoes.read_exact(&mut message).is_ok() {
                echoes.write_all(&message)?;
            }
            Ok(())
        });
        let asked = scope.spawn(move || {
            prepare(&asks)?;
            let mut message = [1; MESSAGE];
            let mut watch = Stopwatch::start();
            for trip in 0..2 * ROUND_TRIPS {
                if trip == ROUND_TRIPS {
                    watch = Stopwatch::start();
                }
                asks.write_all(&message)?;
                asks.read_exact(&mut message)?;
            }
            Ok(watch.seconds())
        });
        let seconds = asked.join().expect("a probe does not panic");
        let echoed: io::Result<()> = echo.join().expect("an echo does not panic");
        echoed.and(seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_placement_is_reported() {
        let limit = loopback_round_trips().unwrap();
        assert_eq!((limit.threads, limit.unit), (Some(2), Unit::new("trips/s")));
        assert!(limit.value > 100.0 && limit.value.is_finite(), "{limit:?}");
        let [anywhere, together] = [round_trips(None), round_trips(Some(sched_getcpu()))]
            .map(|seconds| f64::from(ROUND_TRIPS) / seconds.unwrap());
        // A busy machine is slower at times, so that the bound is loose; the slower placement is still excluded.
        assert!(limit.value > 0.3 * anywhere.max(together), "{limit:?}, {anywhere}, {together}");
    }

    #[test]
    fn probe_restores_the_affinity_of_its_thread() {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        loopback_round_trips().unwrap();
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), before);
    }
}
