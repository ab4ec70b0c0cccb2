//! Three replicas with a one-round-trip fast path, and what batching their acknowledgements changes.
//!
//! [`replica`] and [`client`] are the protocol: pure state machines that take messages and give messages. [`wire`] is what they look like
//! as bytes. [`net`] moves bytes, [`process`] puts one state machine and its connections into one process with one thread of events, and
//! [`run`] puts the processes together for one trial.

pub mod ceiling;
pub mod client;
pub mod command;
pub mod history;
pub mod net;
pub mod parameters;
pub mod process;
pub mod replica;
pub mod run;
pub mod wire;
pub mod workload;
