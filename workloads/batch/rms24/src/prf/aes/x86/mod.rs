//! AES with the CPU's instructions, in registers of three widths.
//!
//! The algorithms are written once ([`work`]) over the register operations ([`wide`]) and compiled for each width.

mod aes_ni;
mod native;
mod vaes256;
mod vaes512;
mod wide;
mod work;

pub(super) use native::{Native, Width};
pub(super) use work::{Below, Expand, Fill, Matches, Skip};
