//! Limits of the machine for the operations of an insert, one probe each.

mod point_reads;
mod syncs;

pub use point_reads::point_reads;
pub use syncs::syncs;
