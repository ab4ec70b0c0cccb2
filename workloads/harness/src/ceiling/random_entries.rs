//! How fast one thread can read entries of memory at random when it knows all places beforehand: as many reads are under way as the core
//! has room for, and nothing else is done. Whole entries are read, as the lines of one are neighbours, which some CPUs fetch in pairs.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::limit::Limit;
use super::together::average;
use crate::{Quantity, Unit, prefetch};

/// Words of a cache line: what a read brings.
const LINE: usize = 8;
/// Reads of a pass.
const READS: usize = 1 << 16;
const PASSES: usize = 8;
/// How many entries ahead of a read one is asked for. More than any core has room for.
const AHEAD: usize = 48;

/// Entries of `length` words per second that one thread reads, every line of each, independently at random places of `words`, where they
/// follow one another. The caller sees to it that they lie in memory as the workload's do.
///
/// # Panics
///
/// When the words hold no entry, or 2^32.
#[must_use]
pub fn random_entries(words: &[u64], length: usize) -> Limit {
    let entries = u32::try_from(words.len() / length).expect("a probe reads fewer than 2^32 entries");
    assert!(entries > 0, "a probe needs something to read");
    // xorshift64*: a probe needs no better.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    // Other places in every pass: those of the last are in a cache.
    let mut places = Vec::with_capacity((1 + PASSES) * READS + AHEAD);
    for _ in 0..(1 + PASSES) * READS + AHEAD {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let drawn = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        places.push(((drawn * u64::from(entries)) >> 32) as u32);
    }
    let entry = |place: u32| &words[place as usize * length..][..length];
    // What is asked for ahead arrives in time where a read alone would hold up those behind it, and costs an instruction per line where it
    // would not: on Zen 4, four times the time in a cache. The limit is what is faster.
    let seconds = [false, true].map(|ask_ahead| {
        let next = AtomicUsize::new(0);
        average(PASSES, 1, |_| {
            let mut sum = 0;
            let places = &places[next.fetch_add(READS, Ordering::Relaxed)..];
            for (place, later) in places[..READS].iter().zip(&places[AHEAD..]) {
                if ask_ahead {
                    prefetch::lines(entry(*later));
                }
                // A word of every line: where the entry does not begin with one, the last is in one more.
                let entry = entry(*place);
                sum ^= entry.iter().step_by(LINE).fold(entry[length - 1], |sum, word| sum ^ word);
            }
            black_box(sum);
        })
    });
    let seconds = seconds[0].min(seconds[1]);
    Limit { threads: Some(1), ..Quantity::new(READS as f64 / seconds, Unit::new("entries/s")).into() }
}

#[cfg(test)]
mod tests {
    use super::random_entries;

    #[test]
    fn it_reads_at_some_speed() {
        for (words, length) in [(8, 8), (5, 5), (1 << 17, 1), (1 << 17, 5), (1 << 17, 32)] {
            let limit = random_entries(&vec![1; words], length);
            assert!(limit.value > 1e5 && limit.value.is_finite(), "{limit:?}");
            assert_eq!((limit.unit.name(), limit.threads), ("entries/s", Some(1)));
        }
    }
}
