//! The state after executing the log: every key's value and the slot that wrote it.

use super::hash::NumberMap;
use crate::command::{Found, Slot};

/// Keys and values.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    cells: NumberMap<u64, Cell>,
}

#[derive(Debug, Clone)]
struct Cell {
    version: Slot,
    value: Vec<u8>,
}

impl Store {
    /// Writes `value`, in the name of `slot`.
    pub(super) fn put(&mut self, key: u64, slot: Slot, value: &[u8]) {
        let cell = self.cells.entry(key).or_insert_with(|| Cell { version: 0, value: Vec::new() });
        cell.version = slot;
        // In place: a key that is written again takes no new memory.
        cell.value.clear();
        cell.value.extend_from_slice(value);
    }

    /// Returns the value of `key`.
    #[must_use]
    pub(super) fn get(&self, key: u64) -> Found<'_> {
        self.cells.get(&key).map(|cell| Found { version: cell.version, value: &cell.value }).unwrap_or_default()
    }

    /// Returns all keys ever written, with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Found<'_>)> {
        self.cells.iter().map(|(key, cell)| (*key, Found { version: cell.version, value: &cell.value }))
    }

    /// How many keys were ever written.
    #[must_use]
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// BLAKE3 over all keys and values, in the order of the keys.
    #[must_use]
    pub(super) fn digest(&self) -> String {
        let mut keys: Vec<u64> = self.cells.keys().copied().collect();
        keys.sort_unstable();
        let mut hasher = blake3::Hasher::new();
        for key in keys {
            let value = &self.cells[&key].value;
            hasher.update(&key.to_le_bytes());
            hasher.update(&(value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        hasher.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_depends_on_keys_and_values_and_not_on_how_they_came() {
        let store = |writes: &[(u64, &[u8])]| {
            let mut store = Store::default();
            (1..).zip(writes).for_each(|(slot, (key, value))| store.put(*key, slot, value));
            store
        };
        let one = store(&[(1, b"a"), (2, b"b")]);
        assert_eq!(one.digest(), store(&[(2, b"x"), (1, b"a"), (2, b"b")]).digest());
        assert_ne!(one.digest(), store(&[(1, b"a"), (2, b"c")]).digest());
        assert_ne!(one.digest(), store(&[(1, b"a")]).digest());
        assert_eq!((one.get(2), one.len()), (Found { version: 2, value: b"b" }, 2));
        assert_eq!(one.get(3), Found::default());
    }
}
