//! Hardware limits for which the harness has no probe.

use assay_harness::ceiling::{self, Limit};

use crate::database::{Database, Entries, Layout, Pages};
use crate::geometry::Geometry;
use crate::prf::AesPath;

/// The most memory that a probe of random reads fills. A larger database is slower to read, so the limit stays one.
const PROBE_BYTES: u64 = 64 << 20;

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

/// Entries per second that one thread reads at random in a database of at most 64 MiB.
#[must_use]
pub fn random_entries(geometry: Geometry) -> Limit {
    let entries = (probe_bytes(geometry) / geometry.entry_size() as u64).clamp(1, u64::from(geometry.entries()));
    let probe = Layout::new(Entries::new(1, Geometry::new(entries, geometry.entry_size(), 1)), Pages::Huge);
    ceiling::random_entries(probe.words(), geometry.entry_words())
}
