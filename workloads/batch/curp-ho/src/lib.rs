//! Three replicas with a one-round-trip fast path, and the effect of batching their acknowledgements.
//!
//! [`replica`] and [`client`] are the protocol, pure state machines over messages. [`wire`] encodes messages. [`net`]
//! transports bytes, [`process`] runs one state machine with its connections in one process with one event loop, and
//! [`run`] combines the processes to a trial.

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
