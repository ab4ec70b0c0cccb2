//! A path-compressed trie that branches on half bytes (a "qp-trie", after Tony Finch), in two flat buffers.
//!
//! A *twig* is one word. A branch has the index of the first differing half byte of its paths, a bit set of the values
//! that occur there, and the index of its twigs, one per value and adjacent. A leaf has the offset of its path in the
//! other buffer. The common prefix of a branch is stored in its leaves only, so that a look-up descends without a
//! comparison and compares once at the leaf.
//!
//! ```text
//! branch  1 | half byte, 15 bits | values that occur, 16 bits | first twig, 32 bits
//! leaf    0 | length, 23 bits    | offset, 40 bits
//! ```
//!
//! Paths must be prefix-free, as encoded expressions are, so that two paths always differ before either ends.
//!
//! Blocks of twigs have a capacity of 2, 4, 8 or 16, the next power of two. A full block is copied into one twice as
//! large and put on a free list of its size. There is no allocation per path, and dropping a trie frees two buffers.
//!
//! An insertion begins at the previous one's leaf ("finger search"; Brown and Tarjan, "A Data Structure for Representing
//! Sorted Lists", 1980). The first difference to the previous path determines which of its branches are above the new
//! path too. If no branch has the new value at this position, the path is placed without reading any other; otherwise
//! the search descends. Sorted facts therefore read only data that the previous insertion wrote.

mod bulk;
mod half;
mod twig;

use assay_harness::Failure;

pub(crate) use bulk::Span;
use half::{differ, half};
use twig::{Branch, Leaf, Twig};

/// A trie cannot take more: a branch addresses 2^32 twigs, a leaf 2^40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the trie is full: it holds at most 2^32 branches and 2^40 bytes of paths")
    }
}

impl std::error::Error for Full {}

impl From<Full> for Failure {
    fn from(full: Full) -> Self {
        Self::error(full)
    }
}

/// Block sizes: 2, 4, 8, 16.
const CLASSES: usize = 4;
/// Marks the end of a list of free blocks.
const NO_BLOCK: u64 = u64::MAX;
/// Bytes of the count before each path.
const COUNT: usize = size_of::<u32>();

/// A set of prefix-free paths, with how often each was inserted.
#[derive(Debug, Clone)]
pub struct Trie {
    /// The root, then blocks.
    twigs: Vec<Twig>,
    /// The first free block of each size; each free block begins with the next.
    free: [u64; CLASSES],
    /// Count, path, count, path, ….
    paths: Vec<u8>,
    len: usize,
    /// The leaf at which the next insertion begins, with `trail`; none means at the root.
    last: Option<Leaf>,
    /// The branches above `last`, from the root on.
    trail: Vec<Step>,
}

impl Default for Trie {
    fn default() -> Self {
        Self { twigs: Vec::new(), free: [NO_BLOCK; CLASSES], paths: Vec::new(), len: 0, last: None, trail: Vec::new() }
    }
}

/// The root's place.
const ROOT: usize = 0;

/// A branch on the way to a leaf.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The half byte that distinguishes its twigs.
    at: usize,
    /// Where its own twig is.
    place: usize,
}

impl Trie {
    /// How many different paths there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the trie is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the trie occupies.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let trail = self.trail.capacity() * size_of::<Step>();
        self.twigs.capacity() * size_of::<Twig>() + self.paths.capacity() + trail
    }

    /// Puts a path in and adds `times` to its count, which may be zero. Whether it is new.
    ///
    /// # Errors
    ///
    /// When the trie is full; it is then as it was.
    ///
    /// # Panics
    ///
    /// When the path is the beginning of another, or longer than [`crate::encoding::MAX_PATH`].
    pub fn insert(&mut self, path: &[u8], times: u32) -> Result<bool, Full> {
        if self.twigs.is_empty() {
            let leaf = self.add_leaf(path, times)?;
            self.twigs.push(leaf.into());
            self.last = Some(leaf);
            return Ok(true);
        }
        // Taken: an error on the way leaves none, and the next insertion begins at the root.
        let mut near = match self.last.take() {
            Some(leaf) => leaf,
            None => {
                self.trail.clear();
                self.descend(ROOT, path)
            }
        };
        let (at, branch) = loop {
            let Some(at) = differ(path, self.path(near)) else {
                self.count_again(near, times);
                self.last = Some(near);
                return Ok(false);
            };
            while self.trail.pop_if(|step| step.at > at).is_some() {}
            let branch = self.trail.last().filter(|step| step.at == at).map(|step| (step.place, self.branch(*step)));
            match branch.and_then(|(_, branch)| branch.index_of(half(path, at)).map(|index| branch.first() + index)) {
                Some(place) => near = self.descend(place, path),
                None => break (at, branch),
            }
        };
        self.check_room()?;
        let value = half(path, at);
        let other = half(self.path(near), at);
        let leaf = self.add_leaf(path, times)?;
        match branch {
            Some((place, branch)) => self.twigs[place] = self.widen(branch, value, leaf.into()).into(),
            None => {
                // Everything below shares the common prefix of the two paths, so that the new branch goes above it.
                let place = self.trail.last().map_or(ROOT, |step| {
                    let branch = self.branch(*step);
                    branch.first() + branch.index(half(path, step.at))
                });
                let first = self.block(0);
                let (leaf, twig) = (leaf.into(), self.twigs[place]);
                let (low, high) = if value < other { (leaf, twig) } else { (twig, leaf) };
                self.twigs[first..first + 2].copy_from_slice(&[low, high]);
                self.twigs[place] = Branch::new(at, 1 << value | 1 << other, first).into();
                self.trail.push(Step { at, place });
            }
        }
        self.last = Some(leaf);
        Ok(true)
    }

    /// Goes down from a place to the leaf to which a path leads if it is there, or to one of those that share most with it
    /// if it is not. The branches on the way are put on the trail.
    #[inline]
    fn descend(&mut self, mut place: usize, path: &[u8]) -> Leaf {
        loop {
            let twig = self.twigs[place];
            let Some(branch) = twig.branch() else { return twig.leaf() };
            self.trail.push(Step { at: branch.at(), place });
            place = branch.first() + branch.index_towards(path);
        }
    }

    /// The branch of a step.
    #[inline]
    fn branch(&self, step: Step) -> Branch {
        self.twigs[step.place].branch().expect("branches stay branches")
    }

    /// The paths that begin with `prefix`, in order, each with its count.
    #[must_use]
    pub fn with_prefix(&self, prefix: &[u8]) -> Iter<'_> {
        let mut twig = self.root();
        while let Some(branch) = twig.and_then(Twig::branch).filter(|branch| branch.at() < 2 * prefix.len()) {
            let twigs = self.children(branch);
            twig = branch.index_of(half(prefix, branch.at())).map(|index| twigs[index]);
        }
        // Everything below shares the path up to its branch, so that one leaf is sufficient for the comparison.
        let begins = |twig: &Twig| {
            let mut first = *twig;
            while let Some(branch) = first.branch() {
                first = self.twigs[branch.first()];
            }
            self.path(first.leaf()).starts_with(prefix)
        };
        Iter { trie: self, open: twig.filter(begins).into_iter().collect() }
    }

    /// Twigs on the way to a path, over all paths: how many words a look-up reads.
    #[must_use]
    pub fn mean_depth(&self) -> Option<f64> {
        let mut open: Vec<(Twig, u64)> = self.root().map(|root| (root, 1)).into_iter().collect();
        let mut sum = 0_u64;
        while let Some((twig, depth)) = open.pop() {
            match twig.branch() {
                Some(branch) => open.extend(self.children(branch).iter().map(|twig| (*twig, depth + 1))),
                None => sum += depth,
            }
        }
        (self.len > 0).then(|| sum as f64 / self.len as f64)
    }

    fn root(&self) -> Option<Twig> {
        self.twigs.get(ROOT).copied()
    }

    #[inline]
    fn path(&self, leaf: Leaf) -> &[u8] {
        &self.paths[leaf.offset() + COUNT..][..leaf.length()]
    }

    fn count_of(&self, leaf: Leaf) -> u64 {
        let count = &self.paths[leaf.offset()..][..COUNT];
        u32::from_le_bytes(count.try_into().expect("a count has its own size")).into()
    }

    #[inline]
    fn count_again(&mut self, leaf: Leaf, times: u32) {
        let count = &mut self.paths[leaf.offset()..][..COUNT];
        let before = u32::from_le_bytes((&*count).try_into().expect("a count has its own size"));
        count.copy_from_slice(&before.saturating_add(times).to_le_bytes());
    }

    #[inline]
    fn add_leaf(&mut self, path: &[u8], times: u32) -> Result<Leaf, Full> {
        let leaf = Leaf::new(self.paths.len(), path.len()).ok_or(Full)?;
        self.paths.extend_from_slice(&times.to_le_bytes());
        self.paths.extend_from_slice(path);
        self.len += 1;
        Ok(leaf)
    }

    /// Whether one more branch, of any size, can be addressed.
    fn check_room(&self) -> Result<(), Full> {
        if self.twigs.len() + 16 > u32::MAX as usize { Err(Full) } else { Ok(()) }
    }

    fn children(&self, branch: Branch) -> &[Twig] {
        &self.twigs[branch.first()..][..branch.width()]
    }

    /// A block with room for `2 << class` twigs.
    #[inline]
    fn block(&mut self, class: usize) -> usize {
        if self.free[class] == NO_BLOCK {
            let first = self.twigs.len();
            self.twigs.resize(first + (2 << class), Twig::EMPTY);
            return first;
        }
        let first = self.free[class] as usize;
        self.free[class] = self.twigs[first].word();
        first
    }

    /// A branch with one more twig.
    #[inline]
    fn widen(&mut self, branch: Branch, value: u8, leaf: Twig) -> Branch {
        let (first, width, index) = (branch.first(), branch.width(), branch.index(value));
        let wider = if width.is_power_of_two() {
            let class = width.trailing_zeros() as usize;
            let wider = self.block(class);
            self.twigs.copy_within(first..first + width, wider);
            self.twigs[first] = Twig::from_word(self.free[class - 1]);
            self.free[class - 1] = first as u64;
            wider
        } else {
            first
        };
        self.twigs.copy_within(wider + index..wider + width, wider + index + 1);
        self.twigs[wider + index] = leaf;
        branch.with(value, wider)
    }
}

/// The paths of a trie in order.
#[derive(Debug)]
pub struct Iter<'a> {
    trie: &'a Trie,
    open: Vec<Twig>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], u64);

    fn next(&mut self) -> Option<Self::Item> {
        let mut twig = self.open.pop()?;
        while let Some(branch) = twig.branch() {
            let (first, rest) = self.trie.children(branch).split_first().expect("a branch has twigs");
            self.open.extend(rest.iter().rev());
            twig = *first;
        }
        let leaf = twig.leaf();
        Some((self.trie.path(leaf), self.trie.count_of(leaf)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count of a path; `None` if it is not there.
    pub(super) fn count(trie: &Trie, path: &[u8]) -> Option<u64> {
        trie.with_prefix(path).find(|(found, _)| *found == path).map(|(_, count)| count)
    }

    #[test]
    #[should_panic(expected = "prefix-free")]
    fn a_path_that_is_the_beginning_of_another_is_a_mistake() {
        let mut trie = Trie::default();
        trie.insert(b"abc", 1).unwrap();
        trie.insert(b"ab", 1).unwrap();
    }

    #[test]
    fn freed_blocks_are_reused() {
        let mut trie = Trie::default();
        // Sixteen paths under one branch leave a free block of each smaller size.
        for low in 0..16 {
            assert!(trie.insert(&[0x10 | low], 1).unwrap());
        }
        let before = trie.twigs.len();
        assert_eq!(before, 1 + 2 + 4 + 8 + 16);
        // A second branch of eight, and the one above both, fit into those.
        for low in 0..8 {
            trie.insert(&[0x20 | low], 1).unwrap();
        }
        assert_eq!(trie.twigs.len(), before + 2, "the blocks of 8, 4 and one of 2 were free; the other of 2 is new");
        assert_eq!(trie.with_prefix(b"").count(), 24);
    }

    #[test]
    fn counts_stop_at_the_largest() {
        let mut trie = Trie::default();
        trie.insert(b"a", 1).unwrap();
        trie.paths[..COUNT].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(!trie.insert(b"a", 1).unwrap());
        assert_eq!(count(&trie, b"a"), Some(u32::MAX.into()));
    }

    #[test]
    fn an_empty_trie_has_nothing() {
        let trie = Trie::default();
        assert_eq!(
            (trie.len(), count(&trie, b"a"), trie.with_prefix(b"").count(), trie.mean_depth()),
            (0, None, 0, None)
        );
    }

    #[test]
    fn paths_are_found_by_how_they_begin() {
        let mut trie = Trie::default();
        for path in [&b"ab1"[..], b"ab2", b"ac1", b"b"] {
            trie.insert(path, 0).unwrap();
        }
        let found = |prefix: &[u8]| trie.with_prefix(prefix).map(|(path, _)| path).collect::<Vec<_>>();
        assert_eq!(found(b"ab"), [b"ab1", b"ab2"]);
        assert_eq!(found(b"a"), [b"ab1", b"ab2", b"ac1"]);
        assert_eq!(found(b""), [&b"ab1"[..], b"ab2", b"ac1", b"b"]);
        assert_eq!(found(b"ac1"), [b"ac1"]);
        for absent in [&b"ad"[..], b"ac12", b"c", b"ab3", b"bb"] {
            assert!(found(absent).is_empty(), "{absent:?}");
        }
        assert!(Trie::default().with_prefix(b"").next().is_none());
    }

    #[test]
    fn a_count_may_stay_zero() {
        let mut trie = Trie::default();
        trie.insert(b"fact", 0).unwrap();
        assert_eq!(count(&trie, b"fact"), Some(0));
        trie.insert(b"fact", 2).unwrap();
        assert_eq!((count(&trie, b"fact"), count(&trie, b"fict")), (Some(2), None));
    }

    #[test]
    fn depth_counts_twigs() {
        let mut trie = Trie::default();
        trie.insert(b"\x11", 1).unwrap();
        assert_eq!(trie.mean_depth(), Some(1.0));
        trie.insert(b"\x12", 1).unwrap();
        trie.insert(b"\x21", 1).unwrap();
        // One leaf below the root, two below the branch beside it.
        assert_eq!(trie.mean_depth(), Some((2.0 + 3.0 + 3.0) / 3.0));
    }
}
