//! What the machine can do with the things that an insert is made of, one probe each.

mod point_reads;
mod syncs;

pub use point_reads::point_reads;
pub use syncs::syncs;
