//! Makes an index file at once: the document's inserts over blocks in memory, then one transaction.

use std::path::Path;

use assay_harness::Phases;

use super::index::{Blocks, set_medoid};
use super::insert::{Insert, Walker, insert};
use super::store::Memory;
use super::{COLUMN, TABLE};
use crate::crash::Crash;
use crate::distance::{Distance, Meter};
use crate::error::Result;
use crate::index::Work;
use crate::options::Options;
use crate::sqlite::{self, Tuning};
use crate::start::{self, Draws};

/// Makes the file at `path` from `vectors`. It has the very graph that inserting them one after the other gives with random starts
/// and the same way of computing distances.
///
/// # Errors
///
/// When SQLite refuses.
pub fn make(path: &Path, options: &Options, vectors: &[f32], distance: Distance) -> Result<()> {
    let layout = options.block();
    let mut store = Memory::new(layout);
    let (mut walker, mut meter, mut work) = (Walker::new(options.insert_list), Meter::new(distance), Work::default());
    let mut draws = Draws::new(options.seed);
    for (len, vector) in (0_u64..).zip(vectors.chunks_exact(layout.dims())) {
        // Without gaps, both of SQL's ways to a random row come down to this.
        let draw = draws.draw() >> 1;
        let start = (len > 0).then(|| draw % len.max(1) + 1);
        let parameters = Insert { id: len + 1, vector, start, crash: Crash::default() };
        // Phases are not reported here.
        insert(&parameters, &mut store, &mut walker, None, &mut meter, &mut work, &mut Phases::new())?;
    }

    let connection = sqlite::open(path, &Tuning::making(options.tuning.page_size), true)?;
    Blocks::create(&connection, layout)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let mut write = connection.prepare(&format!("INSERT INTO {TABLE}(id, {COLUMN}) VALUES(?1, ?2)"))?;
    for block in store.blocks() {
        write.execute((block.id().cast_signed(), block.bytes()))?;
    }
    if let Some(medoid) = start::medoid_of(layout.dims(), vectors) {
        set_medoid(&connection, medoid)?;
    }
    connection.execute_batch("COMMIT")?;
    Ok(())
}
