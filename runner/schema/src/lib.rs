//! Types of the records exchanged between Rust and Go.
//!
//! The JSON Schemas in this crate are the contract. `fixtures/` holds examples that the tests of both languages
//! read. The planner writes [`wave`], a workload prints [`result`], and the runner records [`attempt`].
//! The command line writes [`steps`].
//!
//! Parsing is strict. [`read`] rejects every text that the schema rejects; its error has the position in the text and
//! the field.

pub mod attempt;
pub mod kernel;
pub mod names;
pub mod output;
mod resources;
pub mod result;
pub mod roles;
pub mod steps;
pub mod wave;

mod check;
mod generated;
mod read;

pub use attempt::Attempt;
pub use check::{Check, Violation};
pub use read::{ReadError, read};
pub use result::Result;
pub use steps::Steps;
pub use wave::Wave;

/// The version of all crates of the workspace: `ASSAY_VERSION` at build time, else the crates' own version, which is
/// not a release.
pub const VERSION: &str = match option_env!("ASSAY_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// The JSON Schema of [`Wave`].
pub const WAVE_SCHEMA: &str = include_str!("../wave.schema.json");
/// The JSON Schema of [`Attempt`]; it references the other two.
pub const ATTEMPT_SCHEMA: &str = include_str!("../attempt.schema.json");
/// The JSON Schema of [`Result`].
pub const RESULT_SCHEMA: &str = include_str!("../result.schema.json");
/// The JSON Schema of [`Steps`].
pub const STEPS_SCHEMA: &str = include_str!("../steps.schema.json");
