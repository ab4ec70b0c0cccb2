//! A graph index over vectors in SQLite: the system of the "insert profiling" document, rebuilt for measurement.
//!
//! An index has vectors and, for each of them, edges to some near ones. A query walks the edges towards its nearest
//! neighbours. An insert is such a walk, followed by new edges in both directions and a durable transaction. The
//! document timed the phases of an insert at 200 and at 10,000 vectors and found that their ranking had changed.
//!
//! * [`dataset`]: seeded vectors; [`exact`]: their true neighbours, and recall.
//! * [`distance`]: squared Euclidean distance, one file per instruction set.
//! * [`beam`]: the candidate list of a walk.
//! * [`blocks`]: the document's index, one 16 KiB blob per vector with a copy of every neighbour.
//! * [`compact`]: ours, with separate vectors and edges, one log record per insert.
//! * [`index`]: their common interface; [`options`]: layout and settings; [`layouts`]: creation and opening by layout.
//! * [`start`]: start points of walks.
//! * [`sqlite`]: opening of database files; [`prepare`]: cached index files that are verified before use.
//! * [`crash`]: crash points for tests.
//! * [`run`], [`build`], [`verify`] and [`peers`]: the commands; [`findings`]: results of a check.

pub mod beam;
pub mod blocks;
pub mod build;
pub mod ceiling;
pub mod compact;
pub mod crash;
pub mod dataset;
pub mod distance;
pub mod error;
pub mod estimate;
pub mod exact;
pub mod findings;
pub mod index;
pub mod layouts;
pub mod options;
pub mod peers;
pub mod prepare;
pub mod run;
pub mod sqlite;
pub mod start;
pub mod strategy;
pub mod system;
pub mod verify;
