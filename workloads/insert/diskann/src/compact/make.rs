//! Makes an index file at once: the same inserts, in few transactions and without waiting for the disk.

use std::path::Path;

use assay_harness::Phases;

use super::index::{Settings, open};
use super::table::{self, Table};
use crate::crash::Crash;
use crate::distance::Distance;
use crate::error::Result;
use crate::index::{BackEdges, NodeCache};
use crate::sqlite::{self, Tuning};
use crate::start::{self, Start};

/// Inserts per transaction, and records of the log before it is folded.
const BATCH: u64 = 1000;

/// Makes the file at `path` from `vectors`.
///
/// # Errors
///
/// When SQLite refuses.
pub fn make(
    path: &Path,
    dims: usize,
    vectors: &[f32],
    insert_list: usize,
    distance: Distance,
    seed: u64,
    page_size: u32,
) -> Result<()> {
    let connection = sqlite::open(path, &Tuning::making(page_size), true)?;
    table::create(&connection, dims)?;
    let settings = Settings {
        start: Start::Medoid,
        node_cache: NodeCache::PerBatch,
        back_edges: BackEdges::Deferred,
        distance,
        insert_list,
        transaction_size: BATCH,
        fold_every: BATCH,
        memory_budget: None,
        consolidate_percent: 100,
        seed,
        crash: Crash::default(),
    };
    let mut index = open(&connection, settings)?;
    for vector in vectors.chunks_exact(dims) {
        // Nobody asks for the phases of this.
        index.insert(vector, &mut Phases::new())?;
    }
    index.finish()?;
    table::set_medoid(&connection, start::medoid_of(dims, vectors).map(|id| id as u32))?;
    debug_assert_eq!(Table::Log.last(&connection)?, 0);
    Ok(())
}
