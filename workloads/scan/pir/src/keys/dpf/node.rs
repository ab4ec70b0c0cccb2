//! Definitions shared by all implementations of the generator: keys and nodes.

/// The two fixed keys of the generator. Any two different ones do; these are the first digits of pi and of e.
pub(super) const FIXED_KEYS: [[u8; 16]; 2] = [
    0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344_u128.to_be_bytes(),
    0xb7e1_5162_8aed_2a6a_bf71_5880_9cf4_f3c7_u128.to_be_bytes(),
];

/// The bit of a node that is its control bit.
pub(super) const CONTROL: u128 = 1;

/// Corrections of the left and the right child of a node whose control bit is set.
pub(super) type Correction = [u128; 2];

/// A node as two words of selection bits, the lower first: the last level is the bits and can be written where they belong.
pub(super) type Node = [u64; 2];

/// The node that a block is.
pub(super) fn node(block: u128) -> Node {
    [block as u64, (block >> 64) as u64]
}

/// The block that a node is.
pub(super) fn block(node: Node) -> u128 {
    u128::from(node[0]) | u128::from(node[1]) << 64
}
