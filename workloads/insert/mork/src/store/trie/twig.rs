//! The one-word forms of a branch and a leaf.

use super::half::half;

/// A branch or a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Twig(u64);

/// Set in branches.
const BRANCH: u64 = 1 << 63;
const AT_SHIFT: u32 = 48;
const VALUES_SHIFT: u32 = 32;
const LENGTH_SHIFT: u32 = 40;
const OFFSET_MASK: u64 = (1 << LENGTH_SHIFT) - 1;

/// A branch: two to sixteen twigs, distinguished by one half byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Branch(u64);

/// The end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaf(u64);

impl Twig {
    /// Fills the unused end of a block.
    pub(super) const EMPTY: Self = Self(0);

    #[inline]
    pub(super) fn branch(self) -> Option<Branch> {
        (self.0 & BRANCH != 0).then_some(Branch(self.0))
    }

    /// Interprets the twig as a leaf; only valid if it is not a branch.
    #[inline]
    pub(super) fn leaf(self) -> Leaf {
        debug_assert!(self.branch().is_none());
        Leaf(self.0)
    }

    /// Any word, for the list of free blocks.
    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }
}

impl From<Branch> for Twig {
    #[inline]
    fn from(branch: Branch) -> Self {
        Self(branch.0)
    }
}

impl From<Leaf> for Twig {
    #[inline]
    fn from(leaf: Leaf) -> Self {
        Self(leaf.0)
    }
}

impl Branch {
    #[inline]
    pub(super) fn new(at: usize, values: u16, first: usize) -> Self {
        assert!(at < 1 << 15 && first <= u32::MAX as usize, "a branch at half byte {at} with twigs at {first}");
        Self(BRANCH | (at as u64) << AT_SHIFT | u64::from(values) << VALUES_SHIFT | first as u64)
    }

    /// The half byte that distinguishes its twigs.
    #[inline]
    pub(super) fn at(self) -> usize {
        ((self.0 & !BRANCH) >> AT_SHIFT) as usize
    }

    #[inline]
    fn values(self) -> u16 {
        (self.0 >> VALUES_SHIFT) as u16
    }

    /// Where its twigs are.
    #[inline]
    pub(super) fn first(self) -> usize {
        (self.0 as u32) as usize
    }

    /// How many twigs it has.
    #[inline]
    pub(super) fn width(self) -> usize {
        self.values().count_ones() as usize
    }

    /// Which of its twigs a value has, or would have.
    #[inline]
    pub(super) fn index(self, value: u8) -> usize {
        (self.values() & ((1 << value) - 1)).count_ones() as usize
    }

    /// Which of its twigs a value has, if any.
    #[inline]
    pub(super) fn index_of(self, value: u8) -> Option<usize> {
        (self.values() >> value & 1 == 1).then(|| self.index(value))
    }

    /// Which of its twigs leads to a path. Where the path has ended or has a value that does not occur, the first: every leaf
    /// further down shares as much with it.
    #[inline]
    pub(super) fn index_towards(self, path: &[u8]) -> usize {
        if self.at() < 2 * path.len() { self.index_of(half(path, self.at())).unwrap_or(0) } else { 0 }
    }

    /// The branch with one more value, and its twigs at `first`.
    #[inline]
    pub(super) fn with(self, value: u8, first: usize) -> Self {
        Self::new(self.at(), self.values() | 1 << value, first)
    }
}

impl Leaf {
    /// `None` if the offset is out of range.
    #[inline]
    pub(super) fn new(offset: usize, length: usize) -> Option<Self> {
        assert!(length <= crate::encoding::MAX_PATH, "a path of {length} bytes");
        (offset as u64 <= OFFSET_MASK).then_some(Self((length as u64) << LENGTH_SHIFT | offset as u64))
    }

    #[inline]
    pub(super) fn offset(self) -> usize {
        (self.0 & OFFSET_MASK) as usize
    }

    #[inline]
    pub(super) fn length(self) -> usize {
        (self.0 >> LENGTH_SHIFT) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::MAX_PATH;

    #[test]
    fn a_branch_keeps_its_parts() {
        let branch = Branch::new((1 << 15) - 1, 0b1000_0000_0000_0101, u32::MAX as usize);
        assert_eq!((branch.at(), branch.first(), branch.width()), ((1 << 15) - 1, u32::MAX as usize, 3));
        assert_eq!([0, 1, 2, 3, 15].map(|value| branch.index(value)), [0, 1, 1, 2, 2]);
        assert_eq!([1, 2, 15].map(|value| branch.index_of(value)), [None, Some(1), Some(2)]);
        let wider = branch.with(1, 7);
        assert_eq!((wider.at(), wider.first(), wider.width()), ((1 << 15) - 1, 7, 4));
        assert_eq!(Twig::from(branch).branch(), Some(branch));
    }

    #[test]
    fn a_branch_leads_on_where_the_path_has_ended_or_goes_elsewhere() {
        let branch = Branch::new(2, 0b1000_0000_0000_0101, 0);
        for (path, index) in [(&b"\x11\x0f"[..], 0), (b"\x11\x2f", 1), (b"\x11\xf0", 2), (b"\x11\x1f", 0), (b"\x11", 0)]
        {
            assert_eq!(branch.index_towards(path), index, "{path:?}");
        }
    }

    #[test]
    fn a_leaf_keeps_its_parts_and_is_no_branch() {
        let leaf = Leaf::new((1 << 40) - 1, MAX_PATH).unwrap();
        assert_eq!((leaf.offset(), leaf.length()), ((1 << 40) - 1, MAX_PATH));
        assert_eq!(Twig::from(leaf).branch(), None);
        assert_eq!(Leaf::new(1 << 40, 1), None);
    }
}
