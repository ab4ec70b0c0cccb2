//! AES with the CPU's own instructions, in registers of three widths.
//!
//! What is done with it is written once ([`work`]) over the operations of a register ([`wide`]), and compiled once for each width.

mod aes_ni;
mod native;
mod vaes256;
mod vaes512;
mod wide;
mod work;

pub(super) use native::{Native, Width};
pub(super) use work::{Below, Expand, Fill, Matches, Skip};
