//! AES-128 under one secret key that is expanded once. One call gives several values.
//!
//! ```text
//! select values   E(hint, block / 4, 1)          four of 32 bits, for four consecutive blocks of one hint
//! offsets         E(hint / lanes, block, 2)      for the same block of eight consecutive hints (16 bits each), or of four (32 bits)
//! ```
//!
//! Offsets are packed over hints because the search for a hint asks all hints about one block. A client that expands a hint asks one hint
//! about all blocks, and needs a whole call for each; but it expands one hint and searches through thousands.
//!
//! Sixteen bits make an unbiased offset only if the block size is a power of two. For other sizes an offset comes from 32 bits, by
//! multiplication: it is off uniform by a factor of at most 1 ± block size / 2^32, 10^-5 for the document's blocks. The bias is the same
//! for every offset that a server sees, independent of the wanted entry.

mod function;
mod layout;
mod list;
mod portable;
mod wish;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use function::{AesPath, AesPrf, CHUNK};
pub use layout::{Lanes, Matcher};
pub use list::{ROOM, blocks_of_bits, expand};
pub use wish::Wish;
