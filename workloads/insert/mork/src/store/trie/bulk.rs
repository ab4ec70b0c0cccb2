//! Building a trie from all its paths at once.
//!
//! Sorted paths give a trie from left to right in one pass: where a path first differs from the one before it says
//! which branches are finished and which one the path belongs to. A finished branch is written once, with all its
//! twigs, in its final size. Nothing is looked up and nothing moved.

use super::half::{common, differ, half};
use super::{Branch, COUNT, Full, ROOT, Trie, Twig};

/// Where paths lie in a buffer of paths.
pub(crate) type Span = (u32, u32);

/// A branch that still gets twigs.
struct Open {
    at: usize,
    values: u16,
    /// Where its twigs begin among those of all open branches.
    first: usize,
}

impl Trie {
    /// Inserts all paths of a buffer, each `times` times; `spans` says where each begins and ends, in any order, and is
    /// sorted along the way.
    ///
    /// # Errors
    ///
    /// When the trie is full; it may then have some of the paths.
    ///
    /// # Panics
    ///
    /// When a path is the beginning of another.
    pub(crate) fn insert_all(&mut self, buffer: &[u8], spans: &mut [Span], times: u32) -> Result<(), Full> {
        let path = |span: Span| &buffer[span.0 as usize..span.1 as usize];
        Self::arrange(buffer, spans);
        if !self.is_empty() {
            // In order, so that each goes down the way that the last has just taken.
            return spans.iter().try_for_each(|span| self.insert(path(*span), times).map(|_| ()));
        }
        let result = self.build(spans.iter().map(|span| path(*span)), buffer.len() + COUNT * spans.len(), times);
        if result.is_err() {
            *self = Self::default();
        }
        result
    }

    /// Sorts spans by their paths, unless they are sorted.
    pub(crate) fn arrange(buffer: &[u8], spans: &mut [Span]) {
        let path = |span: Span| &buffer[span.0 as usize..span.1 as usize];
        if !spans.is_sorted_by(|a, b| path(*a) <= path(*b)) {
            sort(buffer, spans);
        }
    }

    fn build<'a>(&mut self, sorted: impl Iterator<Item = &'a [u8]>, bytes: usize, times: u32) -> Result<(), Full> {
        self.paths.reserve(bytes);
        // Placeholder for the root, which is known last.
        self.twigs.push(Twig::EMPTY);
        let mut open: Vec<Open> = Vec::new();
        let mut twigs: Vec<Twig> = Vec::new();
        let mut last: Option<(&[u8], super::Leaf)> = None;
        for path in sorted {
            if let Some((before, leaf)) = last {
                let Some(at) = differ(path, before) else {
                    self.count_again(leaf, times);
                    continue;
                };
                let twig = self.close(&mut open, &mut twigs, leaf.into(), before, Some(at));
                self.check_room()?;
                match open.last_mut() {
                    Some(branch) if branch.at == at => branch.values |= 1 << half(before, at),
                    _ => open.push(Open { at, values: 1 << half(before, at), first: twigs.len() }),
                }
                twigs.push(twig);
            }
            last = Some((path, self.add_leaf(path, times)?));
        }
        match last {
            Some((before, leaf)) => {
                self.twigs[ROOT] = self.close(&mut open, &mut twigs, leaf.into(), before, None);
            }
            None => self.twigs.clear(),
        }
        Ok(())
    }

    /// Finishes the branches that a path does not belong to: those further down than where it first differs from
    /// `before`; all without one. Gives the twig that is then the last.
    fn close(
        &mut self,
        open: &mut Vec<Open>,
        twigs: &mut Vec<Twig>,
        last: Twig,
        before: &[u8],
        at: Option<usize>,
    ) -> Twig {
        let mut twig = last;
        while let Some(branch) = open.pop_if(|branch| at.is_none_or(|at| branch.at > at)) {
            twigs.push(twig);
            let values = branch.values | 1 << half(before, branch.at);
            let width = twigs.len() - branch.first;
            let first = self.twigs.len();
            self.twigs.extend(twigs.drain(branch.first..));
            self.twigs.resize(first + width.next_power_of_two(), Twig::EMPTY);
            twig = Branch::new(branch.at, values, first).into();
        }
        twig
    }
}

/// Sorts spans by their paths: by the eight bytes after the common prefix, which are usually sufficient, then by the
/// rest.
fn sort(buffer: &[u8], spans: &mut [Span]) {
    let path = |span: Span| &buffer[span.0 as usize..span.1 as usize];
    let Some(first) = spans.first().copied() else { return };
    let shared = spans.iter().map(|span| common(path(first), path(*span))).min().unwrap_or(0);
    let key = |span: Span| {
        let rest = &path(span)[shared..];
        let mut word = [0; 8];
        let length = rest.len().min(8);
        word[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(word)
    };
    let mut keyed: Vec<(u64, Span)> = spans.iter().map(|span| (key(*span), *span)).collect();
    // A path that ends within the eight bytes is padded with zeros; ties are resolved by the whole paths. The stable
    // sort merges the presorted shares of several threads.
    keyed.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| path(*x)[shared..].cmp(&path(*y)[shared..])));
    spans.iter_mut().zip(keyed).for_each(|(span, (_, sorted))| *span = sorted);
}

#[cfg(test)]
mod tests {
    use super::super::tests::count;
    use super::*;

    fn spans(paths: &[&[u8]]) -> (Vec<u8>, Vec<Span>) {
        let mut buffer = Vec::new();
        let spans = paths.iter().map(|path| {
            let start = buffer.len() as u32;
            buffer.extend_from_slice(path);
            (start, buffer.len() as u32)
        });
        let spans = spans.collect();
        (buffer, spans)
    }

    #[test]
    fn a_bulk_of_any_order_gives_the_trie_of_single_insertions() {
        let paths: [&[u8]; 8] =
            [b"\x31a", b"\x11", b"\x31b", b"\x12", b"\x31a", b"\x32abcdefghij", b"\x32abcdefghik", b"\x11"];
        let (buffer, mut spans) = spans(&paths);
        let mut bulk = Trie::default();
        bulk.insert_all(&buffer, &mut spans, 1).unwrap();
        let mut single = Trie::default();
        for path in paths {
            single.insert(path, 1).unwrap();
        }
        assert!(bulk.with_prefix(b"").eq(single.with_prefix(b"")));
        assert_eq!((bulk.len(), count(&bulk, b"\x11"), count(&bulk, b"\x13")), (6, Some(2), None));
        assert_eq!(bulk.mean_depth(), single.mean_depth());
        // And goes on from there.
        for trie in [&mut bulk, &mut single] {
            assert!(trie.insert(b"\x33", 1).unwrap());
        }
        bulk.insert_all(&buffer, &mut spans, 1).unwrap();
        assert_eq!((bulk.len(), count(&bulk, b"\x31a")), (7, Some(4)));
    }

    #[test]
    fn empty_bulk_gives_an_empty_trie() {
        let mut trie = Trie::default();
        trie.insert_all(&[], &mut [], 1).unwrap();
        assert!(trie.is_empty() && trie.with_prefix(b"").next().is_none());
    }

    #[test]
    fn sorting_looks_beyond_the_eight_bytes_that_mostly_decide() {
        let paths: [&[u8]; 4] = [b"same01234567b", b"same01234567a", b"same0", b"samf"];
        let (buffer, mut spans) = spans(&paths);
        sort(&buffer, &mut spans);
        let sorted: Vec<&[u8]> = spans.iter().map(|span| &buffer[span.0 as usize..span.1 as usize]).collect();
        assert_eq!(sorted, [paths[2], paths[1], paths[0], paths[3]]);
    }
}
