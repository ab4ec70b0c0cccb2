//! The slow, obviously correct store: an ordered map from path to how often it was inserted.

use std::collections::BTreeMap;

/// Paths in order, with their counts: how often each was inserted, as far as that was to be counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference(BTreeMap<Vec<u8>, u64>);

impl Reference {
    /// Puts a path in and adds `times` to its count, which may be zero. Whether it is new.
    pub fn insert(&mut self, path: &[u8], times: u32) -> bool {
        let before = self.0.len();
        *self.0.entry(path.to_vec()).or_insert(0) += u64::from(times);
        self.0.len() > before
    }

    /// How many different paths there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The count of a path; `None` if it is not there.
    #[must_use]
    pub fn count(&self, path: &[u8]) -> Option<u64> {
        self.0.get(path).copied()
    }

    /// Every path in order, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.0.iter().map(|(path, count)| (path.as_slice(), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::Reference;

    #[test]
    fn paths_are_kept_once_in_order_and_counted() {
        let mut store = Reference::default();
        assert!([&b"b"[..], b"a"].iter().all(|path| store.insert(path, 1)));
        assert!(!store.insert(b"b", 1));
        assert_eq!(store.iter().collect::<Vec<_>>(), [(&b"a"[..], 1), (b"b", 2)]);
        assert_eq!((store.len(), store.count(b"b"), store.count(b"c")), (2, Some(2), None));
    }
}
