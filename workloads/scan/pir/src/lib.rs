//! Two-server private information retrieval (PIR) by XOR scan: the system of the TASK-22 document, rebuilt for
//! measurement.
//!
//! A client wants one row of a public matrix without revealing which. It makes two [`keys`], one for each of two
//! servers that do not collude. A key gives one bit per row that looks random to its server. Each server XORs the rows
//! whose bit is one and returns the sum. The bits of the two servers differ in the wanted row only, so that the XOR of
//! both answers is that row. The cost of privacy is that every query reads every row.
//!
//! * [`matrix`]: the rows, in chunks; [`lcg`]: the document's generator of their contents.
//! * [`keys`]: the document's toy key, and a real distributed point function.
//! * [`selection`]: the bits of many keys.
//! * [`scan`]: strategies to answer a batch of queries.
//! * [`server`]: epochs, pending updates and the batch handler.
//! * [`workload`]: the document's queries and updates.
//! * [`run`]: a trial.

pub mod keys;
pub mod lcg;
pub mod matrix;
pub mod run;
pub mod scan;
pub mod selection;
pub mod server;
pub mod workload;
