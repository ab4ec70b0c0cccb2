//! Rate of independent random reads of entries by one thread with all addresses known in advance, so that the core's
//! miss buffers are full. Whole entries are read, because some CPUs fetch adjacent lines in pairs.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::limit::Limit;
use super::together::average;
use crate::{Quantity, Unit, prefetch};

/// Words per cache line.
const LINE: usize = 8;
/// Reads per pass.
const READS: usize = 1 << 16;
const PASSES: usize = 8;
/// Prefetch distance in entries, beyond the number of outstanding misses of any core.
const AHEAD: usize = 48;

/// Entries of `length` words per second that one thread reads at random indices of `words`, every line of each entry.
/// The caller must lay the entries out in memory as the workload does.
///
/// # Panics
///
/// If `words` has no entry, or 2^32 or more.
#[must_use]
pub fn random_entries(words: &[u64], length: usize) -> Limit {
    let entries = u32::try_from(words.len() / length).expect("a probe reads fewer than 2^32 entries");
    assert!(entries > 0, "a probe needs something to read");
    // xorshift64* is sufficient for a probe.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    // New indices in every pass, because those of the last pass are cached.
    let mut places = Vec::with_capacity((1 + PASSES) * READS + AHEAD);
    for _ in 0..(1 + PASSES) * READS + AHEAD {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let drawn = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        places.push(((drawn * u64::from(entries)) >> 32) as u32);
    }
    let entry = |place: u32| &words[place as usize * length..][..length];
    // Software prefetching hides latency where out-of-order execution would stall, but costs an instruction per line
    // otherwise: on Zen 4 four times the time in a cache. The limit is the faster variant.
    let seconds = [false, true].map(|ask_ahead| {
        let next = AtomicUsize::new(0);
        average(PASSES, 1, |_| {
            let mut sum = 0;
            let places = &places[next.fetch_add(READS, Ordering::Relaxed)..];
            for (place, later) in places[..READS].iter().zip(&places[AHEAD..]) {
                if ask_ahead {
                    prefetch::lines(entry(*later));
                }
                // A word of every line. An entry that does not begin at a line may extend into one more.
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
    fn rate_is_positive() {
        for (words, length) in [(8, 8), (5, 5), (1 << 17, 1), (1 << 17, 5), (1 << 17, 32)] {
            let limit = random_entries(&vec![1; words], length);
            assert!(limit.value > 1e5 && limit.value.is_finite(), "{limit:?}");
            assert_eq!((limit.unit.name(), limit.threads), ("entries/s", Some(1)));
        }
    }
}
