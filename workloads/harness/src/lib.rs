//! What a kernel needs to report one honest trial.
//!
//! A kernel is a program that does one piece of work some number of times and prints one JSON object that keeps to
//! `result.schema.json`. This crate is the part that every kernel shares:
//!
//! * [`flags`] reads the parameters, `--name=value`, and refuses what is out of bounds;
//! * [`clock`] times iterations and their named phases;
//! * [`histogram`] keeps more samples than anybody wants to print;
//! * [`parity`] digests the outputs, so that arms that disagree are found before their times are compared;
//! * [`ceiling`] measures what the machine could do at best;
//! * [`machine`] says what the process runs on and how much memory it may use;
//! * [`path`] picks one of the ways to do something that this CPU has, and lets it be forced;
//! * [`prefetch`] asks for memory before it is needed;
//! * [`simd`] is one algorithm for several instruction sets, each with a proof that the CPU has it;
//! * `aes` has what kernels share that encrypt with the CPU's AES instructions (x86-64 only);
//! * [`program`] is the frame of its command line, [`failure`] how it ends without a result;
//! * [`report`] puts it all together and prints it.
//!
//! A figure that a kernel does not have is left out. It is never written as zero.

#[cfg(target_arch = "x86_64")]
pub mod aes;
pub mod ceiling;
pub mod clock;
pub mod failure;
pub mod flags;
pub mod histogram;
pub mod machine;
pub mod parity;
pub mod path;
pub mod prefetch;
pub mod program;
pub mod report;
pub mod simd;
pub mod unit;

pub use assay_schema::VERSION;
pub use clock::{Phases, Stopwatch};
pub use failure::Failure;
pub use flags::{FlagError, Flags};
pub use histogram::Histogram;
pub use parity::Digest;
pub use report::Report;
pub use unit::{Quantity, Unit};
