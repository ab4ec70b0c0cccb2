//! The records that cross the seam between Rust and Go, as types.
//!
//! The three JSON Schemas beside this crate are the contract; `fixtures/` holds examples that the tests of both languages
//! read. [`wave`] is what the planner writes, [`result`] what a workload prints, [`attempt`] what the runner records.
//!
//! Reading is strict: [`read`] refuses whatever the schema refuses, and its error says where in the text and in which field.

pub mod attempt;
pub mod names;
pub mod output;
mod resources;
pub mod result;
pub mod roles;
pub mod wave;

mod check;
mod read;

pub use attempt::Attempt;
pub use check::{Check, Violation};
pub use read::{ReadError, read};
pub use result::Result;
pub use wave::Wave;

/// The version of everything in this workspace: what the build names in `ASSAY_VERSION`, or the crates' own, which is that of no release.
pub const VERSION: &str = match option_env!("ASSAY_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// The JSON Schema of [`Wave`].
pub const WAVE_SCHEMA: &str = include_str!("../wave.schema.json");
/// The JSON Schema of [`Attempt`]; it refers to the other two.
pub const ATTEMPT_SCHEMA: &str = include_str!("../attempt.schema.json");
/// The JSON Schema of [`Result`].
pub const RESULT_SCHEMA: &str = include_str!("../result.schema.json");
