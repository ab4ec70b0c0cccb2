//! Whether our index is consistent, from its file alone: every checksum, every edge, and that table and log together cover every vector.

use rusqlite::Connection;

use super::MOST_EDGES;
use super::deleted::Deleted;
use super::nodes::{Nodes, replay};
use super::table::{self, Table};
use super::whole::Whole;
use crate::error::{Error, Result};
use crate::findings::{Findings, Summary};
use crate::index::NodeCache;

/// Reads the whole index and records inconsistencies.
///
/// # Errors
///
/// If a row's checksum is wrong, or the index cannot be read.
pub fn verify(connection: &Connection, findings: &mut Findings) -> Result<Summary> {
    let dims = table::dims(connection)?;
    let len = table::last_id(connection)?;
    let len = usize::try_from(len).map_err(|_| Error::Damaged(format!("invalid id {len}")))?;
    let mut nodes = Whole::new(dims, NodeCache::PerBatch);
    // Checks every checksum and size, that vectors have no gaps, that no list is too long, and that every edge leads somewhere.
    let deleted = Deleted::load(connection)?;
    nodes.load(len, &deleted, connection)?;

    // The edges of a vector are in the table, or it has a record in the log: the first ones here, the later ones there.
    let mut next = 0;
    let mut expect = |id: i64| {
        let expected = i64::from(deleted.next_slot(next)) + 1;
        next = u32::try_from(id).unwrap_or(u32::MAX - 1);
        (id != expected).then_some(expected)
    };
    let mut rows = 0_u64;
    Table::Edge.scan(connection, |id, _| {
        rows += 1;
        if let Some(expected) = expect(id) {
            findings.add(format!("the edges of {id} stand where those of {expected} should"));
        }
        Ok(())
    })?;
    let mut records = 0_u64;
    Table::Log.scan(connection, |id, bytes| {
        records += 1;
        if let Some(expected) = expect(id) {
            findings.add(format!("record {id} of the log stands where {expected} should"));
        }
        replay(&mut nodes, id, bytes, connection)
    })?;
    let there = (0..len as u32).filter(|slot| !deleted.is_gone(*slot)).count() as u64;
    findings.check(rows + records == there, || {
        format!("{there} vectors, but edges of {rows} and {records} records in the log")
    });

    let mut edges = 0;
    for slot in (0..len as u32).filter(|slot| !deleted.is_gone(*slot)) {
        let id = slot + 1;
        let mut neighbours = nodes.edges(slot).to_vec();
        edges += neighbours.len() as u64;
        findings.check(!neighbours.contains(&slot), || format!("vector {id} has an edge to itself"));
        findings.check(!neighbours.is_empty() || there < 2, || format!("vector {id} has no edge"));
        for neighbour in neighbours.iter().filter(|neighbour| deleted.is_gone(**neighbour)) {
            findings.add(format!("vector {id} has an edge to {}, which is not there", neighbour + 1));
        }
        neighbours.sort_unstable();
        let all = neighbours.len();
        neighbours.dedup();
        findings.check(neighbours.len() == all, || format!("vector {id} has two edges to one neighbour"));
    }
    if let Some(medoid) = table::setting(connection, "medoid")? {
        let slot = u32::try_from(medoid - 1).ok().filter(|slot| (*slot as usize) < len && !deleted.is_gone(*slot));
        findings.check(slot.is_some(), || format!("the start {medoid} is not there"));
    }
    Ok(Summary {
        layout: "compact",
        nodes: len as u64 - deleted.count(),
        edges,
        most_edges: MOST_EDGES as u64,
        log_records: records,
    })
}
