//! What the machine could do at best, for the parts that the harness has no probe for.

use assay_harness::ceiling::{self, Limit};

use crate::database::{Database, Entries, Layout, Pages};
use crate::geometry::Geometry;
use crate::prf::AesPath;

/// The most memory that a probe of random reads fills. A larger database is slower to read, so the limit stays one.
const PROBE_BYTES: u64 = 64 << 20;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Memory that a probe of random reads of the database takes.
#[must_use]
pub fn probe_bytes(geometry: Geometry) -> u64 {
    Database::bytes(geometry).min(PROBE_BYTES)
}

/// AES-128 blocks per second that one thread encrypts with the instructions of a path, or with the best there are where the path is that of
/// a library which picks its own.
#[must_use]
pub fn aes_rate(path: AesPath) -> Option<Limit> {
    ceiling::aes_rate_with(path.name(), 1).or_else(ceiling::aes_rate)
}

/// Cache lines per second that one thread reads at random in a database of at most 64 MiB.
#[must_use]
pub fn random_lines(geometry: Geometry) -> Limit {
    let entries = (probe_bytes(geometry) / geometry.entry_size() as u64).clamp(1, u64::from(geometry.entries()));
    let probe = Layout::new(Entries::new(1, Geometry::new(entries, geometry.entry_size(), 1)), Pages::Huge);
    ceiling::random_lines(probe.words())
}

/// Cache lines that an entry lies in, on average: the first starts a line, and all follow one another.
#[must_use]
pub fn lines_per_entry(entry_size: usize) -> f64 {
    // Entries are whole words, so after as many entries as a line has words the next one starts a line again.
    const PERIOD: usize = LINE / 8;
    let lines = |entry: usize| (entry * entry_size + entry_size - 1) / LINE - entry * entry_size / LINE + 1;
    (0..PERIOD).map(lines).sum::<usize>() as f64 / PERIOD as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_lies_in_as_many_lines_as_counted() {
        for (entry_size, lines) in
            [(8, 1.0), (32, 1.0), (40, 1.5), (48, 1.5), (64, 1.0), (72, 2.0), (96, 2.0), (256, 4.0)]
        {
            assert_eq!(lines_per_entry(entry_size), lines, "{entry_size} bytes");
        }
    }
}
