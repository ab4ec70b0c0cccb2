//! How many nodes one thread can read per second through SQLite, at random, with nothing done to them.

use std::ops::Range;

use assay_harness::{Quantity, Stopwatch, Unit};
use rusqlite::{Connection, MAIN_DB};

use crate::blocks::{COLUMN, TABLE};
use crate::error::Result;
use crate::start::Draws;
use crate::strategy::LayoutKind;

/// Reads of whole nodes per second, with the access method of an index of this kind, for ids in `nodes`. `None` if
/// `nodes` is empty.
///
/// # Errors
///
/// If SQLite fails.
pub fn point_reads(connection: &Connection, kind: LayoutKind, nodes: Range<u64>) -> Result<Option<Quantity>> {
    /// Passes that count; one before them fills SQLite's page cache.
    const PASSES: usize = 4;
    const READS: usize = 1000;
    if nodes.is_empty() {
        return Ok(None);
    }
    let mut draws = Draws::new(1);
    let mut ids = || {
        (0..READS).map(|_| (nodes.start + draws.draw() % (nodes.end - nodes.start)).cast_signed()).collect::<Vec<_>>()
    };
    let mut seconds = 0.0;
    let mut buffer = Vec::new();
    for pass in 0..=PASSES {
        let ids = ids();
        let watch = Stopwatch::start();
        match kind {
            LayoutKind::Blocks => {
                let mut blob = connection.blob_open(MAIN_DB, TABLE, COLUMN, ids[0], true)?;
                buffer.resize(blob.len(), 0);
                for id in &ids {
                    blob.reopen(*id)?;
                    blob.read_at_exact(&mut buffer, 0)?;
                }
            }
            LayoutKind::Compact => {
                let sql = "SELECT v.data, e.data FROM vector v LEFT JOIN edge e USING(id) WHERE v.id = ?1";
                let mut select = connection.prepare(sql)?;
                for id in &ids {
                    let bytes = |row: &rusqlite::Row<'_>| {
                        let edges = row.get_ref(1)?.as_blob_or_null()?.map_or(0, <[u8]>::len);
                        Ok(row.get_ref(0)?.as_blob()?.len() + edges)
                    };
                    std::hint::black_box(select.query_row([id], bytes)?);
                }
            }
        }
        if pass > 0 {
            seconds += watch.seconds();
        }
    }
    Ok(Some(Quantity::new((PASSES * READS) as f64 / seconds, Unit::new("nodes/s"))))
}
