//! Checks the consistency of an index of blocks from its file alone.
//!
//! A block has no checksum, because the document's has none. It has redundancy instead: each neighbour is stored twice,
//! and so is each distance, once as a number and once as two vectors. Every copy is compared.

use rusqlite::Connection;

use super::index::{Blocks, metadata};
use super::layout::Block;
use super::{COLUMN, TABLE};
use crate::error::{Error, Result};
use crate::findings::{Findings, Summary};

/// How much a stored distance may differ from a computed one, relatively: paths add in different orders.
const ROUNDING: f64 = 1e-4;

/// Reads the whole index and records inconsistencies.
///
/// # Errors
///
/// If it cannot be read.
pub fn verify(connection: &Connection, findings: &mut Findings) -> Result<Summary> {
    let layout = Blocks::layout(connection)?;
    let dims = layout.dims();
    let mut rows = connection.prepare(&format!("SELECT id, {COLUMN} FROM {TABLE} ORDER BY id"))?;

    // First the vectors alone, then every copy of them: an edge may lead to a node that comes later.
    let mut vectors: Vec<f32> = Vec::new();
    let mut nodes: Vec<i64> = Vec::new();
    let mut read = rows.query([])?;
    while let Some(row) = read.next()? {
        let (id, bytes) = (row.get::<_, i64>(0)?, row.get_ref(1)?.as_blob().unwrap_or_default());
        let expected = nodes.len() as i64 + 1;
        findings.check(id == expected, || format!("node {id} stands where {expected} should"));
        if bytes.len() != layout.bytes() {
            return Err(Error::Damaged(format!("node {id} has {} bytes and not {}", bytes.len(), layout.bytes())));
        }
        let mut block = Block::zeroed(layout);
        block.bytes_mut().copy_from_slice(bytes);
        findings.check(block.id() == id.cast_unsigned(), || format!("the id in node {id} is {}", block.id()));
        findings.check(block.is_sound(), || format!("node {id} has {} edges, {} fit", block.edges(), layout.slots()));
        vectors.extend_from_slice(block.vector());
        nodes.push(id);
    }
    drop(read);

    let mut edges = 0;
    let mut read = rows.query([])?;
    while let Some(row) = read.next()? {
        let (id, bytes) = (row.get::<_, i64>(0)?, row.get_ref(1)?.as_blob().unwrap_or_default());
        let mut block = Block::zeroed(layout);
        block.bytes_mut().copy_from_slice(bytes);
        if !block.is_sound() {
            continue;
        }
        let mut neighbours = Vec::with_capacity(block.edges());
        for index in 0..block.edges() {
            let edge = block.edge(index);
            edges += 1;
            neighbours.push(edge.id);
            let Ok(at) = nodes.binary_search(&edge.id.cast_signed()) else {
                findings.add(format!("node {id} has an edge to {}, which is not there", edge.id));
                continue;
            };
            findings.check(edge.id != id.cast_unsigned(), || format!("node {id} has an edge to itself"));
            let copy = block.edge_vector(index);
            findings.check(copy == &vectors[dims * at..][..dims], || {
                format!("node {id} has another vector for {} than that node", edge.id)
            });
            let squared = |(x, y): (&f32, &f32)| (f64::from(*x) - f64::from(*y)).powi(2);
            let distance: f64 = block.vector().iter().zip(copy).map(squared).sum();
            let difference = (distance - f64::from(edge.distance)).abs();
            findings.check(difference <= ROUNDING * distance, || {
                format!("node {id} has {} for the distance to {}, which is {distance}", edge.distance, edge.id)
            });
        }
        neighbours.sort_unstable();
        let all = neighbours.len();
        neighbours.dedup();
        findings.check(neighbours.len() == all, || format!("node {id} has two edges to one neighbour"));
        findings.check(all > 0 || nodes.len() < 2, || format!("node {id} has no edge"));
    }

    if let Some(medoid) = metadata(connection, "medoid")? {
        findings.check(nodes.binary_search(&medoid).is_ok(), || format!("the start {medoid} is not there"));
    }
    Ok(Summary {
        layout: "blocks",
        nodes: nodes.len() as u64,
        edges,
        most_edges: layout.slots() as u64,
        log_records: 0,
    })
}
