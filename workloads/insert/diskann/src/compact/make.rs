//! Makes an index file at once: the same inserts, in few transactions and without waiting for the disk.

use std::path::Path;

use assay_harness::Phases;

use super::index::open;
use super::table::{self, Table};
use crate::crash::Crash;
use crate::distance::Distance;
use crate::error::Result;
use crate::options::Options;
use crate::sqlite::{self, Tuning};
use crate::start;
use crate::strategy::Strategy;

/// Inserts per transaction, and records of the log before it is folded.
const BATCH: u64 = 1000;

/// Makes the file at `path` from `vectors`.
///
/// # Errors
///
/// When SQLite refuses.
pub fn make(path: &Path, options: &Options, vectors: &[f32], distance: Distance) -> Result<()> {
    let connection = sqlite::open(path, &Tuning::making(options.tuning.page_size), true)?;
    table::create(&connection, options.dims)?;
    // The file is the same however its index is used.
    let factors = Strategy::Ours.factors();
    let batches = Options { factors, transaction_size: BATCH, fold_every: BATCH, memory_budget_kib: 0, ..*options };
    let mut index = open(&connection, &batches, distance, Crash::default())?;
    for vector in vectors.chunks_exact(options.dims) {
        // Phases are not reported here.
        index.insert(vector, &mut Phases::new())?;
    }
    index.finish()?;
    table::set_medoid(&connection, start::medoid_of(options.dims, vectors).map(|id| id as u32))?;
    debug_assert_eq!(Table::Log.last(&connection)?, 0);
    Ok(())
}
