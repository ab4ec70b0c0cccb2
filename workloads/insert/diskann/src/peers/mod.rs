//! Comparison with other vector indexes: each in a separate process, with the same vectors.
//!
//! An arm is a process that builds its index of the first `size` vectors of a [folder](data), prints `ready`, and then
//! answers one line per line of standard input, all numbers in decimal:
//!
//! | line | action | answer |
//! |---|---|---|
//! | `insert N` | inserts the next N vectors, one by one | seconds |
//! | `search L` | runs every query once, sequentially, for ten neighbours, with a list of L | seconds, then the recall of each query |
//! | `memory` | | bytes by which the process has grown since before it had an index |
//!
//! Its command line has `--data`, that folder, and `--insert-list`, the candidate list size of an insert. Each arm
//! times itself, so that the pipe is not included. It exits at the end of its standard input. [`arm`] is ours and
//! `hnsw_rs`; `workflows/studies/diskann-insert/peers.py` has those that are Python wheels.

pub mod arm;
pub mod data;
#[cfg(feature = "peer")]
pub mod hnsw;
pub mod trial;
