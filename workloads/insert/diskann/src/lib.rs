//! A graph index over vectors inside SQLite: the system of the "insert profiling" document, rebuilt to be measured.
//!
//! An index holds vectors and, for each of them, edges to some that lie near it. A query walks the edges towards its nearest
//! neighbours. An insert is such a walk, followed by new edges in both directions, and a transaction that makes it durable. The
//! document timed the phases of an insert at 200 and at 10,000 vectors and found that their ranking had changed.
//!
//! * [`dataset`]: seeded vectors; [`exact`]: their true neighbours, and recall.
//! * [`distance`]: squared Euclidean distance, one file per instruction set.
//! * [`beam`]: the list that a walk keeps.
//! * [`blocks`]: the document's index, one 16 KiB blob per vector with a copy of every neighbour.
//! * [`compact`]: ours, vectors and edges apart, one log record per insert.
//! * [`index`]: what the two have in common; [`options`]: which one, and how it is used; [`layouts`]: that one, made and opened.
//! * [`start`]: where a walk begins.
//! * [`sqlite`]: how a database file is opened; [`prepare`]: index files made once and checked before use.
//! * [`crash`]: the moments at which a test kills the process.
//! * [`run`], [`build`], [`verify`] and [`peers`]: the commands; [`findings`]: what checking gives.

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
