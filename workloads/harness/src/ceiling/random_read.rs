//! Rate of dependent random reads by one thread (pointer chasing).

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::together::average;
use crate::{Quantity, Unit};

/// Stride in bytes: a cache line, so that no read hits the line of the previous one.
const LINE: usize = 64;
/// Reads per pass.
const READS: usize = 1 << 17;
const PASSES: usize = 5;

/// Dependent reads per second at random places of `working_set` bytes.
///
/// # Panics
///
/// If the working set has fewer than two cache lines, or 2^32 or more.
#[must_use]
pub fn random_read(working_set: usize) -> Quantity {
    let places = ring(working_set / LINE);
    // The next pass continues at this position.
    let reached = AtomicUsize::new(0);
    let seconds = average(PASSES, 1, |_| {
        let mut at = reached.load(Ordering::Relaxed);
        for _ in 0..READS {
            at = places[at].0[0] as usize;
        }
        reached.store(black_box(at), Ordering::Relaxed);
    });
    Quantity::new(READS as f64 / seconds, Unit::new("reads/s"))
}

/// A cache line whose first word is the index of the next.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u32; LINE / size_of::<u32>()]);

/// A single random cycle through all places (Sattolo's shuffle).
fn ring(places: usize) -> Vec<Line> {
    let count = u32::try_from(places).ok().filter(|count| *count >= 2);
    let count = count.expect("a probe needs at least two places, and fewer than 2^32");
    let mut ring: Vec<Line> = (0..count).map(|place| Line([place; _])).collect();
    // xorshift64* is sufficient for a probe.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for last in (1..places).rev() {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let drawn = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as usize % last;
        let other = ring[drawn].0[0];
        ring[drawn].0[0] = ring[last].0[0];
        ring[last].0[0] = other;
    }
    ring
}

#[cfg(test)]
mod tests {
    use super::{random_read, ring};

    #[test]
    fn ring_is_a_single_cycle() {
        for places in [2, 3, 64, 1000] {
            let ring = ring(places);
            let (mut at, mut steps) = (0, 0);
            while steps == 0 || at != 0 {
                at = ring[at].0[0] as usize;
                steps += 1;
            }
            assert_eq!(steps, places);
        }
    }

    #[test]
    fn rate_is_positive() {
        let limit = random_read(1 << 16);
        assert!(limit.value > 1e5 && limit.value.is_finite(), "{limit:?}");
        assert_eq!(limit.unit.name(), "reads/s");
    }
}
