//! One node as a blob of fixed size, little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0 … 8 | the node's id |
//! | 8 … 10 | its number of edges |
//! | 10 … 16 | unused |
//! | then 4·dims | its vector |
//! | then slots · 4·dims | for every edge a copy of the neighbour's vector |
//! | then slots · 16 | for every edge 4 unused bytes, the squared distance as f32, the neighbour's id |
//!
//! A block holds as many edges as fit. This limits a node's degree, not the requested number of neighbours: 30 with 128
//! dimensions and 16 KiB.

use bytemuck::{cast_slice, cast_slice_mut};

const _: () = assert!(cfg!(target_endian = "little"), "blocks are read as they lie in memory");

/// Bytes before the vector.
const HEADER: usize = 16;
/// Bytes of an edge beside the copied vector.
const EDGE: usize = 16;
/// Bytes of a coordinate.
const COORDINATE: usize = size_of::<f32>();

/// The sizes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    dims: usize,
    bytes: usize,
    slots: usize,
}

impl Layout {
    /// Blocks of `bytes` bytes for vectors of `dims` dimensions. `None` where not a single edge fits, or more than a count can say, and
    /// where SQLite has no blob of that size.
    #[must_use]
    pub fn new(dims: usize, bytes: usize) -> Option<Self> {
        i32::try_from(bytes).ok()?;
        let vector = COORDINATE.checked_mul(dims)?;
        let slots = bytes.checked_sub(HEADER)?.checked_sub(vector)? / (vector + EDGE);
        let sound = dims > 0 && bytes.is_multiple_of(8) && (1..=usize::from(u16::MAX)).contains(&slots);
        sound.then_some(Self { dims, bytes, slots })
    }

    /// Dimensions of a vector.
    #[must_use]
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Bytes of a block.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Edges that fit.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes up to the end of the node's own vector.
    #[must_use]
    pub fn front(&self) -> usize {
        HEADER + COORDINATE * self.dims
    }

    fn edge_vectors(&self) -> usize {
        HEADER / COORDINATE + self.dims
    }

    fn edge_bytes(&self) -> usize {
        COORDINATE * (self.edge_vectors() + self.slots * self.dims)
    }
}

/// An edge as a block has it, without the copied vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// The neighbour.
    pub id: u64,
    /// Its squared distance.
    pub distance: f32,
}

/// One node.
#[derive(Debug, Clone)]
pub struct Block {
    layout: Layout,
    /// The whole blob. As numbers, so that vectors are aligned.
    words: Vec<f32>,
}

impl Block {
    /// A block of zeroes, to be read into.
    #[must_use]
    pub fn zeroed(layout: Layout) -> Self {
        Self { layout, words: vec![0.0; layout.bytes / COORDINATE] }
    }

    /// The node `id` without edges.
    #[must_use]
    pub fn new(layout: Layout, id: u64, vector: &[f32]) -> Self {
        let mut block = Self::zeroed(layout);
        block.fill(id, vector);
        block
    }

    /// Makes a block of zeroes the node `id` without edges.
    pub(super) fn fill(&mut self, id: u64, vector: &[f32]) {
        self.bytes_mut()[..8].copy_from_slice(&id.to_le_bytes());
        let dims = self.layout.dims;
        self.words[HEADER / COORDINATE..][..dims].copy_from_slice(vector);
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        cast_slice(&self.words)
    }

    /// Its bytes, to be read into.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        cast_slice_mut(&mut self.words)
    }

    /// The node.
    #[must_use]
    pub fn id(&self) -> u64 {
        u64::from_le_bytes(array(&self.bytes()[..8]))
    }

    /// The stored number of edges. A file may contain more than fit; see [`is_sound`](Self::is_sound).
    #[must_use]
    pub fn edges(&self) -> usize {
        usize::from(u16::from_le_bytes(array(&self.bytes()[8..10])))
    }

    /// Whether the number of edges is one that fits.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.edges() <= self.layout.slots
    }

    /// Its vector.
    #[must_use]
    pub fn vector(&self) -> &[f32] {
        &self.words[HEADER / COORDINATE..][..self.layout.dims]
    }

    /// The edge in slot `index`.
    #[must_use]
    pub fn edge(&self, index: usize) -> Edge {
        let at = &self.bytes()[self.layout.edge_bytes() + EDGE * index..][..EDGE];
        Edge { distance: f32::from_le_bytes(array(&at[4..8])), id: u64::from_le_bytes(array(&at[8..16])) }
    }

    /// The neighbour's vector in slot `index`.
    #[must_use]
    pub fn edge_vector(&self, index: usize) -> &[f32] {
        &self.words[self.layout.edge_vectors() + self.layout.dims * index..][..self.layout.dims]
    }

    /// Writes slot `index`, which is in use or the first that is not.
    ///
    /// # Panics
    ///
    /// When it is neither.
    pub fn set_edge(&mut self, index: usize, edge: Edge, vector: &[f32]) {
        let edges = self.edges();
        assert!(index <= edges && index < self.layout.slots, "slot {index} of {edges}, {} fit", self.layout.slots);
        let (vectors, bytes, dims) = (self.layout.edge_vectors(), self.layout.edge_bytes(), self.layout.dims);
        self.words[vectors + dims * index..][..dims].copy_from_slice(vector);
        let at = &mut self.bytes_mut()[bytes + EDGE * index..][..EDGE];
        at[4..8].copy_from_slice(&edge.distance.to_le_bytes());
        at[8..16].copy_from_slice(&edge.id.to_le_bytes());
        self.set_edges(edges.max(index + 1));
    }

    /// Takes the edge in slot `index` out; the last one moves there.
    pub fn remove_edge(&mut self, index: usize) {
        let last = self.edges() - 1;
        let (vectors, bytes, dims) = (self.layout.edge_vectors(), self.layout.edge_bytes(), self.layout.dims);
        self.words.copy_within(vectors + dims * last..vectors + dims * (last + 1), vectors + dims * index);
        let from = bytes + EDGE * last;
        self.bytes_mut().copy_within(from..from + EDGE, bytes + EDGE * index);
        self.set_edges(last);
    }

    fn set_edges(&mut self, edges: usize) {
        let edges = u16::try_from(edges).expect("a layout has no more slots than that");
        self.bytes_mut()[8..10].copy_from_slice(&edges.to_le_bytes());
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the slice was cut to this length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_block_has_thirty_slots() {
        assert_eq!(Layout::new(128, 16_384).unwrap().slots(), 30);
        // 256 dimensions and 4 KiB: the sizes with which another of its experiments found nothing.
        assert_eq!(Layout::new(256, 4096).unwrap().slots(), 2);
        assert_eq!(Layout::new(1024, 4096), None);
        assert_eq!(Layout::new(0, 4096), None);
    }

    /// As a damaged file may name them.
    #[test]
    fn sizes_beyond_any_memory_are_none() {
        for dims in [1 << 62, usize::MAX / 4 + 1, usize::MAX, 1 << 30] {
            assert_eq!(Layout::new(dims, 16_384), None, "{dims}");
        }
        assert_eq!(Layout::new(1 << 40, 1 << 44), None);
    }

    #[test]
    fn bytes_lie_where_the_table_says() {
        let mut block = Block::new(Layout::new(2, 64).unwrap(), 0x0102, &[1.0, 2.0]);
        block.set_edge(0, Edge { id: 7, distance: 0.5 }, &[3.0, 4.0]);
        let bytes = block.bytes();
        assert_eq!(bytes[..10], [2, 1, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(bytes[16..24], [1.0_f32.to_le_bytes(), 2.0_f32.to_le_bytes()].concat());
        assert_eq!(bytes[24..32], [3.0_f32.to_le_bytes(), 4.0_f32.to_le_bytes()].concat());
        assert_eq!(bytes[36..40], 0.5_f32.to_le_bytes());
        assert_eq!(bytes[40..48], 7_u64.to_le_bytes());
    }

    #[test]
    fn removing_moves_the_last_edge() {
        let mut block = Block::new(Layout::new(1, 96).unwrap(), 1, &[0.0]);
        for i in 0..3_u8 {
            block.set_edge(usize::from(i), Edge { id: u64::from(i), distance: f32::from(i) }, &[f32::from(i)]);
        }
        block.remove_edge(0);
        let edges: Vec<_> = (0..block.edges()).map(|i| (block.edge(i).id, block.edge_vector(i)[0])).collect();
        assert_eq!(edges, [(2, 2.0), (1, 1.0)]);
        block.remove_edge(1);
        block.remove_edge(0);
        assert_eq!(block.edges(), 0);
    }
}
