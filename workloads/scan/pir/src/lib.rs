//! Two-server private information retrieval (PIR) by XOR scan: the system of the TASK-22 document, rebuilt to be measured.
//!
//! A client wants one row of a public matrix without telling anybody which. It makes two [`keys`], one for each of two
//! servers that do not talk to each other. A key gives a bit for every row; to a server the bits look random. Each server XORs
//! together the rows whose bit is one and returns the sum. The two servers' bits differ in the wanted row only, so the XOR of the
//! two answers is that row. The price of privacy is that every query reads every row.
//!
//! * [`matrix`]: the rows, in chunks; [`lcg`]: the document's generator that fills them.
//! * [`keys`]: the document's toy key, and a real distributed point function.
//! * [`selection`]: the bits of many keys.
//! * [`scan`]: four ways to answer a batch of queries.
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
