//! Ours beside other vector indexes: each in a process of its own, with the same vectors.
//!
//! An arm is a process that builds its index of the first `size` vectors of a [folder](data), says `ready`, and then answers one line per
//! line of standard input, all numbers in decimal:
//!
//! | line | what it does | what it answers |
//! |---|---|---|
//! | `insert N` | inserts the next N vectors, one by one | seconds |
//! | `search L` | asks every query once, one by one, for its ten neighbours, with a list of L | seconds, then the recall of each query |
//! | `memory` | | bytes by which the process has grown since before it had an index |
//!
//! Its command line has `--data`, that folder, and `--insert-list`, the candidates that an insert keeps. Each times itself, so that no arm
//! pays for the pipe. It ends with its standard input. [`arm`] is ours and `hnsw_rs`; `workflows/studies/diskann-insert/peers.py` has those
//! that are Python wheels.

pub mod arm;
pub mod data;
#[cfg(feature = "peer")]
pub mod hnsw;
pub mod trial;
