//! How fast one thread can read memory at random when it knows all places beforehand: as many reads are under way as the core has room
//! for, and nothing else is done.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::limit::Limit;
use super::together::average;
use crate::{Quantity, Unit};

/// Words of a cache line: what a read brings.
const LINE: usize = 8;
/// Reads of a pass.
const READS: usize = 1 << 16;
const PASSES: usize = 8;
/// How far ahead of a read the line is asked for. More than any core has room for.
const AHEAD: usize = 48;

/// Cache lines per second that one thread reads independently at random places of `words`. The caller sees to it that they lie in memory as
/// the workload's do.
///
/// # Panics
///
/// When the words fill no cache line, or 2^32.
#[must_use]
pub fn random_lines(words: &[u64]) -> Limit {
    let lines = u32::try_from(words.len() / LINE).expect("a probe reads fewer than 2^32 lines");
    assert!(lines > 0, "a probe needs something to read");
    // xorshift64*: a probe needs no better.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    // Other places in every pass: those of the last are in a cache.
    let mut places = Vec::with_capacity((1 + PASSES) * READS + AHEAD);
    for _ in 0..(1 + PASSES) * READS + AHEAD {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let drawn = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        places.push(((drawn * u64::from(lines)) >> 32) as usize * LINE);
    }
    let next = AtomicUsize::new(0);
    let seconds = average(PASSES, 1, |_| {
        let mut sum = 0;
        let places = &places[next.fetch_add(READS, Ordering::Relaxed)..];
        for (place, later) in places[..READS].iter().zip(&places[AHEAD..]) {
            crate::prefetch::line(words.as_ptr().wrapping_add(*later));
            sum ^= words[*place];
        }
        black_box(sum);
    });
    Limit { threads: Some(1), ..Quantity::new(READS as f64 / seconds, Unit::new("lines/s")).into() }
}

#[cfg(test)]
mod tests {
    use super::{LINE, random_lines};

    #[test]
    fn it_reads_at_some_speed() {
        for words in [LINE, 1 << 17] {
            let limit = random_lines(&vec![1; words]);
            assert!(limit.value > 1e6 && limit.value.is_finite(), "{limit:?}");
            assert_eq!((limit.unit.name(), limit.threads), ("lines/s", Some(1)));
        }
    }
}
