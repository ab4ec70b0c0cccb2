//! Library for kernels that measure one trial and report it.
//!
//! A kernel is a program that repeats one piece of work and prints one JSON object conforming to `result.schema.json`.
//! This crate has the parts that all kernels share:
//!
//! * [`flags`] parses the parameters, `--name=value`, and rejects invalid ones;
//! * [`clock`] times iterations and their named phases;
//! * [`histogram`] stores large numbers of samples;
//! * [`parity`] digests the outputs, to detect arms with different outputs before their times are compared;
//! * [`ceiling`] measures the machine's limits;
//! * [`machine`] reads properties of the machine and its available memory;
//! * [`path`] selects an implementation that this CPU supports, optionally by name;
//! * [`prefetch`] prefetches memory;
//! * [`simd`] runs one algorithm on several instruction sets, each with a proof that the CPU has it;
//! * `aes` has helpers for the CPU's AES instructions (x86-64 only);
//! * [`program`] is the `main` of a kernel, and [`failure`] its errors;
//! * [`report`] builds and prints the result.
//!
//! Figures that a kernel does not have are omitted, never written as zero.

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
